#include "sluice/stream/civil_time.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "sluice/stream/time_zone.hpp"

namespace sluice::civil {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {
    "january", "february", "march",     "april",   "may",      "june",
    "july",    "august",   "september", "october", "november", "december"};
constexpr std::array<std::string_view, 7> kWeekdays = {"sunday",   "monday", "tuesday", "wednesday",
                                                       "thursday", "friday", "saturday"};
constexpr std::size_t kShort = 3;  // letters of a name that is cut short

constexpr std::uint32_t short_name(char a, char b, char c) {
  const auto lower = [](char letter) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(letter) | 0x20U);
  };
  return lower(a) << 16 | lower(b) << 8 | lower(c);
}

template <std::size_t Size>
constexpr auto short_names(const std::array<std::string_view, Size>& names) {
  std::array<std::uint32_t, Size> all{};
  for (std::size_t i = 0; i < Size; ++i) all[i] = short_name(names[i][0], names[i][1], names[i][2]);
  return all;
}

template <std::size_t Size>
std::optional<int> take_name(std::string_view& text,
                             const std::array<std::string_view, Size>& names, bool full) {
  static constexpr auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  if (text.size() < kShort || !std::all_of(text.begin(), text.begin() + kShort, is_letter))
    return std::nullopt;
  const auto shorts = short_names(names);
  const auto found = std::ranges::find(shorts, short_name(text[0], text[1], text[2]));
  if (found == shorts.end()) return std::nullopt;
  const auto index = static_cast<std::size_t>(found - shorts.begin());
  text.remove_prefix(kShort);
  if (full) take_word(text, names[index].substr(kShort));
  return static_cast<int>(index);
}

// The years in which a leap second ended June or December. There are 27 of them up to 2026.
constexpr std::array kLeapJunes = {1972, 1981, 1982, 1983, 1985, 1992,
                                   1993, 1994, 1997, 2012, 2015};
constexpr std::array kLeapDecembers = {1972, 1973, 1974, 1975, 1976, 1977, 1978, 1979,
                                       1987, 1989, 1990, 1995, 1998, 2005, 2008, 2016};

// A moment without a year is the time since its year began in a year with a 29 February, by the
// zone's clocks; more than a year is added to a leap second.
constexpr int kSomeLeapYear = 2000;
constexpr Nanoseconds kLeapSecond = 400 * kDay;
constexpr Nanoseconds kLeapDay = (31 + 28) * kDay;

std::optional<Nanoseconds> in_utc(Nanoseconds local, const TimeZone* zone) {
  return zone == nullptr ? local : zone->to_utc(local);
}

}  // namespace

bool take_blanks(std::string_view& text) {
  const std::size_t size = text.size();
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text.size() < size;
}

std::optional<int> take_number(std::string_view& text, std::size_t least, std::size_t most) {
  std::size_t count = 0;
  int value = 0;
  while (count < most && count < text.size() && is_digit(text[count]))
    value = value * 10 + (text[count++] - '0');
  if (count < least) return std::nullopt;
  text.remove_prefix(count);
  return value;
}

std::optional<Nanoseconds> take_fraction(std::string_view& text) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  Nanoseconds fraction = 0;
  for (Nanoseconds unit = kSecond / 10; !text.empty() && is_digit(text.front());
       text.remove_prefix(1), unit /= 10)
    fraction += (text.front() - '0') * unit;
  return fraction;
}

bool take_word(std::string_view& text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  for (std::size_t i = 0; i < lower.size(); ++i)
    if (text[i] != lower[i] && text[i] != lower[i] - 'a' + 'A') return false;
  text.remove_prefix(lower.size());
  return true;
}

std::optional<int> take_month(std::string_view& text, bool full) {
  const auto index = take_name(text, kMonths, full);
  return index ? std::optional(*index + 1) : std::nullopt;
}

std::optional<int> take_weekday(std::string_view& text, bool full) {
  return take_name(text, kWeekdays, full);
}

// Whole 400-year cycles of 146,097 days, with years that start in March so that the leap day is the
// last.
std::int64_t days_from_date(std::int64_t year, int month, int day) {
  if (month <= 2) --year;
  const std::int64_t cycle = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_cycle = year - cycle * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t day_of_cycle =
      year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
  return cycle * 146'097 + day_of_cycle - 719'468;
}

bool is_leap_year(int year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int days_in_month(int year, int month) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kDays[static_cast<std::size_t>(month - 1)] + (month == 2 && is_leap_year(year));
}

