#include "sluice/stream/event_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "sluice/base/bits.hpp"
#include "sluice/base/error.hpp"
#include "sluice/stream/format_keys.hpp"
#include "sluice/stream/json_key.hpp"
#include "sluice/stream/key_form.hpp"

namespace sluice {
namespace {

constexpr Nanoseconds kFarthest = (Nanoseconds{1} << 62) - 1;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kDay = 86'400 * kSecond;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// digits · 10^exponent. At most 19 digits are kept: a time has no more to tell.
struct Decimal {
  bool negative = false;
  std::uint64_t digits = 0;
  int exponent = 0;
};

// Takes a number of at most `most` digits off the front; nothing when there is none.
std::optional<int> take_number(std::string_view& text, std::size_t least, std::size_t most) {
  std::size_t count = 0;
  int value = 0;
  while (count < most && count < text.size() && is_digit(text[count]))
    value = value * 10 + (text[count++] - '0');
  if (count < least) return std::nullopt;
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal decimal;
  decimal.negative = take(text, '-');
  if (!decimal.negative) take(text, '+');
  bool any = false;
  bool point = false;
  int kept = 0;
  for (; !text.empty() && (is_digit(text.front()) || (text.front() == '.' && !point));
       text.remove_prefix(1)) {
    if (text.front() == '.') {
      point = true;
      continue;
    }
    any = true;
    if (kept < 19) {
      decimal.digits = decimal.digits * 10 + static_cast<std::uint64_t>(text.front() - '0');
      kept += decimal.digits != 0;
      decimal.exponent -= point;
    } else {
      decimal.exponent += !point;
    }
  }
  if (!any) return std::nullopt;
  if (take(text, 'e') || take(text, 'E')) {
    const bool negative = take(text, '-');
    if (!negative) take(text, '+');
    const auto exponent = take_number(text, 1, 4);
    if (!exponent) return std::nullopt;
    decimal.exponent += negative ? -*exponent : *exponent;
  }
  if (!text.empty()) return std::nullopt;
  return decimal;
}

// digits · 10^(exponent + unit) nanoseconds, cut off below one.
std::optional<Nanoseconds> scaled(const Decimal& decimal, int unit) {
  Uint128 value = decimal.digits;
  int exponent = decimal.exponent + unit;
  if (value == 0) return 0;
  for (; exponent > 0; --exponent) {
    value *= 10;
    if (value >= static_cast<Uint128>(kFarthest)) return std::nullopt;
  }
  for (; exponent < 0 && value > 0; ++exponent) value /= 10;
  if (value >= static_cast<Uint128>(kFarthest)) return std::nullopt;
  const auto nanoseconds = static_cast<Nanoseconds>(value);
  return decimal.negative ? -nanoseconds : nanoseconds;
}

// The power of ten from the unit to nanoseconds, told by the number's size.
int likely_unit(const Decimal& decimal) {
  const double size = static_cast<double>(decimal.digits) * std::pow(10.0, decimal.exponent);
  if (size < 1e11) return 9;
  if (size < 1e14) return 6;
  return size < 1e17 ? 3 : 0;
}

// Days from 1970-01-01 of a date in the Gregorian calendar: whole 400-year cycles of 146,097 days,
// with years that start in March so that the leap day is the last.
std::int64_t days_from_date(std::int64_t year, int month, int day) {
  if (month <= 2) --year;
  const std::int64_t cycle = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_cycle = year - cycle * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t day_of_cycle =
      year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
  return cycle * 146'097 + day_of_cycle - 719'468;
}

int days_in_month(int year, int month) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return kDays[static_cast<std::size_t>(month - 1)] + (leap && month == 2);
}

// The years in which a leap second ended June or December. There are 27 of them up to 2026.
constexpr std::array kLeapJunes = {1972, 1981, 1982, 1983, 1985, 1992,
                                   1993, 1994, 1997, 2012, 2015};
constexpr std::array kLeapDecembers = {1972, 1973, 1974, 1975, 1976, 1977, 1978, 1979,
                                       1987, 1989, 1990, 1995, 1998, 2005, 2008, 2016};

// Whether the second before this one, in UTC, was a leap second.
bool follows_leap_second(Nanoseconds second) {
  const auto begins = [second](int year, int month) {
    return days_from_date(year, month, 1) * kDay == second;
  };
  return std::ranges::any_of(kLeapJunes, [&](int year) { return begins(year, 7); }) ||
         std::ranges::any_of(kLeapDecembers, [&](int year) { return begins(year + 1, 1); });
}

struct ClockTime {
  Nanoseconds whole = 0;     // seconds since midnight, in nanoseconds; a leap second is the first
                             // of the next minute
  Nanoseconds fraction = 0;  // of a second
  bool leap = false;
};

// hh:mm[:ss[.fraction]] or hhmm[ss[.fraction]]. 24:00:00 is the end of the day.
std::optional<ClockTime> take_clock(std::string_view& text) {
  const auto hour = take_number(text, 2, 2);
  if (!hour || *hour > 24) return std::nullopt;
  const bool colons = take(text, ':');
  const auto minute = take_number(text, 2, 2);
  if (!minute || *minute > 59) return std::nullopt;
  ClockTime clock{.whole = (*hour * 60 + *minute) * 60 * kSecond};
  if (colons ? take(text, ':') : !text.empty() && is_digit(text.front())) {
    const auto second = take_number(text, 2, 2);
    if (!second || *second > 60) return std::nullopt;
    clock.whole += *second * kSecond;
    clock.leap = *second == 60;
    if (take(text, '.') || take(text, ',')) {
      if (text.empty() || !is_digit(text.front())) return std::nullopt;
      Nanoseconds unit = kSecond / 10;
      for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), unit /= 10)
        clock.fraction += (text.front() - '0') * unit;
    }
  }
  if (*hour == 24 && clock.whole + clock.fraction > kDay) return std::nullopt;
  return clock;
}

