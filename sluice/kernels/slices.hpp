// Segments of plain slices: bit arrays in which a key has one bit each.
#pragma once

#include <cstring>

#include "sluice/kernels/age_partition.hpp"

namespace sluice::kernels {

inline constexpr std::size_t kSliceUnitBytes = 64;
inline constexpr std::uint64_t kSliceUnitBits = 512;

class SliceSegments {
 public:
  struct Place {
    std::uint64_t* word;
    std::uint64_t mask;
    std::uint64_t in_segment;  // bit
  };

  // `bits` a slice, whole cache lines; a segment's slices stand one after another.
  SliceSegments(std::byte* table, std::uint64_t bits, unsigned slices) noexcept
      : words_(reinterpret_cast<std::uint64_t*>(table)), bits_(bits), slices_(slices) {}

  unsigned parts() const noexcept { return slices_; }
  Place place(const Digest& digest, unsigned physical, unsigned part) const noexcept {
    const unsigned slice = physical * slices_ + part;
    const std::uint64_t bit = scale_to(slice_hash(digest, slice), bits_);
    const std::uint64_t at = slice * bits_ + bit;
    return {words_ + at / 64, std::uint64_t{1} << (at % 64), part * bits_ + bit};
  }
  const void* address(const Place& place) const noexcept { return place.word; }
  bool has(const Place& place) const noexcept { return (*place.word & place.mask) != 0; }
  void set(const Place& place) const noexcept { *place.word |= place.mask; }
  std::uint64_t unit(const Place& place) const noexcept {
    return place.in_segment / kSliceUnitBits;
  }
  void empty(unsigned physical, std::uint64_t unit) const noexcept {
    std::memset(words_ + physical * slices_ * (bits_ / 64) + unit * (kSliceUnitBits / 64), 0,
                kSliceUnitBytes);
  }

 private:
  std::uint64_t* words_;
  std::uint64_t bits_;
  unsigned slices_;
};

}  // namespace sluice::kernels
