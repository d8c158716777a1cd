// Inner loops of the age-partitioned blocked Bloom filter, in its three layouts.
//
//   segment  k + l blocked Bloom filters one after another; a key has one block in each
//   column   the blocks of a key in all segments are adjacent; one number chooses them all
//   line     all k + l segments are lanes of one cache line
//
// Blocks   `block` bits in `bits` equal lanes, one bit of a key in each.
// Lines    32 cells of 16 bits, one bit of a key in each: 8, 16 or 32 segments of 4, 2 or 1 cells.
//          The bits in the cells do not depend on the split.
//
// What is set for a digest is part of the snapshot format: a change here is a new version of the
// filter. The table is an array of little-endian words.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "sluice/kernels/age_partition.hpp"
#include "sluice/kernels/age_strips.hpp"
#include "sluice/kernels/blocked.hpp"

namespace sluice::kernels {

enum class ApbbfLayout : std::uint8_t { segment = 0, column = 1, line = 2 };

struct ApbbfTable {
  std::byte* bytes;      // null if there are pages
  std::uint64_t* stale;  // one bit per unit
  AgeRing ring;
  ApbbfLayout layout;
  unsigned block;        // bits of a block: 64 or 512; of a line: 512 / segments
  unsigned bits;         // of a key in a block: 4 or 8; in a lane of a line: 32 / segments
  std::uint64_t blocks;  // blocks per segment, or columns, or lines
  LinePages pages = {};
  AgeStrips strips = {};  // where the sweep is behind