// Z, +hh, +hhmm or +hh:mm, perhaps after a blank; UTC after a blank; or nothing: how far ahead of UTC.
std::optional<Nanoseconds> take_offset(std::string_view& text) {
  if (text.empty()) return 0;
  if (take(text, ' ') && text == "UTC") {
    text = {};
    return 0;
  }
  if (take(text, 'Z') || take(text, 'z')) return 0;
  const bool west = take(text, '-');
  if (!west && !take(text, '+')) return std::nullopt;
  const auto hours = take_number(text, 2, 2);
  if (!hours || *hours > 23) return std::nullopt;
  std::optional<int> minutes = 0;
  if (take(text, ':') || !text.empty()) minutes = take_number(text, 2, 2);
  if (!minutes || *minutes > 59) return std::nullopt;
  const Nanoseconds offset = (*hours * 60 + *minutes) * 60 * kSecond;
  return west ? -offset : offset;
}

// yyyy-mm-dd or yyyymmdd, in nanoseconds.
std::optional<Nanoseconds> take_date(std::string_view& text) {
  const auto year = take_number(text, 4, 4);
  if (!year || *year < 1825 || *year > 2115) return std::nullopt;
  const bool dashes = take(text, '-');
  const auto month = take_number(text, 2, 2);
  if (!month || *month < 1 || *month > 12 || take(text, '-') != dashes) return std::nullopt;
  const auto day = take_number(text, 2, 2);
  if (!day || *day < 1 || *day > days_in_month(*year, *month)) return std::nullopt;
  return days_from_date(*year, *month, *day) * kDay;
}

std::optional<Nanoseconds> parse_iso8601(std::string_view text) {
  const auto date = take_date(text);
  if (!date || text.empty()) return date;
  if (!take(text, 'T') && !take(text, 't') && !take(text, ' ')) return std::nullopt;
  const auto clock = take_clock(text);
  if (!clock) return std::nullopt;
  const auto offset = take_offset(text);
  if (!offset || !text.empty()) return std::nullopt;
  const Nanoseconds second = *date + clock->whole - *offset;
  if (clock->leap && !follows_leap_second(second)) return std::nullopt;
  return second + clock->fraction;
}

// A number in JSON has lost its spelling: 202601011000 is 202601011e3.
std::string without_exponent(std::string_view text) {
  constexpr int kMostZeros = 12;
  const std::size_t at = text.find('e');
  if (at == std::string_view::npos) return std::string(text);
  std::string_view rest = text.substr(at + 1);
  const auto zeros = take_number(rest, 1, 2);
  if (!zeros || !rest.empty() || *zeros > kMostZeros) return std::string(text);
  return std::string(text.substr(0, at)) + std::string(static_cast<std::size_t>(*zeros), '0');
}

}  // namespace

TimeFormat parse_time_format(std::string_view flag, std::string_view text) {
  constexpr std::array<std::string_view, 6> kNames = {"auto", "s", "ms", "us", "ns", "iso8601"};
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<TimeFormat>(i);
  throw BadParameters(fmt::format("{} '{}' is not auto, s, ms, us, ns or iso8601", flag, text));
}

std::optional<Nanoseconds> parse_time(std::string_view text, TimeFormat format) {
  if (format != TimeFormat::iso8601) {
    if (const auto decimal = parse_decimal(text)) {
      const int unit =
          format == TimeFormat::automatic
              ? likely_unit(*decimal)
              : 9 - 3 * (static_cast<int>(format) - static_cast<int>(TimeFormat::seconds));
      return scaled(*decimal, unit);
    }
    if (format != TimeFormat::automatic) return std::nullopt;
  }
  return parse_iso8601(text);
}

std::string format_time(Nanoseconds time) {
  using namespace std::chrono;
  const sys_time<nanoseconds> at{nanoseconds(time)};
  const sys_days day = floor<days>(at);
  const year_month_day date(day);
  const hh_mm_ss clock(at - day);
  std::string text =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  clock.hours().count(), clock.minutes().count(), clock.seconds().count());
  if (const auto part = clock.subseconds().count(); part > 0) {
    text += fmt::format(".{:09}", part);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text + "Z";
}

