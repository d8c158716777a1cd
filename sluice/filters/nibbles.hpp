// Packed counters of four bits, sixteen per word: with them a Bloom filter can take keys back.
//
// Source   Fan, Cao, Almeida, Broder 2000. A counter that reaches 15 is stuck there forever: it is
//          never lowered, so no key can be lost through it.
#pragma once

#include <bit>
#include <cstdint>

namespace sluice::nibbles {

inline constexpr unsigned kStuck = 15;

inline unsigned shift_of(std::uint64_t at) noexcept {
  return static_cast<unsigned>(at % 16) * 4;
}

// `words` are those of a table, as with_words() gives them.
template <class Words>
unsigned get(Words words, std::uint64_t at) noexcept {
  return static_cast<unsigned>(words.get(at / 16) >> shift_of(at)) & 15;
}

template <class Words>
void raise(Words words, std::uint64_t at) noexcept {
  std::uint64_t& word = words.at(at / 16);
  word += std::uint64_t{(word >> shift_of(at) & 15) != kStuck} << shift_of(at);
}

template <class Words>
void lower(Words words, std::uint64_t at) noexcept {
  std::uint64_t& word = words.at(at / 16);
  const std::uint64_t count = word >> shift_of(at) & 15;
  word -= std::uint64_t{count != 0 && count != kStuck} << shift_of(at);
}

// Sixteen sums at once, each at most 15: a sum is stuck at 15 if a part is stuck or if it would
// exceed 15.
constexpr std::uint64_t sum(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t kEven = 0x0F0F0F0F0F0F0F0FULL;
  const auto half = [](std::uint64_t x, std::uint64_t y) {
    const std::uint64_t raw = x + y;  // each byte at most 30
    const std::uint64_t over = (raw >> 4) & 0x0101010101010101ULL;
    return (raw | over * 15) & kEven;
  };
  return half(a & kEven, b & kEven) | half(a >> 4 & kEven, b >> 4 & kEven) << 4;
}

// How many counters of a word are not zero.
constexpr unsigned nonzero(std::uint64_t word) noexcept {
  word |= word >> 2;
  word |= word >> 1;
  return static_cast<unsigned>(std::popcount(word & 0x1111111111111111ULL));
}

// The sum of a word's counters.
constexpr unsigned total(std::uint64_t word) noexcept {
  constexpr std::uint64_t kEven = 0x0F0F0F0F0F0F0F0FULL;
  const std::uint64_t pairs = (word & kEven) + (word >> 4 & kEven);  // each byte at most 30
  return static_cast<unsigned>(pairs * 0x0101010101010101ULL >> 56);
}

constexpr bool any_stuck(std::uint64_t word) noexcept {
  return (word & word >> 1 & word >> 2 & word >> 3 & 0x1111111111111111ULL) != 0;
}

}  // namespace sluice::nibbles
