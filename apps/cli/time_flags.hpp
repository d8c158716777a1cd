// How times are written: flags that all commands share which read event times.
#pragma once

#include <string>

#include "sluice/stream/time_reader.hpp"

namespace sluice::cli {

class Command;

struct TimeFlags {
  std::string format, zone, year;
};

void add_time_flags(Command& command, TimeFlags& flags);

// Throws BadParameters. `event_time`: whether times are read.
TimeReader understand_times(const TimeFlags& flags, bool event_time);

// Now, by the machine's clock.
Nanoseconds today();

}  // namespace sluice::cli
