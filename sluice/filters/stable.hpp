// Stable Bloom filter: an endless stream in fixed memory, forgetting at random.
//
// Source   Deng & Rafiei 2006; as the baseline of Dutta et al. 2012, §6.
// Differs  The cells that a record reduces are neighbours by default, as in that paper's practice
//          but not in its analysis; both have the same errors (docs/filters/stable.md).
// Cost     observe: a cache line per probe and one for the run of cells to reduce, no allocation.
//          With draws=independent, one line for each of these cells.
// Errors   `duplicate` may be wrong (model::stable_fpr), and so may `distinct`: a key is remembered
//          for a random time (model::stable_caught).
// Use it   as a baseline, as papers do.
// Avoid    otherwise: `reservoir` remembers as long in the same memory, and longer if there are
//          many repeats; a window filter remembers the recent past for certain.
// Format   snapshot kind 7, version 1.
//
// Every record, duplicate or not, first reduces some cells by one and then sets its own to the
// maximum. So the share of cells at zero, and with it the error, converges to a stable point.
#pragma once

#include "sluice/base/line_table.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/contract.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/hash/probe.hpp"
#include "sluice/model/stable.hpp"

namespace sluice {

class Stable {
 public:
  static constexpr FilterKind kKind = FilterKind::stable;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{.no_false_negatives = false};

  // Which cells a record reduces: neighbours from a random one on, or each drawn independently.
  // Both have the same errors (docs/filters/stable.md); a run touches one cache line.
  enum class Draws : std::uint8_t { run, independent };

  struct Params {
    std::uint64_t bits = 0;   // of the table, a multiple of 64
    unsigned probes = 0;      // K
    unsigned decrements = 0;  // P
    unsigned max = 1;         // Max, 1 to 15; cells have 1, 2 or 4 bits
    Draws draws = Draws::run;
    double target_fpr = 0;  // the error it is planned for
    std::uint64_t seed = 1;

    unsigned cell_bits() const noexcept { return max == 1 ? 1 : max <= 3 ? 2 : 4; }
    std::uint64_t cells() const noexcept { return bits / cell_bits(); }  // m
    model::StableShape shape() const;

    static Params from(const Wish& wish, const Settings& settings);
    static std::span<const ParameterInfo> known();
    Settings settings() const;
    // `fnr` is of repeats after `distance` others. The brief one has no settings.
    Forecast forecast(double distance) const;
    Forecast brief_forecast(double distance) const;
    double distance_of(double fnr) const;  // after how many others so many repeats are let through
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Throws BadParameters.
  static Stable make(const Params& params, MemoryResource& memory = default_memory());

  Verdict observe(const Digest& digest) noexcept;
  bool may_contain(const Digest& digest) const noexcept;
  void insert(const Digest& digest) noexcept { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts) noexcept;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  std::size_t insert(std::span<const Digest> digests) noexcept;
  void clear() noexcept;

  const Params& params() const noexcept { return params_; }
  // `keys` is how many keys the cells above zero could hold without sharing: it is not known which
  // written keys are still remembered. There is no capacity.
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept { return table_.taken(); }
  MemoryResource& memory() const noexcept { return table_.resource(); }
  double fill() const noexcept;  // the share of cells above zero

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static Stable decode(Decoder& header, Decoder& payload,
                       MemoryResource& memory = default_memory());

 private:
  Stable(const Params& params, MemoryResource& memory);

  // Where a cell stands: cell widths divide a word.
  struct Place {
    std::uint64_t word;
    unsigned shift;
  };
  Place place(std::uint64_t cell) const noexcept {
    const std::uint64_t bit = cell * cell_bits_;
    return {bit / 64, static_cast<unsigned>(bit % 64)};
  }
  // `words` are the table's, as with_words() gives them.
  template <class Words>
  std::uint64_t value(Words words, std::uint64_t cell) const noexcept {
    const Place at = place(cell);
    return words.get(at.word) >> at.shift & mask_;
  }
  template <class Words>
  void set(Words words, std::uint64_t cell) noexcept;
  template <class Words>
  void reduce(Words words, std::uint64_t cell) noexcept;
  template <class Words>
  void reduce_run(Words words, std::uint64_t first) noexcept;
  template <class Words>
  void reduce_some(Words words) noexcept;
  template <class Words>
  Verdict observe(Words words, const Digest& digest) noexcept;
  template <class Words>
  void observe_ahead(Words words, std::span<const Digest> digests,
                     std::span<Verdict> verdicts) noexcept;
  template <class Words>
  bool holds(Words words, const Digest& digest) const noexcept;
  std::uint64_t count_live() const noexcept;

  Params params_;
  unsigned cell_bits_;
  std::uint64_t mask_;
  std::uint64_t cells_;
  std::uint64_t live_ = 0;  // cells above zero
  SplitMix64 random_;
  LineTable table_;
};

}  // namespace sluice