  std::uint64_t total_bytes() const noexcept { return blocks * ring.segments() * block / 8; }
};

// Columns of up to this many segments are read as a whole. In longer ones segments are asked one by
// one, as in `segment`, so that a key need not touch them all.
inline constexpr unsigned kMostWholeColumn = 16;

// The unit that is emptied at once: a cache line for `segment`, otherwise a block of a column or a
// line.
constexpr std::uint64_t apbbf_units(ApbbfLayout layout, unsigned block,
                                    std::uint64_t blocks) noexcept {
  return layout == ApbbfLayout::segment ? blocks * block / 512 : blocks;
}

// Blocks of a column that are not asked as a whole are swept segment by segment, but for small ones,
// which share lines.
constexpr AgeStripShape apbbf_strips(ApbbfLayout layout, unsigned block, std::uint64_t blocks,
                                     unsigned segments) noexcept {
  const std::uint64_t units = apbbf_units(layout, block, blocks);
  if (layout == ApbbfLayout::segment ||
      (layout == ApbbfLayout::column && block == 512 && segments > kMostWholeColumn))
    return {units, kStripLines, segments};
  return {units, std::max<std::uint64_t>(1, kStripLines * 512 / (std::uint64_t{block} * segments)),
          1};
}

// See AgePartition::admit and ask.
std::size_t apbbf_admit(const ApbbfTable& table, AgeBatch& batch) noexcept;
void apbbf_ask(const ApbbfTable& table, const Digest* digests, std::size_t count,
               Verdict* verdicts) noexcept;
// Whether the key is in all segments of this age; and writes it there.
bool apbbf_holds(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept;
void apbbf_write(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept;
// Empties a unit of the youngest segment.
void apbbf_empty(const ApbbfTable& table, std::uint64_t unit) noexcept;

// The same for a table in pages (apbbf_pages.cpp), without vector code.
std::size_t apbbf_admit_paged(const ApbbfTable& table, AgeBatch& batch) noexcept;
void apbbf_ask_paged(const ApbbfTable& table, const Digest* digests, std::size_t count,
                     Verdict* verdicts) noexcept;
bool apbbf_holds_paged(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept;
void apbbf_write_paged(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept;
void apbbf_empty_paged(const ApbbfTable& table, std::uint64_t unit) noexcept;

// The same where the sweep is behind (apbbf_behind.cpp), in plain code.
std::size_t apbbf_admit_behind(const ApbbfTable& table, AgeBatch& batch) noexcept;
void apbbf_ask_behind(const ApbbfTable& table, const Digest* digests, std::size_t count,
                      Verdict* verdicts) noexcept;
bool apbbf_holds_behind(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept;
void apbbf_write_behind(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept;
void apbbf_sweep_behind(const ApbbfTable& table, std::uint64_t strip) noexcept;

// --- blocks: the definition that every vector form must equal -----------------------------------

template <unsigned kBlock, unsigned kBits, bool kColumn, bool kPaged = false>
class BlockSegments {
 public:
  static constexpr unsigned kWords = kBlock / 64;
  static constexpr unsigned kLane = kBlock / kBits;
  static constexpr unsigned kPositionBits = static_cast<unsigned>(std::countr_zero(kLane));

  struct Place {
    std::conditional_t<kPaged, std::uint64_t, std::uint64_t*> block;  // in pages: its first word
    std::uint64_t unit;
    std::uint64_t positions;  // kPositionBits per lane, the first lane lowest
  };

  explicit BlockSegments(const ApbbfTable& table) noexcept
      : blocks_(table.blocks), segments_(table.ring.segments()) {
    if constexpr (kPaged)
      words_ = {table.pages};
    else
      words_ = {reinterpret_cast<std::uint64_t*>(table.bytes)};
  }

  static constexpr unsigned parts() noexcept { return 1; }
  [[gnu::always_inline]] Place place(const Digest& digest, unsigned physical,
                                     unsigned) const noexcept {
    const std::uint64_t hash = part_hash(digest, physical);
    if constexpr (kColumn) {
      const std::uint64_t column = scale_to(digest.lo, blocks_);
      return place_at((column * segments_ + physical) * kWords, column, hash);
    }
    // The block's number is the top of the hash, which in a large table leaves too few bits for the
    // positions, so these come from another mix of it.
    const std::uint64_t block = scale_to(hash, blocks_);
    return place_at((physical * blocks_ + block) * kWords, block * kWords / 8,
                    fold_multiply(hash, 0xD6E8FEB86659FD93ULL));
  }
  const void* address(const Place& place) const noexcept {
    if constexpr (kPaged)
      return words_.address(place.block);
    else
      return place.block;
  }
  std::uint64_t unit(const Place& place) const noexcept { return place.unit; }

  bool has(const Place& place) const noexcept {
    std::uint64_t missing = 0;
    for (unsigned i = 0; i < kWords; ++i) {
      if constexpr (kPaged)
        missing |= mask(place.positions, i) & ~words_.get(place.block + i);
      else
        missing |= mask(place.positions, i) & ~place.block[i];
    }
    return missing == 0;
  }
  // With what `keep` leaves of the block.
  void set(const Place& place, std::uint64_t keep = ~std::uint64_t{0}) const noexcept {
    for (unsigned i = 0; i < kWords; ++i) {
      if constexpr (kPaged) {
        std::uint64_t& word = words_.at(place.block + i);
        word = (word & keep) | mask(place.positions, i);
      } else {
        place.block[i] = (place.block[i] & keep) | mask(place.positions, i);
      }
    }
  }
  void empty(unsigned physical, std::uint64_t unit) const noexcept {
    if constexpr (kColumn)
      std::memset(&words_.at((unit * segments_ + physical) * kWords), 0, kBlock / 8);
    else
      std::memset(&words_.at(physical * blocks_ * kWords + unit * 8), 0, 64);
  }

  // A key's bits in word `i` of its block.
  static std::uint64_t mask(std::uint64_t positions, unsigned i) noexcept {
    if constexpr (kLane >= 64) {
      constexpr unsigned kWordsOfLane = kLane / 64;
      const std::uint64_t position =
          positions >> (kPositionBits * (i / kWordsOfLane)) & (kLane - 1);
      return std::uint64_t{position / 64 == i % kWordsOfLane} << (position % 64);
    } else {
      std::uint64_t bits = 0;
      for (unsigned lane = 0; lane < 64 / kLane; ++lane)
        bits |= std::uint64_t{1} << (kLane * lane +
                                     (positions >> (kPositionBits * lane) & (kLane - 1)));
      return bits;
    }
  }

 private:
  [[gnu::always_inline]] Place place_at(std::uint64_t word, std::uint64_t unit,
                                        std::uint64_t positions) const noexcept {
    if constexpr (kPaged)
      return {word, unit, positions};
    else
      return {words_.words + word, unit, positions};
  }

  std::conditional_t<kPaged, PagedWords, FlatWords> words_;
  std::uint64_t blocks_;
  unsigned segments_;
};

}  // namespace sluice::kernels
