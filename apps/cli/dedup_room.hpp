// What compressed inputs and outputs take of --memory. The filter cannot have it.
#pragma once

#include <cstdint>
#include <optional>

#include "dedup_request.hpp"

namespace sluice::cli {

// Zero, and these powers of two.
inline constexpr std::uint64_t kLeastRoom = std::uint64_t{2} << 20;
inline constexpr std::uint64_t kMostRoom = std::uint64_t{256} << 20;

// Sets `room`, what the files need of it if it is not given, and how inputs are unpacked. A state works
// only with the same plan: so rooms are few.
void make_room(const DedupFlags& flags, std::optional<std::uint64_t> room, DedupRequest& request);

}  // namespace sluice::cli
