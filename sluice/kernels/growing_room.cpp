// The rare ways of the growing filter: slots one at a time, moving, strays.
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "sluice/kernels/growing.hpp"
#include "sluice/kernels/room_search.hpp"

namespace sluice::kernels {
namespace {

std::uint64_t low_bits(std::uint64_t word, unsigned count) noexcept {
  return count >= 64 ? word : word & ((std::uint64_t{1} << count) - 1);
}

std::array<std::byte, kGrowingBucketBytes> line_copy(const std::byte* line) noexcept {
  std::array<std::byte, kGrowingBucketBytes> copy;
  std::memcpy(copy.data(), line, copy.size());
  return copy;
}

// Calls run with the bucket's slots as an array of their width.
template <class Run>
auto with_slots(const GrowingTable& table, std::uint64_t bucket, Run run) noexcept {
  const std::byte* line = table.line_to_read(bucket);
  switch (table.shape.slot_bits) {
    case 16:
      return run(std::bit_cast<std::array<std::uint16_t, 32>>(line_copy(line)));
    case 32:
      return run(std::bit_cast<std::array<std::uint32_t, 16>>(line_copy(line)));
    default:
      return run(std::bit_cast<std::array<std::uint64_t, 8>>(line_copy(line)));
  }
}

unsigned taken(const GrowingTable& table, std::uint64_t bucket) noexcept {
  return with_slots(table, bucket, [](const auto& slots) {
    unsigned count = 0;
    for (const auto slot : slots) count += slot != 0;
    return count;
  });
}

// Makes a slot free in one of two full buckets. Occupants whose other bucket has been split are
// tried first: there it is emptier, and one step is mostly enough. An occupant of which too little
// is known to tell its other bucket stays.
std::optional<FoundRoom> make_room(GrowingTable& table, std::uint64_t first,
                                   std::uint64_t second) noexcept {
  const auto each_occupant = [&](std::uint64_t bucket, auto visit) {
    std::array<std::pair<unsigned, std::uint64_t>, 32> later;
    std::size_t count = 0;
    const unsigned level = table.level_of(bucket), tag_bits = table.shape.tag_bits;
    const GrowingHalf& to = table.half(bucket ^ 1);
    with_slots(table, bucket, [&](const auto& slots) {
      for (unsigned i = 0; i < slots.size(); ++i) {
        const std::uint64_t rest = slots[i] >> tag_bits;
        const std::uint64_t hash =
            (rest << level | bucket) ^ growing_mix(low_bits(slots[i], tag_bits));
        const unsigned there = to.level_of(hash);
        // The delimiter must lie above what is used: else too little is known.
        if (rest << level >> there == 0) continue;
        const std::uint64_t other = low_bits(hash, there);
        if (there == to.level)
          later[count++] = {i, other};
        else if (visit(i, other))
          return;
      }
      for (std::size_t i = 0; i < count; ++i)
        if (visit(later[i].first, later[i].second)) return;
    });
  };
  return search_room(
      first, second, each_occupant,
      [&](std::uint64_t bucket) {
        ++table.lines_touched;
        return growing_free_slot(table, bucket);
      },
      [&](std::uint64_t from, unsigned slot, std::uint64_t to, unsigned to_slot) {
        const GrowingTrace trace = other_side(growing_trace(table, from, slot));
        growing_erase(table, from, slot);
        growing_write(table, to, to_slot, trace);
        ++table.moves;
      });
}

// In the emptier of its buckets, if one has a free slot.
bool place_freely(GrowingTable& table, const GrowingTrace& one, const GrowingTrace& two,
                  std::uint64_t first, std::uint64_t second) noexcept {
  const bool to_second = taken(table, second) < taken(table, first);
  const auto slot = growing_free_slot(table, to_second ? second : first);
  if (!slot) return false;
  growing_write(table, to_second ? second : first, *slot, to_second ? two : one);
  return true;
}

}  // namespace

void GrowingHalf::set_buckets(std::uint64_t count) noexcept {
  buckets = count;
  low_mask = std::bit_floor(count) - 1;
  split = count - low_mask - 1;
  level = static_cast<unsigned>(std::bit_width(count));
}

void GrowingTable::set_buckets(std::uint64_t count) noexcept {
  const std::uint64_t half = std::bit_floor(count) / 2;
  const std::uint64_t even = std::min(2 * half, count - half);
  halves[0].set_buckets(even);
  halves[1].set_buckets(count - even);
  buckets = count;
  limit = shape.limit(count);
}

std::uint64_t growing_get(const GrowingTable& table, std::uint64_t bucket, unsigned slot) noexcept {
  return with_slots(table, bucket,
                    [&](const auto& slots) { return static_cast<std::uint64_t>(slots[slot]); });
}

void growing_put(const GrowingTable& table, std::uint64_t bucket, unsigned slot,
                 std::uint64_t value) noexcept {
  const std::size_t bytes = table.shape.slot_bits / 8;
  std::memcpy(table.line(bucket) + slot * bytes, &value, bytes);
}

std::optional<unsigned> growing_free_slot(const GrowingTable& table,
                                          std::uint64_t bucket) noexcept {
  return with_slots(table, bucket, [](const auto& slots) -> std::optional<unsigned> {
    for (unsigned i = 0; i < slots.size(); ++i)
      if (slots[i] == 0) return i;
    return std::nullopt;
  });
}

GrowingTrace growing_trace(const GrowingTable& table, std::uint64_t bucket,
                           unsigned slot) noexcept {
  const std::uint64_t value = growing_get(table, bucket, slot);
  const std::uint64_t rest = value >> table.shape.tag_bits;
  assert(rest != 0);
  const unsigned level = table.level_of(bucket);
  const auto length = static_cast<unsigned>(std::bit_width(rest)) - 1;
  return {low_bits(value, table.shape.tag_bits), low_bits(rest, length) << level | bucket,
          level + length};
}

std::optional<std::uint64_t> growing_bucket(const GrowingTable& table,
                                            const GrowingTrace& trace) noexcept {
  const GrowingHalf& half = table.half(trace.hash);
  if (trace.bits < half.level) return std::nullopt;
  const unsigned level = half.level_of(trace.hash);
  if (trace.bits < level) return std::nullopt;
  return low_bits(trace.hash, level);
}

void growing_write(GrowingTable& table, std::uint64_t bucket, unsigned slot,
                   const GrowingTrace& trace) noexcept {
  const unsigned level = table.level_of(bucket);
  const unsigned length = std::min(trace.bits - level, table.shape.hash_bits());
  const std::uint64_t rest = low_bits(trace.hash >> level, length) | std::uint64_t{1} << length;
  growing_put(table, bucket, slot, rest << table.shape.tag_bits | trace.tag);
  ++table.by_bits[level + length];
  ++table.entries;
}

void growing_erase(GrowingTable& table, std::uint64_t bucket, unsigned slot) noexcept {
  --table.by_bits[growing_trace(table, bucket, slot).bits];
  --table.entries;
  growing_put(table, bucket, slot, 0);
}

bool growing_place(GrowingTable& table, const GrowingTrace& trace) noexcept {
  const GrowingTrace other = other_side(trace);
  const auto first = growing_bucket(table, trace), second = growing_bucket(table, other);
  assert(first && second);
  if (place_freely(table, trace, other, *first, *second)) return true;
  return growing_place_crowded(table, trace);
}

bool growing_place_crowded(GrowingTable& table, const GrowingTrace& trace) noexcept {
  const GrowingTrace other = other_side(trace);
  const auto first = growing_bucket(table, trace), second = growing_bucket(table, other);
  assert(first && second);
  if (const auto room = make_room(table, *first, *second)) {
    growing_write(table, room->bucket, room->slot, room->bucket == *first ? trace : other);
    return true;
  }
  if (table.stray_count == kGrowingMostStrays) return false;
  table.strays[table.stray_count++] = trace;
  ++table.by_bits[trace.bits];
  ++table.entries;
  return true;
}

void growing_settle(GrowingTable& table) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < table.stray_count; ++i) {
    const GrowingTrace stray = table.strays[i], other = other_side(stray);
    const auto first = growing_bucket(table, stray), second = growing_bucket(table, other);
    if (first && second && place_freely(table, stray, other, *first, *second)) {
      --table.by_bits[stray.bits];
      --table.entries;
    } else {
      table.strays[kept++] = stray;
    }
  }
  table.stray_count = kept;
}

}  // namespace sluice::kernels
