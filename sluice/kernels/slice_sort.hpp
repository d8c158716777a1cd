// Inner loops of sliced filters: which slice a digest belongs to, and sorting by two of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/base/verdict.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice::kernels {

inline constexpr std::uint32_t kSliceMixer = 0x85EBCA6B;  // odd, and without pattern

// The slice of a key: part of the snapshot format.
//
// From the low halves of both words, which no filter uses up: places are taken from the top of the
// low word (blocked bloom, cohort, exact, apbbf) or, by `growing`, from its low end and then with
// tags from the top of the high word; bits and fingerprints from the high word; or all from
// products of the whole words (probe.hpp, age_partition.hpp). Whatever a filter has taken, the sum
// is still uniform, so that within a slice its errors are those of a filter with fewer keys. The
// top of both words would not do: they are cohort's bucket and fingerprint, and a slice known to
// have half of their pairs would err twice as often.
constexpr unsigned slice_of(const Digest& digest, unsigned slices) noexcept {
  const std::uint32_t sum =
      static_cast<std::uint32_t>(digest.lo) + static_cast<std::uint32_t>(digest.hi);
  return static_cast<unsigned>(std::uint64_t{sum * kSliceMixer} * slices >> 32);
}

// What sort_two may write beyond the end of the digests, and gather_two read beyond that of the
// verdicts.
inline constexpr std::size_t kSliceSlack = 8;

// Two slices: those of the first go to `sorted`, of the second `apart` from there, in order; both
// have room for all, and slack. Bit i % 8 of marks[i / 8] says whether record i is of the second.
// Returns how many are.
std::size_t sort_two(const Digest* digests, std::size_t count, Digest* sorted, std::size_t apart,
                     std::uint8_t* marks) noexcept;

// Brings verdicts on what was sorted so, which lie likewise, back in order.
void gather_two(const std::uint8_t* marks, std::size_t count, const Verdict* sorted,
                std::size_t apart, Verdict* verdicts) noexcept;

}  // namespace sluice::kernels
