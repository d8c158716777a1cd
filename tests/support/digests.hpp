// Digests for tests that have no keys to hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice::testing_support {

// A digest for a key that is a number.
inline Digest digest_of(std::uint64_t key) {
  SplitMix64 random(key);
  return {random.next(), random.next()};
}

// Digests drawn from one seed: all different for any count that a test can hold.
inline std::vector<Digest> random_digests(std::uint64_t seed, std::size_t count) {
  SplitMix64 random(seed);
  std::vector<Digest> digests(count);
  for (Digest& digest : digests) digest = {random.next(), random.next()};
  return digests;
}

}  // namespace sluice::testing_support
