#include "time_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "arguments.hpp"
#include "sluice/base/error.hpp"
#include "sluice/stream/time_zone.hpp"

namespace sluice::cli {
namespace {

constexpr const char* kZones = "/usr/share/zoneinfo";
constexpr std::size_t kMostZoneBytes = 1 << 20;  // they have some 2 kB

// A name of the tz database is a path in its folder, which TZDIR may name.
bool is_zone_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '/';
  };
  return !name.empty() && name.front() != '/' && std::ranges::all_of(name, plain);
}

std::shared_ptr<const TimeZone> zone_of(const std::string& name) {
  if (name.empty()) return nullptr;
  if (auto zone = TimeZone::of_offset(name)) return zone;
  const char* const folder = std::getenv("TZDIR");
  const std::string path = fmt::format("{}/{}", folder != nullptr ? folder : kZones, name);
  std::error_code none;
  std::ifstream file;
  if (is_zone_name(name) && std::filesystem::is_regular_file(path, none))
    file.open(path, std::ios::binary);
  if (!file.is_open())
    throw BadParameters(
        fmt::format("--time-zone '{}' is not UTC, an offset such as +01:00, or a zone such as "
                    "Europe/Berlin in {} (package tzdata)",
                    name, folder != nullptr ? folder : kZones));
  std::string bytes(kMostZoneBytes, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  try {
    return TimeZone::of_file(bytes);
  } catch (const BadParameters& error) {
    throw BadParameters(fmt::format("--time-zone {}: {}: {}", name, path, error.what()));
  }
}

}  // namespace

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
  return TimeReader::make(flags.format, zone_of(flags.zone), flags.year);
}

Nanoseconds today() {
  using std::chrono::duration_cast, std::chrono::nanoseconds;
  return duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace sluice::cli
