// Dates and times of day as people write them, and the moments they are.
//
// The parts of a text that the readers of all formats share: digits, names of months, clocks and
// offsets. Each `take_` function removes what it reads from the front of the text; if it returns
// nothing, the text is not what it reads, and is left in any state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/window/clock.hpp"

namespace sluice {

class TimeZone;

namespace civil {

inline constexpr Nanoseconds kSecond = 1'000'000'000;
inline constexpr Nanoseconds kDay = 86'400 * kSecond;
// Years that times have, so that no offset leads out of the range of clocks.
inline constexpr int kFirstYear = 1825, kLastYear = 2115;

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

inline bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// Any blanks and tabs. Returns whether there were some.
bool take_blanks(std::string_view& text);

// A number of `least` to `most` digits (at most 9).
std::optional<int> take_number(std::string_view& text, std::size_t least, std::size_t most);

// The fraction of a second after its point, in nanoseconds. Digits after the ninth are cut off.
std::optional<Nanoseconds> take_fraction(std::string_view& text);

// Whether the text begins with these lower-case letters, in any case; they are removed.
bool take_word(std::string_view& text, std::string_view lower);

// "Oct", in any case: 10. With `full`, also "October".
std::optional<int> take_month(std::string_view& text, bool full);
// "Tue", in any case: 2; Sunday is 0. With `full`, also "Tuesday".
std::optional<int> take_weekday(std::string_view& text, bool full);

// Days from 1970-01-01 of a date in the Gregorian calendar.
std::int64_t days_from_date(std::int64_t year, int month, int day);
int days_in_month(int year, int month);
bool is_leap_year(int year);
// Whether the second before this one, in UTC, was a leap second.
bool follows_leap_second(Nanoseconds second);

// A time of day.
struct Clock {
  Nanoseconds whole = 0;     // seconds since midnight, in nanoseconds; a leap second is the first
                             // of the next minute
  Nanoseconds fraction = 0;  // of a second
  bool leap = false;
};

// Nothing if a clock does not show that. 24:00:00 is the end of the day.
std::optional<Clock> clock_of(int hour, int minute, int second, Nanoseconds fraction);
// hh:mm[:ss[.fraction]]; unless `colons`, also hhmm[ss[.fraction]].
std::optional<Clock> take_clock(std::string_view& text, bool colons);

// +hh, +hhmm or +hh:mm: how far ahead of UTC.
std::optional<Nanoseconds> take_offset(std::string_view& text);

inline constexpr int kNoYear = -1;
struct Date {
  int year = kNoYear;
  int month = 0, day = 0;
};

// In UTC.
int year_of(Nanoseconds time);
// Of a date that exists; Sunday is 0.
int weekday_of(const Date& date);

// The moment of this date, or nothing if there is no such day, or no such leap second. The offset
// from UTC, if the text has one; otherwise the zone says, and without one it is UTC. Nothing if the
// local time occurs twice or never in this zone. Without a year: a moment to complete
// (year_guess.hpp).
std::optional<Nanoseconds> moment_of(const Date& date, const Clock& clock,
                                     std::optional<Nanoseconds> offset, const TimeZone* zone);

// A moment whose year is not known is greater than all times. These two keep what is known of it.
inline constexpr Nanoseconds kYearless = Nanoseconds{1} << 62;
inline bool is_yearless(Nanoseconds time) {
  return time >= kYearless;
}
// It, if it was in this year. Nothing if that has no such day or leap second.
std::optional<Nanoseconds> in_year(Nanoseconds yearless, int year, const TimeZone* zone);

}  // namespace civil
}  // namespace sluice
