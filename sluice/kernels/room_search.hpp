// Two buckets per key, both full: which occupants must move, and where to, so that there is room.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace sluice::kernels {

// A search looks at this many buckets at most: enough at every planned load, and a bound on one
// key's time.
inline constexpr std::size_t kSearchBuckets = 256;

struct FoundRoom {
  std::uint64_t bucket;
  unsigned slot;
};

// Breadth first over buckets: the two of the key, then those where their occupants could go, and so
// on, until one has a free slot. Nothing moves before that. Then each occupant on the path moves
// one step, starting at the far end, so that none is ever without a place. Returns the slot that is
// then free in one of the key's two buckets.
//
//   each_occupant(bucket, visit)   calls visit(slot, other bucket of its occupant) until it returns
//                                  true
//   free_slot(bucket)              a free slot of it, if there is one
//   move(from, slot, to, to_slot)  moves an occupant to its other bucket
template <class EachOccupant, class FreeSlot, class Move>
std::optional<FoundRoom> search_room(std::uint64_t first, std::uint64_t second,
                                     EachOccupant each_occupant, FreeSlot free_slot, Move move) {
  struct Step {
    std::uint64_t bucket;
    std::size_t from;  // the step whose occupant would move here
    unsigned slot;     // that occupant's slot in its bucket
  };
  constexpr std::size_t kRoot = kSearchBuckets;
  std::array<Step, kSearchBuckets> steps;
  std::size_t count = 0;
  steps[count++] = {first, kRoot, 0};
  if (second != first) steps[count++] = {second, kRoot, 0};
  std::optional<FoundRoom> found;
  for (std::size_t at = 0; at < count && !found; ++at) {
    each_occupant(steps[at].bucket, [&](unsigned slot, std::uint64_t other) {
      if (count == kSearchBuckets) return true;
      const auto end = steps.begin() + static_cast<std::ptrdiff_t>(count);
      if (std::find_if(steps.begin(), end,
                       [&](const Step& step) { return step.bucket == other; }) != end)
        return false;
      steps[count] = {other, at, slot};
      const std::optional<unsigned> free = free_slot(other);
      if (!free) {
        ++count;
        return false;
      }
      found = FoundRoom{other, *free};
      // A path: move along it, last first.
      for (std::size_t step = count; steps[step].from != kRoot; step = steps[step].from) {
        const std::uint64_t from = steps[steps[step].from].bucket;
        move(from, steps[step].slot, found->bucket, found->slot);
        found = FoundRoom{from, steps[step].slot};
      }
      return true;
    });
  }
  return found;
}

}  // namespace sluice::kernels
