// All segments of an age partition in one cache line: what apbbf's `line` layout sets and asks.
//
// A line is 32 cells of 16 bits, and a key has one bit in each: 8, 16 or 32 segments of 4, 2 or 1
// cells. Which bits does not depend on the split.
#pragma once

#include "sluice/kernels/age_runs.hpp"
#include "sluice/kernels/apbbf.hpp"

namespace sluice::kernels {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr unsigned kLineWords = 8;

inline std::uint64_t line_of(const ApbbfTable& table, const Digest& digest) noexcept {
  return scale_to(digest.lo, table.blocks);
}

inline std::uint64_t* line_words(const ApbbfTable& table, std::uint64_t line) noexcept {
  return reinterpret_cast<std::uint64_t*>(table.bytes + line * kLineBytes);
}

// The low word chooses the line by its top bits; an odd multiple of it has all the others in every
// byte but the lowest, and costs one instruction.
inline std::uint64_t line_second_word(const Digest& digest) noexcept {
  return digest.lo * 0x9E3779B97F4A7C15ULL;
}

// A key's bits in word `i` of its line. Cells 2j and 2j + 1 make the j-th 32 bits of the line, and
// take four bits each of byte j / 4 of 32-bit part j % 4 of {high word, second word}.
inline std::uint64_t line_mask(const Digest& digest, std::uint64_t second, unsigned i) noexcept {
  std::uint64_t mask = 0;
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned j = 2 * i + half;
    const std::uint64_t byte = (j % 4 < 2 ? digest.hi : second) >> (32 * (j % 2) + 8 * (j / 4));
    mask |= (std::uint64_t{1} << (byte & 15) | std::uint64_t{0x10000} << (byte >> 4 & 15))
            << (32 * half);
  }
  return mask;
}

// Flips the bits of a segment's lane.
inline void xor_lane(std::uint64_t* words, unsigned physical, unsigned segments) noexcept {
  const unsigned width = 512 / segments;
  const std::uint64_t lane = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  words[physical * width / 64] ^= lane << (physical * width % 64);
}

// Masks that are the same for every line of a batch, for keys of one age.
struct LineLanes : AgeRuns {
  // Of a fresh line everything is kept; of a stale one, everything but the youngest lane.
  alignas(64) std::uint64_t keep[2][kLineWords] = {};
  // Nothing; the lanes that a key is written in.
  alignas(64) std::uint64_t take[2][kLineWords] = {};

  LineLanes(const AgeRing& ring, unsigned age) noexcept : AgeRuns(ring, age) {
    for (std::uint64_t& word : keep[0]) word = ~std::uint64_t{0};
    for (std::uint64_t& word : keep[1]) word = ~std::uint64_t{0};
    xor_lane(keep[1], ring.youngest, ring.segments());
    for (unsigned i = age; i < age + ring.k; ++i)
      xor_lane(take[1], ring.physical(i), ring.segments());
  }
};

// Which segments match, given the bits of the key that the line lacks (`missing`): the portable
// form.
inline std::uint64_t line_matches(const std::uint64_t* missing, unsigned segments) noexcept {
  const unsigned width = 512 / segments;
  const std::uint64_t lane = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  std::uint64_t matches = 0;
  for (unsigned i = 0; i < segments; ++i)
    matches |= std::uint64_t{(missing[i * width / 64] >> (i * width % 64) & lane) == 0} << i;
  return matches;
}

}  // namespace sluice::kernels