Unclear is_unclear(std::string_view time, TimeFormat format) {
  constexpr std::size_t kDayDigits = 8, kMinuteDigits = 12;
  if (format != TimeFormat::automatic ||
      (time.size() != kDayDigits && time.size() != kMinuteDigits) ||
      !std::ranges::all_of(time, [](char c) { return c >= '0' && c <= '9'; }) || !take_date(time))
    return Unclear::no;
  if (time.empty()) return Unclear::day;
  const auto hour = take_number(time, 2, 2), minute = take_number(time, 2, 2);
  return *hour <= 23 && *minute <= 59 ? Unclear::minute : Unclear::no;
}

bool is_day(std::string_view time, TimeFormat format) {
  constexpr std::string_view kLong = "yyyy-mm-dd", kShort = "yyyymmdd";
  return time.size() == kLong.size()
             ? time[4] == '-' && time[7] == '-'
             : time.size() == kShort.size() && format == TimeFormat::iso8601;
}

EventTimes::EventTimes(const Format& format, const std::string& fields, TimeFormat time_format,
                       bool days)
    : json_(format.kind == Format::Kind::json),
      time_format_(time_format),
      days_(days),
      fields_(make_key_extractor(format, std::span(&fields, 1))),
      texts_(kBatchRecords),
      found_(kBatchRecords) {}

std::size_t EventTimes::extract(std::span<const Record> records, std::span<Nanoseconds> times,
                                std::span<KeyStatus> status) {
  const std::size_t count = records.size();
  fields_->extract(records, std::span(texts_).first(count), std::span(found_).first(count));
  const std::size_t parts = fields_->parts();
  std::size_t keyed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    times[i] = 0;
    if (found_[i] == KeyStatus::keyed) found_[i] = read(texts_[i], parts, times[i]);
    if (status[i] == KeyStatus::keyed) status[i] = found_[i];
    keyed += status[i] == KeyStatus::keyed;
  }
  return keyed;
}

KeyStatus EventTimes::read(std::string_view form, std::size_t parts, Nanoseconds& time) {
  const auto text = text_of(form, parts);
  const auto parsed = text ? parse_time(*text, time_format_) : std::nullopt;
  if (!parsed) return KeyStatus::malformed;
  if (!days_ && is_day(*text, time_format_)) return KeyStatus::day_only;
  time = *parsed;
  return KeyStatus::keyed;
}

// What the form of a key says, as text. Several fields are joined by a blank. A number in JSON has
// lost its spelling, so it cannot be a date or a part of one.
std::optional<std::string_view> EventTimes::text_of(std::string_view form, std::size_t parts) {
  if (parts == 1) {
    if (!json_) return form;
    if (form.starts_with('d') && time_format_ == TimeFormat::iso8601) return std::nullopt;
    return json_scalar_text(form);
  }
  joined_.clear();
  for (std::size_t part = 0; part < parts; ++part) {
    if (json_ && !form.starts_with('s')) return std::nullopt;
    if (json_) form.remove_prefix(1);
    if (part > 0) joined_ += ' ';
    joined_ += take_part(form);
  }
  return joined_;
}

std::string EventTimes::why_not(const Record& record) {
  std::string why = fields_->why_not(record);
  if (!why.empty()) return why;
  Nanoseconds time = 0;
  fields_->extract({&record, 1}, std::span(texts_).first(1), std::span(found_).first(1));
  const KeyStatus status = read(texts_[0], fields_->parts(), time);
  const auto text = text_of(texts_[0], fields_->parts());
  if (status == KeyStatus::keyed) return "";
  if (!text) return fmt::format("{} is not a time in {}", fields_->name(), quoted(record.text()));
  return fmt::format("{}, {}, {} {}", fields_->name(), quoted(*text),
                     fields_->parts() == 1 ? "is" : "are",
                     status == KeyStatus::day_only ? "a date without a time of day" : "not a time");
}

std::string EventTimes::why_day(const Record& record) {
  const bool days = std::exchange(days_, false);
  std::string why = why_not(record);
  days_ = days;
  return why;
}

std::string EventTimes::why_unclear(const Record& record) {
  fields_->extract({&record, 1}, std::span(texts_).first(1), std::span(found_).first(1));
  if (found_[0] != KeyStatus::keyed) return "";
  const auto spelled = text_of(texts_[0], fields_->parts());
  const std::string text = spelled ? without_exponent(*spelled) : "";
  const Unclear unclear = is_unclear(text, time_format_);
  if (unclear == Unclear::no) return "";
  return fmt::format(
      "{}, {}, {}", fields_->name(), quoted(text),
      unclear == Unclear::day
          ? "may be a date, or seconds since 1970: give `time_format` iso8601 for dates (in JSON: "
            "as "
            "strings), or s for seconds"
          : "may be a date with a time of day, or milliseconds since 1970: give `time_format` ms "
            "for "
            "milliseconds; such a date is read as 20260101T1000 or 2026-01-01 10:00");
}

}  // namespace sluice
