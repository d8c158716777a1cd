// A key's digest: 128 uniform bits under the filter's secret. One per key; every position,
// fingerprint and sample is taken from it.
#pragma once

#include <compare>
#include <cstdint>

namespace sluice {

struct Digest {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
};

}  // namespace sluice
