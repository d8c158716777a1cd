// Blocked Bloom filter: a set in bits, with all bits of a key in one cache line.
//
// Source   Putze, Sanders & Singler 2007 for blocks; one bit per lane as in split-block filters. Of
//          the layouts measured (docs/filters/bloom.md), 8 lanes of 64 bits take the fewest bits
//          above an error of 1.6·10⁻⁴, and 16 lanes of 32 bits below it.
// Differs  Blocks of a whole cache line rather than half of one: uneven loads cost less.
//          At 10⁻⁶ it takes 39 bits per key; half-line blocks take 65, a classical filter 29.
// Cost     observe: one cache line, no allocation.
// Errors   `duplicate` may be wrong (model::blocked_bloom_fpr); `distinct` never is.
// Use it   when the number of keys is known: it is the default with --expect.
// Avoid    below 10⁻⁸, where a classical filter (bloom.hpp) takes little more than half the memory.
// Format   snapshot kind 3, version 1.
#pragma once

#include "sluice/base/line_table.hpp"
#include "sluice/filters/contract.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/kernels/blocked.hpp"

namespace sluice {

class BlockedBloom {
 public:
  static constexpr FilterKind kKind = FilterKind::blocked_bloom;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{};

  struct Params {
    std::uint64_t blocks = 0;    // of 64 bytes
    unsigned probes = 0;         // k: 8 or 16, one per lane
    std::uint64_t capacity = 0;  // n: keys it is planned for
    double target_fpr = 0;       // the error it is planned for

    Settings settings() const;
    Forecast forecast() const;
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Throws BadParameters.
  static BlockedBloom make(const Params& params, MemoryResource& memory = default_memory());

  Verdict observe(const Digest& digest) noexcept {
    const Verdict verdict = kernels::blocked_observe_one(table(), digest);
    keys_ += verdict == Verdict::distinct;
    return verdict;
  }
  bool may_contain(const Digest& digest) const noexcept {
    return kernels::blocked_may_contain_one(table(), digest) == Verdict::duplicate;
  }
  void insert(const Digest& digest) noexcept { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts) noexcept;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  std::size_t insert(std::span<const Digest> digests) noexcept;
  void clear() noexcept;
  // As in bloom.hpp.
  void merge(const BlockedBloom& other);

  const Params& params() const noexcept { return params_; }
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept { return memory_.taken(); }
  MemoryResource& memory() const noexcept { return memory_.resource(); }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static BlockedBloom decode(Decoder& header, Decoder& payload,
                             MemoryResource& memory = default_memory());

 private:
  BlockedBloom(const Params& params, MemoryResource& memory);
  double sampled_fpr() const;
  kernels::BlockedTable table() const noexcept {
    return {reinterpret_cast<std::uint64_t*>(memory_.data()), params_.blocks, params_.probes,
            memory_.pages()};
  }

  Params params_;
  std::uint64_t keys_ = 0;
  LineTable memory_;
};

}  // namespace sluice
