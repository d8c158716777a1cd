// The rare ways of the growing filter: slots one at a time, moving, strays.
#include <bit>
#include <cassert>
#include <cstring>

#include "sluice/kernels/growing.hpp"
#include "sluice/kernels/room_search.hpp"

namespace sluice::kernels {
namespace {

std::uint64_t low_bits(std::uint64_t word, unsigned count) noexcept {
  return count >= 64 ? word : word & ((std::uint64_t{1} << count) - 1);
}

unsigned taken(const GrowingTable& table, std::uint64_t bucket) noexcept {
  unsigned count = 0;
  for (unsigned slot = 0; slot < table.shape.slots(); ++slot)
    count += growing_get(table, bucket, slot) != 0;
  return count;
}

// Where an occupant could go instead, if enough of it is known.
std::optional<std::uint64_t> other_bucket(const GrowingTable& table, std::uint64_t bucket,
                                          unsigned slot) noexcept {
  if (growing_get(table, bucket, slot) == 0) return std::nullopt;
  return growing_bucket(table, other_side(growing_trace(table, bucket, slot)));
}

// Makes a slot free in one of two full buckets. Occupants whose other bucket has been split are
// tried first: there it is emptier, and one step is mostly enough.
std::optional<FoundRoom> make_room(GrowingTable& table, std::uint64_t first,
                                   std::uint64_t second) noexcept {
  return search_room(
      first, second,
      [&](std::uint64_t bucket, auto visit) {
        for (const bool deep : {true, false})
          for (unsigned slot = 0; slot < table.shape.slots(); ++slot) {
            const auto other = other_bucket(table, bucket, slot);
            if (other && (table.level_of(*other) > table.level) == deep && visit(slot, *other))
              return;
          }
      },
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

void GrowingTable::set_buckets(std::uint64_t count) noexcept {
  buckets = count;
  level = static_cast<unsigned>(std::bit_width(count)) - 1;
  limit = shape.limit(count);
}

std::uint64_t growing_get(const GrowingTable& table, std::uint64_t bucket, unsigned slot) noexcept {
  const std::size_t bytes = table.shape.slot_bits / 8;
  std::uint64_t value = 0;
  std::memcpy(&value, table.line(bucket) + slot * bytes, bytes);
  return value;
}

void growing_put(const GrowingTable& table, std::uint64_t bucket, unsigned slot,
                 std::uint64_t value) noexcept {
  const std::size_t bytes = table.shape.slot_bits / 8;
  std::memcpy(table.line(bucket) + slot * bytes, &value, bytes);
}

std::optional<unsigned> growing_free_slot(const GrowingTable& table,
                                          std::uint64_t bucket) noexcept {
  for (unsigned slot = 0; slot < table.shape.slots(); ++slot)
    if (growing_get(table, bucket, slot) == 0) return slot;
  return std::nullopt;
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
  if (trace.bits < table.level) return std::nullopt;
  const std::uint64_t low = trace.hash & table.low_mask();
  if (low >= table.split()) return low;
  if (trace.bits == table.level) return std::nullopt;
  return low_bits(trace.hash, table.level + 1);
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
