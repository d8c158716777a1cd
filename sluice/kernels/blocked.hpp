// Inner loops of the blocked Bloom filter: a key's bits all lie in one 64-byte block.
//
// Layout   A block is split into equal lanes and a key sets one bit in each: 8 lanes of 64 bits
//          (8 probes) or 16 lanes of 32 bits (16 probes). With one bit per lane a key's mask is one
//          vector shift, and no two of its bits can coincide.
// Bits     The block comes from the digest's low word, the bits within it from the high word, and
//          with 16 probes also from a mix of both: 8 × 6 and 16 × 5 bits, each used once.
//
// The table is an array of little-endian words, and what is set for a digest is part of the
// snapshot format: a change here is a new version of the filter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/base/bits.hpp"
#include "sluice/base/line_table.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice::kernels {

inline constexpr std::size_t kBlockBytes = 64;
inline constexpr std::size_t kBlockWords = kBlockBytes / sizeof(std::uint64_t);

struct BlockedTable {
  std::uint64_t* words;  // blocks × 8, aligned to a cache line; null if there are pages
  std::uint64_t blocks;
  unsigned probes;  // 8 or 16
  LinePages pages = {};
};

inline std::uint64_t* block_of(const BlockedTable& table, const Digest& digest) noexcept {
  return table.words + scale_to(digest.lo, table.blocks) * kBlockWords;
}

// Access to either form of table: to read, or to write.
template <bool kRemember>
std::uint64_t* block_in_pages(const BlockedTable& table, const Digest& digest) noexcept {
  const std::uint64_t block = scale_to(digest.lo, table.blocks);
  if constexpr (kRemember) return reinterpret_cast<std::uint64_t*>(table.pages.to_write(block));
  return reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(table.pages.to_read(block)));
}
template <bool kRemember>
std::uint64_t* any_block_of(const BlockedTable& table, const Digest& digest) noexcept {
  return table.pages ? block_in_pages<kRemember>(table, digest) : block_of(table, digest);
}

// A second word of in-block bits. The block's number is the low word's top bits, so what is left of
// that word is too little for large tables: multiply it in instead.
inline std::uint64_t second_word(const Digest& digest) noexcept {
  return fold_multiply(digest.hi ^ 0xA0761D6478BD642FULL, digest.lo ^ 0xE7037ED1A0B428DBULL);
}

// Single bits by number. On baseline x86-64 a shift by a register takes three steps, a load takes
// one.
inline constexpr std::array<std::uint64_t, 64> kSingleBits = [] {
  std::array<std::uint64_t, 64> bits{};
  for (unsigned i = 0; i < 64; ++i) bits[i] = std::uint64_t{1} << i;
  return bits;
}();

// The bits of `digest` in word `i` of its block: the definition that every vector form must equal.
// 16 probes: 32-bit lane j takes 5 bits at 5 × (j / 4) of 32-bit part j % 4 of {high, second}.
inline std::uint64_t block_mask(const BlockedTable& table, const Digest& digest,
                                unsigned i) noexcept {
  if (table.probes == 8) return kSingleBits[(digest.hi >> (6 * i)) & 63];
  const std::uint64_t word = i % 2 == 0 ? digest.hi : second_word(digest);
  const unsigned shift = 5 * (i / 2);
  return kSingleBits[(word >> shift) & 31] | kSingleBits[32 + ((word >> (32 + shift)) & 31)];
}

// For each digest in order: ask, remember, write the verdict. Returns how many were distinct.
std::size_t blocked_observe(const BlockedTable& table, const Digest* digests, std::size_t count,
                            Verdict* verdicts) noexcept;
// Ask only.
void blocked_may_contain(const BlockedTable& table, const Digest* digests, std::size_t count,
                         Verdict* verdicts) noexcept;

// The portable forms, for single keys and as the reference in tests.
inline Verdict blocked_observe_one(const BlockedTable& table, const Digest& given) noexcept {
  const Digest digest = given;  // a copy: no table word can alias it
  std::uint64_t* block = any_block_of<true>(table, digest);
  std::uint64_t missing = 0;
  for (unsigned i = 0; i < kBlockWords; ++i) {
    const std::uint64_t mask = block_mask(table, digest, i);
    missing |= mask & ~block[i];
    block[i] |= mask;
  }
  return missing == 0 ? Verdict::duplicate : Verdict::distinct;
}

inline Verdict blocked_may_contain_one(const BlockedTable& table, const Digest& digest) noexcept {
  const std::uint64_t* block = any_block_of<false>(table, digest);
  std::uint64_t missing = 0;
  for (unsigned i = 0; i < kBlockWords; ++i) missing |= block_mask(table, digest, i) & ~block[i];
  return missing == 0 ? Verdict::duplicate : Verdict::distinct;
}

}  // namespace sluice::kernels
