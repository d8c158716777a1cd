// Streams of events for experiments: a user's own file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sluice/hash/digest.hpp"

namespace sluice::repro {

struct Event {
  Digest key;
  std::uint64_t source = 0;  // a hash of the source's name; 0 if the line has none
};

// Reads a file of one event per line, its key, or its source and its key with a tab between them.
// Passes on batches, in bounded memory. Throws IoError, and BadParameters for a file without
// events.
void read_events(const std::string& path, std::uint64_t seed,
                 const std::function<void(std::span<const Event>)>& take);

// All of it at once: for experiments that read a stream more than once.
std::vector<Event> all_events(const std::string& path, std::uint64_t seed);

}  // namespace sluice::repro
