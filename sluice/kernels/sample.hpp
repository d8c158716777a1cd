// Finds the keys of a sample among many: those whose sample word is at most a threshold.
//
// Cost     about two instructions per key with vectors of 256 bits, which look at 8 keys per step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/hash/digest.hpp"

namespace sluice::kernels {

// The sample word. Its high half, which nearly always decides, is made of the low halves of a
// digest's words, so that vectors of 32-bit lanes can compute it. It uses low bits because filters
// take positions and fingerprints from high bits: a sample by those would hold keys that collide.
// Each bit depends on both words.
inline std::uint64_t sample_word(const Digest& digest) noexcept {
  constexpr std::uint32_t kOdd = 0x9E3779B1;
  const std::uint32_t high =
      static_cast<std::uint32_t>(digest.lo) * kOdd + static_cast<std::uint32_t>(digest.hi);
  const auto low = static_cast<std::uint32_t>((digest.lo ^ digest.hi) >> 32);
  return std::uint64_t{high} << 32 | low;
}

// Returns the first index from `from` on whose sample word is at most `threshold`, or the number of
// digests if there is none.
std::size_t next_sampled(std::span<const Digest> digests, std::size_t from,
                         std::uint64_t threshold);

// The same, one key at a time.
std::size_t next_sampled_portable(std::span<const Digest> digests, std::size_t from,
                                  std::uint64_t threshold);

}  // namespace sluice::kernels
