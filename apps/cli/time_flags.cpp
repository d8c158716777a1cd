#include "time_flags.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "arguments.hpp"
#include "sluice/base/error.hpp"

namespace sluice::cli {

void add_time_flags(Command& command, TimeFlags& flags) {
  command.option("--time-format", flags.format,
                 "Format of the times: numbers, ISO 8601, as logs write them, or strptime:PATTERN; "
                 "auto reads all but syslog and patterns [auto]",
                 "auto|s|ms|us|ns|iso8601|clf|syslog|rfc2822|strptime:PATTERN");
  command.option("--time-zone", flags.zone, "Zone of times that do not say theirs [UTC]", "ZONE");
  command.option("--year", flags.year,
                 "Year of the first time, for syslog times and patterns without a year [the last "
                 "year in which it is not after today]",
                 "YYYY");
}

TimeReader understand_times(const TimeFlags& flags, bool event_time) {
  for (const auto& [value, flag] :
       {std::pair(&flags.format, "--time-format"), std::pair(&flags.zone, "--time-zone"),
        std::pair(&flags.year, "--year")})
    if (!value->empty() && !event_time)
      throw BadParameters(fmt::format("{} needs --event-time", flag));
  return TimeReader::make(flags.format, flags.zone, flags.year);
}

Nanoseconds today() {
  using std::chrono::duration_cast, std::chrono::nanoseconds;
  return duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace sluice::cli
