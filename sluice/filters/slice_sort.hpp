// Sorts the digests of a batch by the slice of a filter that each belongs to, in order within a
// slice, and brings verdicts back to where their digests came from.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/base/verdict.hpp"
#include "sluice/hash/digest.hpp"
#include "sluice/kernels/slice_sort.hpp"

namespace sluice {

inline constexpr unsigned kMostSlices = 64;

using kernels::slice_of;

// Where what is sorted lies. Two slices have the whole length each, since they are sorted in one
// pass.
struct SliceSpace {
  // Of digests, verdicts and places.
  static constexpr std::size_t length_of(std::size_t records, unsigned slices) noexcept {
    return slices == 2 ? 2 * (records + kApart) : records;
  }
  // Between the two: more than the kernels' slack, and no multiple of a page, or stores and loads
  // that have nothing to do with each other would be taken for the same.
  static constexpr std::size_t kApart = 80;

  Digest* digests;
  std::uint16_t* places;  // in the batch; not of two slices
  Verdict* verdicts;
  std::uint8_t* slices;  // of each record of the batch; of two slices a bit each
  std::size_t records;   // most that there is room for
};
static_assert(SliceSpace::kApart >= kernels::kSliceSlack);

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
  // Calls visit(i, place) for each record i of the slice with its place in the batch, in order.
  template <class Visit>
  void for_each_place(unsigned slice, const Visit& visit) const {
    if (slices_ != 2) {
      for (std::size_t i = 0; i < size(slice); ++i) visit(i, space_.places[begin_[slice] + i]);
      return;
    }
    std::size_t i = 0;
    for (std::size_t place = 0; place < records_; ++place)
      if ((space_.slices[place / 8] >> (place % 8) & 1u) == slice) visit(i++, place);
  }
  // The verdicts of all slices, in the order of the batch.
  void gather(std::span<Verdict> verdicts) const noexcept;

 private:
  void sort_two(std::span<const Digest> digests) noexcept;
  void sort_many(std::span<const Digest> digests) noexcept;

  SliceSpace space_;
  unsigned slices_ = 0;
  std::size_t records_ = 0;
  std::array<std::uint32_t, kMostSlices> begin_{};
  std::array<std::uint32_t, kMostSlices> end_{};
};

}  // namespace sluice
