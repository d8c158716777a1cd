// Segments of plain bits, in parts: arrays in which a key has one bit each (the paper's slices).
#pragma once

#include <cstring>

#include "sluice/kernels/age_partition.hpp"

namespace sluice::kernels {

inline constexpr std::size_t kPartUnitBytes = 64;
inline constexpr std::uint64_t kPartUnitBits = 512;

class BitSegments {
 public:
  struct Place {
    std::uint64_t* word;
    std::uint64_t mask;
    std::uint64_t in_segment;  // bit
  };

  // `bits` per part, whole cache lines; a segment's parts stand one after another.
  BitSegments(std::byte* table, std::uint64_t bits, unsigned parts) noexcept
      : words_(reinterpret_cast<std::uint64_t*>(table)), bits_(bits), parts_(parts) {}

  unsigned parts() const noexcept { return parts_; }
  Place place(const Digest& digest, unsigned physical, unsigned part) const noexcept {
    const unsigned array = physical * parts_ + part;
    const std::uint64_t bit = scale_to(part_hash(digest, array), bits_);
    const std::uint64_t at = array * bits_ + bit;
    return {words_ + at / 64, std::uint64_t{1} << (at % 64), part * bits_ + bit};
  }
  const void* address(const Place& place) const noexcept { return place.word; }
  bool has(const Place& place) const noexcept { return (*place.word & place.mask) != 0; }
  void set(const Place& place) const noexcept { *place.word |= place.mask; }
  std::uint64_t unit(const Place& place) const noexcept { return place.in_segment / kPartUnitBits; }
  void empty(unsigned physical, std::uint64_t unit) const noexcept {
    std::memset(words_ + physical * parts_ * (bits_ / 64) + unit * (kPartUnitBits / 64), 0,
                kPartUnitBytes);
  }

 private:
  std::uint64_t* words_;
  std::uint64_t bits_;
  unsigned parts_;
};

}  // namespace sluice::kernels
