// What compressed inputs and outputs take of --memory. The filter cannot have it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "connectors/files/packing.hpp"
#include "dedup_request.hpp"

namespace sluice::cli {

// The sizes of the room: none, or what it takes to unpack with a window of 1 MiB, 2 MiB, ... A state works
// only with the same plan, so they are few. The few KiB beside differ, so that no two of them differ by whole
// MiB or MB: otherwise a state planned for one budget would also serve another one with another room.
inline constexpr std::array<std::uint64_t, 10> kRooms = [] {
  std::array<std::uint64_t, 10> rooms{};
  for (std::uint64_t i = 1; i < rooms.size(); ++i)
    rooms[i] = (std::uint64_t{1} << (19 + i)) + kUnpackerBytes + i * 4096;
  return rooms;
}();

// Before the plan: sets `room`, unless it is given, and `room_needed`. Throws BadParameters if --memory is too
// small for a frame of an input and, beside the process, for so many bytes.
void make_room(const DedupFlags& flags, std::optional<std::uint64_t> room, DedupRequest& request,
               std::uint64_t least_bytes = kLeastFilterBytes);

// After the plan, which leaves `spare` bytes of --memory: sets what inputs may take to unpack.
void share_room(std::uint64_t spare, DedupRequest& request);

}  // namespace sluice::cli
