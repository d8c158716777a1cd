// Counting Bloom filter: a set in counters of four bits, from which keys can be taken back.
//
// Source   Fan, Cao, Almeida, Broder 2000, as used by Guo et al. 2010. Positions as in bloom.hpp.
// Differs  insert asks first and writes a key only once. A key counted twice would have to be
//          forgotten twice.
// Cost     observe: one cache line per probe; no allocation. Four times the bits of bloom.hpp:
//          5.8 log₂(1/fpr) bits per key.
// Errors   `duplicate` may be wrong (model::bloom_fpr); `distinct` never is, as long as only keys
//          that were judged distinct are forgotten. Forgetting one that was never written may erase
//          the traces of others: at the rate of a false positive, about 0.69 probes of them. Two probes of a key that meet in
//          one counter count twice there, and are taken back twice.
// Use it   when keys must be taken back and their number is known.
// Avoid    when nothing is ever taken back: bloom.hpp does the same in a quarter of the memory.
// Format   snapshot kind 4, version 1.
#pragma once

#include "sluice/base/line_table.hpp"
#include "sluice/filters/contract.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/hash/probe.hpp"

namespace sluice {

class Counting {
 public:
  static constexpr FilterKind kKind = FilterKind::counting;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{};

  struct Params {
    std::uint64_t counters = 0;  // m, a multiple of 16
    unsigned probes = 0;         // k
    std::uint64_t capacity = 0;  // n: keys it is planned for
    double target_fpr = 0;       // the error it is planned for

    static std::span<const ParameterInfo> known();
    // Throws BadParameters.
    static Params from(const Wish& wish, const Settings& settings);
    Settings settings() const;
    Forecast forecast() const;
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Throws BadParameters.
  static Counting make(const Params& params, MemoryResource& memory = default_memory());

  Verdict observe(const Digest& digest) noexcept;
  bool may_contain(const Digest& digest) const noexcept;
  void insert(const Digest& digest) noexcept { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts) noexcept;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  std::size_t insert(std::span<const Digest> digests) noexcept;
  void clear() noexcept;

  // Takes a key back that was judged distinct; false when there is no trace of it.
  bool forget(const Digest& digest) noexcept;
  // Adds the counters pairwise. A key that both filters hold is then counted twice. Throws
  // BadParameters.
  void merge(const Counting& other);

  const Params& params() const noexcept { return params_; }
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept { return table_.taken(); }
  MemoryResource& memory() const noexcept { return table_.resource(); }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static Counting decode(Decoder& header, Decoder& payload,
                         MemoryResource& memory = default_memory());

 private:
  Counting(const Params& params, MemoryResource& memory);
  template <class Words>
  bool holds(Words words, const Digest& digest) const noexcept;
  template <class Words>
  Verdict observe(Words words, const Digest& digest) noexcept;
  std::uint64_t nonzero() const noexcept;
  double sampled_fpr() const;
  void find_doubles() noexcept;
  bool can_hold(std::uint64_t keys) const noexcept;
  std::uint64_t position(const Digest& digest, unsigned probe) const noexcept {
    return probe_position(digest, probe, params_.counters);
  }

  Params params_;
  std::uint64_t keys_ = 0;
  std::uint64_t doubles_ = 0;  // about how many of these are counted twice, after a merge
  std::uint64_t forgotten_ = 0;
  std::uint64_t forget_misses_ = 0;
  LineTable table_;
};

}  // namespace sluice
