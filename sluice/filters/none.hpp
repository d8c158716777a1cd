// No filter: every event is distinct. The baseline of benchmarks: it shows the cost of everything
// else.
//
// Format   snapshot kind 255, version 1.
#pragma once

#include <algorithm>

#include "sluice/filters/contract.hpp"

namespace sluice {

class None {
 public:
  static constexpr FilterKind kKind = FilterKind::none;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{.no_false_negatives = false,
                                            .no_false_positives = true};

  struct Params {
    Settings settings() const { return {}; }
    friend bool operator==(const Params&, const Params&) = default;
  };

  static None make(const Params&, MemoryResource& memory = default_memory()) {
    return None(memory);
  }

  Verdict observe(const Digest&) noexcept { return Verdict::distinct; }
  bool may_contain(const Digest&) const noexcept { return false; }
  void insert(const Digest&) noexcept {}
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts) noexcept {
    std::ranges::fill(verdicts, Verdict::distinct);
    return digests.size();
  }
  void may_contain(std::span<const Digest>, std::span<Verdict> verdicts) const noexcept {
    std::ranges::fill(verdicts, Verdict::distinct);
  }
  std::size_t insert(std::span<const Digest> digests) noexcept { return digests.size(); }
  void clear() noexcept {}

  Params params() const noexcept { return {}; }
  FilterStats stats() const { return {}; }
  std::uint64_t bytes() const noexcept { return 0; }
  MemoryResource& memory() const noexcept { return *memory_; }

  void encode_header(Encoder&) const {}
  void encode_payload(Encoder&) const {}
  static None decode(Decoder&, Decoder& payload, MemoryResource& memory = default_memory()) {
    payload.expect_remaining(0, "filter 'none'");
    return None(memory);
  }

 private:
  explicit None(MemoryResource& memory) noexcept : memory_(&memory) {}

  MemoryResource* memory_;  // of its holder
};

static_assert(Filter<None>);

}  // namespace sluice
