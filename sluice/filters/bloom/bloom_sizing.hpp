// What keys, error, memory and probes make of a classical Bloom filter, whichever of them are
// given: shared by `bloom`, `counting` and `dynamic`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

struct BloomWish {
  double fpr = 0;
  std::optional<std::uint64_t> keys = {};
  std::optional<std::uint64_t> places = {};  // bits or counters
  std::optional<std::uint64_t> probes = {};
  std::uint64_t standard_keys = 0;  // planned for when neither keys nor places are given
};

struct BloomSize {
  std::uint64_t places = 0;
  unsigned probes = 0;
  std::uint64_t capacity = 0;
};

inline constexpr std::uint64_t kMostBloomKeys = std::uint64_t{1} << 44;

// `places` is a multiple of `step`, and at most `most`. Throws BadParameters, naming `filter`, when
// more would be needed.
BloomSize bloom_size(std::string_view filter, const BloomWish& wish, std::uint64_t step,
                     std::uint64_t most);

// At the optimum every probe halves the error.
unsigned best_bloom_probes(double fpr);

}  // namespace sluice
