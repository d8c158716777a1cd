// Sorts the digests of a batch by the slice of a filter that each belongs to, in order within a
// slice, and brings verdicts back to where their digests came from.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/base/bits.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

inline constexpr unsigned kMostSlices = 64;

// The slice of a key: part of the snapshot format.
//
// Filters take places from the top bits of the low word (blocked bloom, cohort, exact, apbbf), bits
// and fingerprints from the high word, or both from products of the two with constants of their own
// (probe.hpp, age_partition.hpp). This is one more such product, with constants that none of them
// has: knowing it says nothing about any of those, so within a slice they are as uniform as among
// all keys. Two bits of the digest itself would not do: `growing` uses them all as it grows.
inline unsigned slice_of(const Digest& digest, unsigned slices) noexcept {
  const std::uint64_t mixed =
      fold_multiply(digest.lo ^ 0x2D358DCCAA6C78A5ULL, digest.hi ^ 0x8BB84B93962EACC9ULL);
  return static_cast<unsigned>((mixed >> 32) * slices >> 32);
}

// Where what is sorted lies; all of one length, but twice as many digests, places and verdicts for
// two slices, which are sorted in one pass.
struct SliceSpace {
  static constexpr std::size_t length_of(std::size_t records, unsigned slices) noexcept {
    return slices == 2 ? 2 * records : records;
  }
  Digest* digests;
  std::uint16_t* places;  // in the batch
  Verdict* verdicts;
  std::uint8_t* slices;  // of each record of the batch
  std::size_t records;   // most that there is room for
};

class SliceSort {
 public:
  explicit SliceSort(const SliceSpace& space) noexcept : space_(space) {}

  void sort(std::span<const Digest> digests, unsigned slices) noexcept;

  std::size_t size(unsigned slice) const noexcept { return end_[slice] - begin_[slice]; }
  std::span<const Digest> digests(unsigned slice) const noexcept {
    return {space_.digests + begin_[slice], size(slice)};
  }
  std::span<Verdict> verdicts(unsigned slice) const noexcept {
    return {space_.verdicts + begin_[slice], size(slice)};
  }
  // Where record i of the slice was in the batch.
  std::size_t place(unsigned slice, std::size_t i) const noexcept {
    return space_.places[begin_[slice] + i];
  }
  // The verdicts of all slices, in the order of the batch.
  void gather(std::span<Verdict> verdicts, unsigned slices) const noexcept;

 private:
  void sort_two(std::span<const Digest> digests) noexcept;
  void sort_many(std::span<const Digest> digests, unsigned slices) noexcept;

  SliceSpace space_;
  std::array<std::uint32_t, kMostSlices> begin_{};
  std::array<std::uint32_t, kMostSlices> end_{};
};

}  // namespace sluice