int year_of(Nanoseconds time) {
  using namespace std::chrono;
  const sys_days day = floor<days>(sys_time<nanoseconds>(nanoseconds(time)));
  return static_cast<int>(year_month_day(day).year());
}

int weekday_of(const Date& date) {
  constexpr int kFirst = 4;  // 1970-01-01 was a Thursday
  const std::int64_t days = days_from_date(date.year, date.month, date.day) + kFirst;
  return static_cast<int>((days % 7 + 7) % 7);
}

bool follows_leap_second(Nanoseconds second) {
  const auto begins = [second](int year, int month) {
    return days_from_date(year, month, 1) * kDay == second;
  };
  return std::ranges::any_of(kLeapJunes, [&](int year) { return begins(year, 7); }) ||
         std::ranges::any_of(kLeapDecembers, [&](int year) { return begins(year + 1, 1); });
}

std::optional<Clock> clock_of(int hour, int minute, int second, Nanoseconds fraction) {
  if (hour > 24 || minute > 59 || second > 60) return std::nullopt;
  const Clock clock{.whole = ((hour * 60 + minute) * 60 + second) * kSecond,
                    .fraction = fraction,
                    .leap = second == 60};
  if (hour == 24 && clock.whole + clock.fraction > kDay) return std::nullopt;
  return clock;
}

std::optional<Clock> take_clock(std::string_view& text, bool colons) {
  const auto hour = take_number(text, 2, 2);
  if (!hour) return std::nullopt;
  const bool colon = take(text, ':');
  if (colons && !colon) return std::nullopt;
  const auto minute = take_number(text, 2, 2);
  if (!minute) return std::nullopt;
  if (colon ? !take(text, ':') : text.empty() || !is_digit(text.front()))
    return clock_of(*hour, *minute, 0, 0);
  const auto second = take_number(text, 2, 2);
  if (!second) return std::nullopt;
  std::optional<Nanoseconds> fraction = 0;
  if (take(text, '.') || take(text, ',')) fraction = take_fraction(text);
  return fraction ? clock_of(*hour, *minute, *second, *fraction) : std::nullopt;
}

std::optional<Nanoseconds> take_offset(std::string_view& text) {
  const bool west = take(text, '-');
  if (!west && !take(text, '+')) return std::nullopt;
  const auto hours = take_number(text, 2, 2);
  if (!hours || *hours > 23) return std::nullopt;
  std::optional<int> minutes = 0;
  if (take(text, ':') || (!text.empty() && is_digit(text.front())))
    minutes = take_number(text, 2, 2);
  if (!minutes || *minutes > 59) return std::nullopt;
  const Nanoseconds offset = (*hours * 60 + *minutes) * 60 * kSecond;
  return west ? -offset : offset;
}

std::optional<Nanoseconds> moment_of(const Date& date, const Clock& clock,
                                     std::optional<Nanoseconds> offset, const TimeZone* zone) {
  const int year = date.year == kNoYear ? kSomeLeapYear : date.year;
  if (year < kFirstYear || year > kLastYear || date.month < 1 || date.month > 12 || date.day < 1 ||
      date.day > days_in_month(year, date.month))
    return std::nullopt;
  const Nanoseconds day = days_from_date(year, date.month, date.day) * kDay;
  // Without a year, nobody can say which day follows 28 February.
  if (date.year == kNoYear && clock.whole >= kDay && !clock.leap) return std::nullopt;
  if (date.year == kNoYear)
    return kYearless + day - days_from_date(year, 1, 1) * kDay + clock.whole + clock.fraction +
           (clock.leap ? kLeapSecond : 0);
  const auto second =
      offset ? std::optional(day + clock.whole - *offset) : in_utc(day + clock.whole, zone);
  if (!second || (clock.leap && !follows_leap_second(*second))) return std::nullopt;
  return *second + clock.fraction;
}

std::optional<Nanoseconds> in_year(Nanoseconds yearless, int year, const TimeZone* zone) {
  Nanoseconds since = yearless - kYearless;
  const bool leap = since >= kLeapSecond;
  if (leap) since -= kLeapSecond;
  if (year < kFirstYear || year > kLastYear) return std::nullopt;
  if (since >= kLeapDay && !is_leap_year(year)) {
    if (since < kLeapDay + kDay) return std::nullopt;
    since -= kDay;
  }
  const Nanoseconds fraction = since % kSecond;
  const auto second = in_utc(days_from_date(year, 1, 1) * kDay + since - fraction, zone);
  if (!second || (leap && !follows_leap_second(*second))) return std::nullopt;
  return *second + fraction;
}

}  // namespace sluice::civil
