// Times: what is read can be written in other ways and read again; plain ISO 8601 is what the
// calendar of the standard library says; and a time in two fields is that of both with a blank
// between. The first byte is the format, of which the last are patterns.
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/records.hpp"
#include "sluice/stream/event_time.hpp"
#include "sluice/stream/time_zone.hpp"

namespace {

using namespace sluice;
using fuzzing::require;

constexpr Nanoseconds kSecond = 1'000'000'000, kDay = 86'400 * kSecond;

std::string written(Nanoseconds time, const char* pattern, const char* zone) {
  const Nanoseconds day = (time >= 0 ? time : time - (kDay - 1)) / kDay, rest = time - day * kDay;
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day}}};
  char text[64];
  std::snprintf(text, sizeof text, pattern, static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(rest / (3600 * kSecond)),
                static_cast<int>(rest / (60 * kSecond) % 60), static_cast<int>(rest / kSecond % 60),
                static_cast<long>(rest % kSecond));
  return std::string(text) + zone;
}

void check_round_trips(Nanoseconds time) {
  // The last years are read as numbers only.
  constexpr Nanoseconds kFarthest = 140 * 365 * kDay;
  if (time < -kFarthest || time > kFarthest) return;
  for (const char* pattern :
       {"%04d-%02u-%02uT%02d:%02d:%02d.%09ld", "%04d-%02u-%02u %02d:%02d:%02d,%09ld",
        "%04d%02u%02uT%02d%02d%02d.%09ld"}) {
    for (const char* zone : {"", "Z", "+00:00", "-0000"})
      require(parse_time(written(time, pattern, zone), TimeFormat::automatic) == time);
    require(parse_time(written(time, pattern, "+01:30"), TimeFormat::iso8601) ==
            time - 5400 * kSecond);
    require(parse_time(written(time, pattern, "-08"), TimeFormat::iso8601) ==
            time + 28'800 * kSecond);
  }
  require(parse_time(std::to_string(time), TimeFormat::nanoseconds) == time);
}

// yyyy-mm-ddThh:mm:ssZ, by the calendar of the standard library. Leap seconds are left out.
void check_calendar(const std::string& text) {
  int year = 0, read = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
  constexpr std::string_view kPattern = "dddd-dd-ddTdd:dd:ddZ";
  if (text.size() != kPattern.size()) return;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (kPattern[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != kPattern[i]) return;
  std::sscanf(text.c_str(), "%4d-%2u-%2uT%2u:%2u:%2uZ%n", &year, &month, &day, &hour, &minute,
              &second, &read);
  if (second == 60 || year < 1825 || year > 2115) return;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  const unsigned clock = (hour * 60 + minute) * 60 + second;
  const bool sound = date.ok() && minute < 60 && second < 60 && clock <= 86'400;
  const auto time = parse_time(text, TimeFormat::iso8601);
  require(time.has_value() == sound);
  if (sound)
    require(*time == std::chrono::sys_days(date).time_since_epoch().count() * kDay +
                         static_cast<Nanoseconds>(clock) * kSecond);
}

// All formats, in the order of their numbers, and some patterns.
const std::vector<TimeReader>& readers() {
  static const std::vector<TimeReader> all = [] {
    std::vector<TimeReader> made;
    for (int format = 0; format < static_cast<int>(TimeFormat::strptime); ++format)
      made.emplace_back(static_cast<TimeFormat>(format));
    const auto zone = TimeZone::of_offset("+05:30");
    for (const char* pattern :
         {"strptime:%d.%m.%Y %H:%M:%S,%f", "strptime:[%a %b %e %T %Y]", "strptime:%y%j%I%p%M%S"})
      made.push_back(TimeReader::make(pattern, zone, ""));
    made.push_back(TimeReader::make("strptime:%s.%f", nullptr, ""));
    made.push_back(TimeReader::make("strptime:%b %d %R %n%%", nullptr, "2025"));
    made.push_back(TimeReader::make("strptime:%A %F %T%t%z", nullptr, ""));
    return made;
  }();
  return all;
}

void check_two_fields(std::string_view text, const TimeReader& reader) {
  const std::size_t blank = text.find(' ');
  if (blank == 0 || blank == std::string_view::npos || blank + 1 == text.size()) return;
  if (text.find_first_of(" \t", blank + 1) != std::string_view::npos) return;
  if (text.substr(0, blank).find('\t') != std::string_view::npos) return;
  fuzzing::Padded padded;
  padded.add("key \t" + std::string(text));
  for (const bool days : {true, false}) {
    EventTimes times({.kind = Format::Kind::lines}, "2,3", reader, days);
    Nanoseconds time = 0;
    KeyStatus status = KeyStatus::keyed;
    times.extract(padded.records(), {&time, 1}, {&status, 1});
    const auto expected = reader.read(text);
    const bool read = expected && (days || !reader.is_day(text));
    require((status == KeyStatus::keyed) == read);
    if (read) require(time == *expected);
    require(times.why_not(padded.records().front()).empty() == read);
    require(times.why_another(padded.records().front()).empty() || !expected);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const TimeReader& reader = readers()[fuzzing::take_byte(bytes) % readers().size()];
  // In a block of its own, so that a byte read behind it is seen.
  const std::vector<char> copy(bytes.begin(), bytes.end());
  const std::string_view text(copy.data(), copy.size());
  const auto time = reader.read(text);
  if (time) {
    check_round_trips(*time);
    if (reader.is_day(text)) require(*time % kDay == 0);
  }
  check_calendar(std::string(text));
  check_two_fields(text, reader);
  return 0;
}
