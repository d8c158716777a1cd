// Segments of plain bits, in parts: arrays in which a key has one bit each (the paper's slices).
#pragma once

#include <cstring>

#include "sluice/base/line_table.hpp"
#include "sluice/kernels/age_partition.hpp"

namespace sluice::kernels {

inline constexpr std::size_t kPartUnitBytes = 64;
inline constexpr std::uint64_t kPartUnitBits = 512;

// `Words` are those of a table, as with_words() gives them.
template <class Words>
class BitSegments {
 public:
  struct Place {
    std::uint64_t word;
    std::uint64_t mask;
    std::uint64_t in_segment;  // bit
  };

  // `bits` per part, whole cache lines; a segment's parts follow one another.
  BitSegments(Words words, std::uint64_t bits, unsigned parts) noexcept
      : words_(words), bits_(bits), parts_(parts) {}

  unsigned parts() const noexcept { return parts_; }
  Place place(const Digest& digest, unsigned physical, unsigned part) const noexcept {
    const unsigned array = physical * parts_ + part;
    const std::uint64_t bit = scale_to(part_hash(digest, array), bits_);
    const std::uint64_t at = array * bits_ + bit;
    return {at / 64, std::uint64_t{1} << (at % 64), part * bits_ + bit};
  }
  const void* address(const Place& place) const noexcept { return words_.address(place.word); }
  bool has(const Place& place) const noexcept { return (words_.get(place.word) & place.mask) != 0; }
  void set(const Place& place) const noexcept { words_.at(place.word) |= place.mask; }
  std::uint64_t unit(const Place& place) const noexcept { return place.in_segment / kPartUnitBits; }
  void empty(unsigned physical, std::uint64_t unit) const noexcept {
    const std::uint64_t first = physical * parts_ * (bits_ / 64) + unit * (kPartUnitBits / 64);
    std::memset(&words_.at(first), 0, kPartUnitBytes);
  }

 private:
  Words words_;
  std::uint64_t bits_;
  unsigned parts_;
};

}  // namespace sluice::kernels
