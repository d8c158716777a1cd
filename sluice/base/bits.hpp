// Small integer arithmetic shared by hashing, kernels and filters.
#pragma once

#include <cstdint>

namespace sluice {

__extension__ using Uint128 = unsigned __int128;

// Maps a uniform 64-bit word onto [0, n) by its high bits: no division, and a bias below n / 2^64,
// where `word % n` would cost a division.
constexpr std::uint64_t scale_to(std::uint64_t word, std::uint64_t n) noexcept {
  return static_cast<std::uint64_t>((Uint128{word} * n) >> 64);
}

// Multiplies to 128 bits and folds the halves: a cheap strong mix of two words.
constexpr std::uint64_t fold_multiply(std::uint64_t a, std::uint64_t b) noexcept {
  const Uint128 product = Uint128{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace sluice
