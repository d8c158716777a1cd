// The window flags of `sluice dedup`: what they mean together.
#pragma once

#include <functional>
#include <span>

#include "dedup_request.hpp"

namespace sluice::cli {

class Command;

void add_window_flags(Command& command, DedupFlags& flags);

// Fills what `request` says of windows, times and late records. Throws BadParameters: each names
// the flag and what would be right.
void understand_window(const DedupFlags& flags, DedupRequest& request);

// A time window by arrival over a file judges all of it as if it had come at once: refused unless
// that is meant. Throws BadParameters.
void check_arrival(const DedupRequest& request, std::span<const FileSource> inputs);

// The window that the request asks for, made: refused when its filter cannot hold the slack asked
// for.
AnyFilter make_window(const DedupRequest& request);

// When records arrive. It starts at the wall's time, so that a state forgets across runs what it
// should, but never behind what `window` (may be null) has seen, and runs steadily from there: a
// wall clock that is set while we run neither wipes the window nor makes everything late.
std::function<Nanoseconds()> arrival_clock(const Window* window);

// "--window 10m: the last 10m (10 minutes) of event time /t; …": how the flags were read.
std::string reading_of(const DedupRequest& request, const Window& window);

}  // namespace sluice::cli
