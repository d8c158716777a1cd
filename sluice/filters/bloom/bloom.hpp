// Classical Bloom filter: a set in bits spread over the whole table.
//
// Source   Bloom 1970. Positions: one fold-multiply of the digest per probe, scaled to the table.
//          (Double hashing, h1 + i·h2, has a floor of false positives that we do not want.)
// Cost     observe: one cache line per probe, 20 at 10⁻⁶; no allocation. 1.44 log₂(1/fpr) bits per key.
// Errors   `duplicate` may be wrong (model::bloom_fpr); `distinct` never is.
// Use it   when memory matters more than time: it takes two thirds of the blocked layout's bits at
// 10⁻⁶.
// Avoid    when speed matters: use blocked_bloom.hpp. The name `bloom` means that one unless
//          layout=classic is given.
// Format   snapshot kind 2, version 1.
#pragma once

#include "sluice/base/line_table.hpp"
#include "sluice/filters/contract.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/hash/probe.hpp"

namespace sluice {

class Bloom {
 public:
  static constexpr FilterKind kKind = FilterKind::bloom;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{};

  struct Params {
    std::uint64_t bits = 0;      // m, a multiple of 64
    unsigned probes = 0;         // k
    std::uint64_t capacity = 0;  // n: keys it is planned for
    double target_fpr = 0;       // the error it is planned for

    Settings settings() const;
    Forecast forecast() const;
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Throws BadParameters.
  static Bloom make(const Params& params, MemoryResource& memory = default_memory());

  Verdict observe(const Digest& digest) noexcept;
  bool may_contain(const Digest& digest) const noexcept;
  void insert(const Digest& digest) noexcept { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts) noexcept;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  std::size_t insert(std::span<const Digest> digests) noexcept;
  void clear() noexcept;
  // Afterwards `keys` is estimated from the share of ones, and is at least what either had and at
  // most the sum of both. Throws BadParameters when the parameters differ.
  void merge(const Bloom& other);

  const Params& params() const noexcept { return params_; }
  // As in stats(), which takes longer.
  std::uint64_t keys() const noexcept { return keys_; }
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept { return table_.taken(); }
  MemoryResource& memory() const noexcept { return table_.resource(); }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static Bloom decode(Decoder& header, Decoder& payload, MemoryResource& memory = default_memory());

 private:
  Bloom(const Params& params, MemoryResource& memory);
  template <class Words>
  Verdict observe(Words words, const Digest& digest) noexcept;
  template <class Words>
  bool holds(Words words, const Digest& digest) const noexcept;
  double sampled_fpr() const;

  // Probe i of a digest, in [0, bits): part of the format.
  std::uint64_t position(const Digest& digest, unsigned probe) const noexcept {
    return probe_position(digest, probe, params_.bits);
  }

  Params params_;
  std::uint64_t keys_ = 0;
  LineTable table_;
};

}  // namespace sluice
