// Reservoir sampling Bloom filter: an endless stream in fixed memory, forgetting at random.
//
// Source   Dutta, Bhattacherjee & Narang 2012 (RSBF), Algorithm 1 and eq. 5.27, as variant=paper.
// Differs  variant=biased, the default, writes only keys that are judged distinct, and for each
//          resets random bits, one or more per filter. So a repeat that is recognised erases
//          nothing, which reduces false negatives several-fold if there are many repeats. With
//          three or four resets half as many filters give the same error, and keys are remembered
//          longer (docs/filters/reservoir.md). variant=paper: where the paper resets a random bit
//          that is set, we draw at most 64 times. If none of these bits is set, the filter is
//          nearly empty, and nothing needs to be reset. The resets of a key fall on the same run of
//          bits in each of its filters, which are interleaved: one draw and one or two cache lines,
//          with the same errors as separate draws.
// Cost     observe: one cache line per filter, and those of the resets; no allocation.
//          variant=paper: two lines per filter for a key that is written, half of which cannot be
//          prefetched.
// Errors   `duplicate` may be wrong (model::reservoir_fpr), and so may `distinct`: a key is
//          remembered for a random time (model::reservoir_caught).
// Use it   when memory is fixed, there is no window, and a repeat let through costs little: it
//          remembers some keys far longer than a window in the same memory.
// Avoid    when the recent past must be remembered for sure: use a window filter.
// Format   snapshot kind 8, version 1.
#pragma once

#include "sluice/base/line_table.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/contract.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/hash/probe.hpp"
#include "sluice/model/reservoir.hpp"

namespace sluice {

class Reservoir {
 public:
  static constexpr FilterKind kKind = FilterKind::reservoir;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{.no_false_negatives = false};
  using Variant = model::ReservoirVariant;

  struct Params {
    std::uint64_t bits = 0;  // M: of the table, a multiple of 64
    unsigned filters = 0;    // k
    Variant variant = Variant::biased;
    unsigned resets = 1;      // of variant=biased: bits reset in each filter for the one set
    double threshold = 0.03;  // p*, of variant=paper
    double target_fpr = 0;    // FPR_t: the error it is planned for
    std::uint64_t seed = 1;

    // s: bits per filter, in whole words. The rest of the table stays empty.
    std::uint64_t size() const noexcept { return bits / 64 / filters * 64; }

    model::ReservoirShape shape() const;

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
  static Reservoir make(const Params& params, MemoryResource& memory = default_memory());

  Verdict observe(const Digest& digest) noexcept;
  bool may_contain(const Digest& digest) const noexcept;
  void insert(const Digest& digest) noexcept { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts) noexcept;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  std::size_t insert(std::span<const Digest> digests) noexcept;
  void clear() noexcept;

  const Params& params() const noexcept { return params_; }
  // `keys` is how many keys the set bits could hold without sharing: it is not known which written
  // keys are still remembered. There is no capacity.
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept { return table_.taken(); }
  MemoryResource& memory() const noexcept { return table_.resource(); }
  double fill() const noexcept;  // the share of bits set
  std::uint64_t records() const noexcept { return records_; }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static Reservoir decode(Decoder& header, Decoder& payload,
                          MemoryResource& memory = default_memory());

 private:
  Reservoir(const Params& params, MemoryResource& memory);

  // Words of the filters take turns, so that equal places of all filters lie side by side.
  std::uint64_t table_bit(unsigned filter, std::uint64_t bit) const noexcept {
    return (bit / 64 * params_.filters + filter) * 64 + bit % 64;
  }
  std::uint64_t position(const Digest& digest, unsigned filter) const noexcept {
    return table_bit(filter, probe_position(digest, filter, size_));
  }
  std::uint64_t draw(unsigned filter) noexcept {
    return table_bit(filter, scale_to(random_.next(), size_));
  }
  // `words` are the table's, as with_words() gives them.
  template <class Words>
  static bool has(Words words, std::uint64_t at) noexcept {
    return (words.get(at / 64) >> (at % 64) & 1) != 0;
  }
  template <class Words>
  void set(Words words, std::uint64_t at) noexcept;
  template <class Words>
  void reset(Words words, std::uint64_t at) noexcept;
  template <class Words>
  void reset_a_set_bit(Words words, unsigned filter) noexcept;
  template <class Words>
  void reset_run(Words words, std::uint64_t first) noexcept;
  template <class Words>
  void sample(Words words, const std::uint64_t* own) noexcept;
  template <class Words>
  void swap_in(Words words, const std::uint64_t* own) noexcept;
  template <class Words>
  Verdict observe(Words words, const Digest& digest) noexcept;
  template <class Words>
  void observe_ahead(Words words, std::span<const Digest> digests,
                     std::span<Verdict> verdicts) noexcept;
  template <class Words>
  bool holds(Words words, const Digest& digest) const noexcept;
  bool is_sampled() noexcept;

  Params params_;
  std::uint64_t size_;
  std::uint64_t records_ = 0;  // observed so far
  std::uint64_t ones_ = 0;     // bits set
  SplitMix64 random_;
  LineTable table_;
};

}  // namespace sluice
