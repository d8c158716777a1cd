// Texts to moments: one reader per format, made once.
//
// Numbers are seconds, milliseconds, microseconds or nanoseconds since 1970, perhaps with decimals;
// the unit is told by their size unless it is given. Texts are ISO 8601, or as logs write them. By
// hand, because the compilers we build with do not have std::chrono::parse, and strptime depends on
// the locale and knows no fractions or errors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/window/clock.hpp"

namespace sluice {

class TimePattern;
class TimeZone;

enum class TimeFormat : std::uint8_t {
  // below 10^11 s, below 10^14 ms, below 10^17 us, from there ns; or ISO 8601, or clf or rfc2822 with
  // their offsets
  automatic,
  seconds,
  milliseconds,
  microseconds,
  nanoseconds,
  // 2026-11-15T10:50:00.123Z; with +01:00, +0100 or +01 for Z, a blank before it, or " UTC"; without
  // an offset: in the zone that is given, or UTC; with a blank for T; 20261115T105000Z; 2026-11-15,
  // and 20261115 unless it may be a number. 24:00:00 is the end of a day, and a second is 60 only
  // where a leap second was inserted.
  iso8601,
  clf,       // [10/Oct/2000:13:55:36 -0700] (log_time.hpp)
  syslog,    // Oct 10 13:55:36, without a year; or ISO 8601 with a time of day
  rfc2822,   // Tue, 10 Oct 2000 13:55:36 -0700
  strptime,  // by a pattern (time_pattern.hpp)
};

// What a number may be instead, if nobody says: 20260101 is a day of 2026, or 235 days after 1970 began;
// 202601011000 a minute of that day, or a time of 1976 in milliseconds.
enum class Unclear : std::uint8_t { no, day, minute };

// Cheap to copy. Reading allocates nothing, and may go on in several threads.
class TimeReader {
 public:
  // Without a pattern; times that do not say their zone are in UTC.
  TimeReader(TimeFormat format = TimeFormat::automatic)
      : format_(format) {}  // NOLINT: a format is one
  // As people write them: "auto", "s", "ms", "us", "ns", "iso8601", "clf", "syslog", "rfc2822" or
  // "strptime:%F %T"; "2026". Empty texts mean the defaults; no zone is UTC, but times in formats that
  // always say theirs need one. Throws BadParameters about `time_format`, `time_zone` and `year`.
  static TimeReader make(std::string_view format, std::shared_ptr<const TimeZone> zone,
                         std::string_view year);

  // Empty if `text` is not such a time, or is outside the years 1824 to 2116. A time without a year
  // is greater than all others (civil::is_yearless): YearGuess completes it.
  std::optional<Nanoseconds> read(std::string_view text) const noexcept;

  TimeFormat format() const noexcept { return format_; }
  // Of times that do not say theirs. Null if nobody said, which is UTC.
  const TimeZone* zone() const noexcept { return zone_.get(); }
  // Of the first time, if times have none and it was given.
  std::optional<int> year() const noexcept { return year_; }
  void forget_year() noexcept { year_.reset(); }
  // Whether some times may have no year.
  bool may_lack_year() const noexcept;

  // Whether a text that can be read is a date without a time of day.
  bool is_day(std::string_view text) const noexcept;
  Unclear is_unclear(std::string_view text) const noexcept;

  // Whether clocks in the zone that was given show this time twice, or never: then it is not read.
  bool is_off_clock(std::string_view text) const;
  // For messages: "a time", "a clf time such as 10/Oct/2000:13:55:36 -0700".
  std::string expected() const;
  // What to give so that a text is read which is not: "it looks like syslog: give `time_format`
  // syslog". `fields` is where it was found, as written: a time may go on in the next field. Empty
  // if the text is in no format that is known.
  std::string advice(std::string_view text, std::string_view fields) const;

 private:
  TimeFormat format_;
  std::shared_ptr<const TimePattern> pattern_;
  std::shared_ptr<const TimeZone> zone_;
  std::optional<int> year_;
};

// With the defaults.
inline std::optional<Nanoseconds> parse_time(std::string_view text, TimeFormat format) {
  return TimeReader(format).read(text);
}

// In UTC: 2026-11-15T10:50:00Z, with up to nine decimals; parse_time reads it.
std::string format_time(Nanoseconds time);

}  // namespace sluice
