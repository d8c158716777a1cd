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

// Three letters in lower case. Only letters become letters by this bit.
constexpr std::uint32_t short_name(std::string_view name) {
  std::uint32_t all = 0;
  for (std::size_t i = 0; i < kShort; ++i)
    all = all << 8 | static_cast<std::uint32_t>(static_cast<unsigned char>(name[i]) | 0x20U);
  return all;
}

template <std::size_t Size>
constexpr auto short_names(const std::array<std::string_view, Size>& names) {
  std::array<std::uint32_t, Size> all{};
  for (std::size_t i = 0; i < Size; ++i) all[i] = short_name(names[i]);
  return all;
}
constexpr auto kShortMonths = short_names(kMonths);
constexpr auto kShortWeekdays = short_names(kWeekdays);

template <std::size_t Size>
std::optional<int> take_name(std::string_view& text, const std::array<std::uint32_t, Size>& shorts,
                             const std::array<std::string_view, Size>& names, bool full) {
  if (text.size() < kShort) return std::nullopt;
  const std::uint32_t wanted = short_name(text);
  std::size_t index = 0;
  while (index < Size && shorts[index] != wanted) ++index;
  if (index == Size) return std::nullopt;
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

bool take_word(std::string_view& text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  for (std::size_t i = 0; i < lower.size(); ++i)
    if (text[i] != lower[i] && text[i] != lower[i] - 'a' + 'A') return false;
  text.remove_prefix(lower.size());
  return true;
}

std::optional<int> take_month(std::string_view& text, bool full) {
  const auto index = take_name(text, kShortMonths, kMonths, full);
  return index ? std::optional(*index + 1) : std::nullopt;
}

std::optional<int> take_weekday(std::string_view& text, bool full) {
  return take_name(text, kShortWeekdays, kWeekdays, full);
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

std::optional<Nanoseconds> rare_moment_of(const Date& date, const Clock& clock,
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
