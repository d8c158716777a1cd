// What is stale in an age partition whose sweep is behind: of any segment, not of the youngest only.
//
// Units are swept in strips: a few of one segment, or of all segments where these lie side by side.
// A strip carries the number of rotations at which it was last swept, its stamp. Whatever became the
// youngest segment later is stale there: a segment of age a is stale in a strip that was swept more
// than a rotations ago. So a rotation touches nothing, however many strips are behind. A strip is
// swept before a key is written to what is stale in it.
//
// Before the sweep fell behind, at the rotation `floor`, every segment was clean but the youngest of
// that time, which has a mark per unit. No strip is read as swept earlier than that.
#pragma once

#include <algorithm>
#include <cstring>

#include "sluice/base/line_table.hpp"
#include "sluice/kernels/age_partition.hpp"

namespace sluice::kernels {

// So many lines that a key written to one costs a few times what it does otherwise; and few enough
// stamps: 0.8 % of the table.
inline constexpr std::uint64_t kStripLines = 8;

struct AgeStripShape {
  std::uint64_t units = 0;     // of a segment
  std::uint64_t of_strip = 1;  // units
  unsigned segments = 1;       // that have strips of their own; 1: all share theirs

  std::uint64_t of_segment() const noexcept { return (units + of_strip - 1) / of_strip; }
  std::uint64_t strips() const noexcept { return of_segment() * segments; }
};

struct AgeStrips {
  LineTable* stamps =
      nullptr;  // the low 32 bits of `taken` at the last sweep; null: none is behind
  std::uint64_t* marks = nullptr;  // a bit per unit of the segment that was the youngest at `floor`
  std::uint64_t taken = 0;         // rotations so far
  std::uint64_t floor = 0;
  AgeRing ring = {};
  AgeStripShape shape = {};

  explicit operator bool() const noexcept { return stamps != nullptr; }

  // Rotations since a strip was swept. After 2^32 in which it was not, it would count from 0 again:
  // a key sweeps a strip or more, and no table has as many.
  std::uint64_t since(std::uint64_t strip) const noexcept {
    std::uint32_t at;
    std::memcpy(&at, stamps->to_read(strip / kOfLine) + strip % kOfLine * sizeof at, sizeof at);
    return std::min<std::uint64_t>(static_cast<std::uint32_t>(taken) - at, taken - floor);
  }
  void set_since(std::uint64_t strip, std::uint64_t rotations) const noexcept {
    const auto at = static_cast<std::uint32_t>(taken - rotations);
    std::memcpy(stamps->to_write(strip / kOfLine) + strip % kOfLine * sizeof at, &at, sizeof at);
  }

  std::uint64_t strip_of(unsigned physical, std::uint64_t unit) const noexcept {
    return (shape.segments == 1 ? 0 : physical * shape.of_segment()) + unit / shape.of_strip;
  }
  // Of the segment that has marks; no segment is as old once its marks mean nothing.
  std::uint64_t marked_age() const noexcept { return taken - floor; }
  bool is_marked(unsigned age, std::uint64_t unit) const noexcept {
    return age == marked_age() && StaleUnits(marks).has(unit);
  }
  // Whether a unit is marked; from then on it is not.
  bool take_mark(std::uint64_t unit) const noexcept {
    const bool marked = StaleUnits(marks).has(unit);
    if (marked) StaleUnits(marks).remove(unit);
    return marked;
  }
  // What AgePartition asks.
  static constexpr bool kAnyAge = true;
  bool has(unsigned age, unsigned physical, std::uint64_t unit) const noexcept {
    return age < since(strip_of(physical, unit)) || is_marked(age, unit);
  }
  template <class Segments>
  void freshen(const Segments& segments, unsigned physical, std::uint64_t unit) const noexcept {
    sweep(segments, strip_of(physical, unit));
  }

  // Segments that lie side by side may sweep units of all of them at once.
  template <class Segments>
  void sweep(const Segments& segments, std::uint64_t strip) const noexcept {
    const std::uint64_t rotations = since(strip);
    if (rotations == 0) return;
    const std::uint64_t first = strip % shape.of_segment() * shape.of_strip;
    const std::uint64_t end = std::min(first + shape.of_strip, shape.units);
    if constexpr (requires { segments.sweep(first, end, rotations); }) {
      segments.sweep(first, end, rotations);
    } else if (shape.segments > 1) {
      sweep(segments, static_cast<unsigned>(strip / shape.of_segment()), first, end, rotations);
    } else {
      for (unsigned physical = 0; physical < ring.segments(); ++physical)
        sweep(segments, physical, first, end, rotations);
    }
    set_since(strip, 0);
  }

 private:
  template <class Segments>
  void sweep(const Segments& segments, unsigned physical, std::uint64_t first, std::uint64_t end,
             std::uint64_t rotations) const noexcept {
    const unsigned age = ring.age(physical);
    if (age >= rotations && age != marked_age()) return;
    for (std::uint64_t unit = first; unit < end; ++unit)
      if ((age == marked_age() && take_mark(unit)) || age < rotations)
        segments.empty(physical, unit);
  }

  static constexpr std::uint64_t kOfLine = kCacheLineBytes / sizeof(std::uint32_t);
};

}  // namespace sluice::kernels
