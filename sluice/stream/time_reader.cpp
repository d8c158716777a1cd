#include "sluice/stream/time_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "sluice/base/bits.hpp"
#include "sluice/base/error.hpp"
#include "sluice/stream/civil_time.hpp"
#include "sluice/stream/log_time.hpp"
#include "sluice/stream/time_pattern.hpp"
#include "sluice/stream/time_zone.hpp"

namespace sluice {
namespace {

using civil::is_digit;
using civil::take;
using civil::take_number;

constexpr Nanoseconds kFarthest = (Nanoseconds{1} << 62) - 1;

constexpr std::array<std::string_view, 9> kNames = {"auto",    "s",   "ms",     "us",     "ns",
                                                    "iso8601", "clf", "syslog", "rfc2822"};
constexpr std::string_view kPattern = "strptime:";

std::string_view name_of(TimeFormat format) {
  return kNames[static_cast<std::size_t>(format)];
}

// digits · 10^exponent. At most 19 digits are kept: a time has no more to tell.
struct Decimal {
  bool negative = false;
  std::uint64_t digits = 0;
  int exponent = 0;
};

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

// Z, or an offset, perhaps after a blank; UTC after a blank; or nothing. False if it is none of them.
bool take_iso_offset(std::string_view& text, std::optional<Nanoseconds>& offset) {
  if (text.empty()) return true;
  if (take(text, ' ') && text == "UTC") {
    text = {};
    offset = 0;
  } else if (take(text, 'Z') || take(text, 'z')) {
    offset = 0;
  } else {
    offset = civil::take_offset(text);
  }
  return offset && text.empty();
}

// yyyy-mm-dd or yyyymmdd.
std::optional<civil::Date> take_date(std::string_view& text) {
  const auto year = take_number(text, 4, 4);
  const bool dashes = take(text, '-');
  const auto month = take_number(text, 2, 2);
  if (!year || !month || take(text, '-') != dashes) return std::nullopt;
  const auto day = take_number(text, 2, 2);
  if (!day) return std::nullopt;
  return civil::Date{.year = *year, .month = *month, .day = *day};
}

std::optional<Nanoseconds> parse_iso8601(std::string_view text, const TimeZone* zone, bool days) {
  const auto date = take_date(text);
  if (!date) return std::nullopt;
  if (text.empty()) return days ? civil::moment_of(*date, {}, {}, zone) : std::nullopt;
  if (!take(text, 'T') && !take(text, 't') && !take(text, ' ')) return std::nullopt;
  const auto clock = civil::take_clock(text, false);
  std::optional<Nanoseconds> offset;
  if (!clock || !take_iso_offset(text, offset)) return std::nullopt;
  return civil::moment_of(*date, *clock, offset, zone);
}

std::optional<Nanoseconds> parse_number(std::string_view text, TimeFormat format) {
  const auto decimal = parse_decimal(text);
  if (!decimal) return std::nullopt;
  return scaled(*decimal,
                format == TimeFormat::automatic
                    ? likely_unit(*decimal)
                    : 9 - 3 * (static_cast<int>(format) - static_cast<int>(TimeFormat::seconds)));
}

// Any format that says its zone. Their first bytes tell them apart, but for numbers and ISO 8601.
std::optional<Nanoseconds> parse_automatic(std::string_view text, const TimeZone* zone) {
  if (text.size() > 2 && (text.front() == '[' || text[2] == '/')) return parse_clf(text, zone);
  // No number has a dash after a digit.
  if (text.size() > 4 && text[4] == '-' && is_digit(text[3]))
    return parse_iso8601(text, zone, true);
  if (const auto time = parse_number(text, TimeFormat::automatic)) return time;
  if (const auto time = parse_iso8601(text, zone, true)) return time;
  return parse_rfc2822(text, zone);
}

// Dates of numbers that no format by a name reads. Which of day and month comes first may be open.
constexpr std::array<std::string_view, 7> kDates = {"%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%Y.%m.%d",
                                                    "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y"};

// Patterns that read the text and begin with one of these dates.
std::vector<std::string> patterns_of(std::string_view text) {
  const TimeZone* const utc = TimeZone::utc();
  std::vector<std::string> found;
  const auto reads = [&](const std::string& pattern) {
    if (!TimePattern(pattern, false).read(text, utc)) return false;
    found.push_back(pattern);
    return true;
  };
  const auto reads_with_clock = [&](std::string_view date) {
    for (const std::string_view before : {" ", "T", ":", "-", ", "})
      for (const std::string_view clock :
           {"%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f", "%H:%M", "%I:%M:%S %p", "%I:%M %p"})
        for (const std::string_view after : {"", " %z", " %Z"})
          if (reads(fmt::format("{}{}{}{}", date, before, clock, after))) return;
  };
  for (const std::string_view date : kDates)
    if (!reads(std::string(date))) reads_with_clock(date);
  return found;
}

}  // namespace

TimeReader TimeReader::make(std::string_view format, std::shared_ptr<const TimeZone> zone,
                            std::string_view year) {
  TimeReader reader;
  if (!year.empty()) {
    std::string_view text = year;
    const auto number = take_number(text, 4, 4);
    if (!number || !text.empty() || *number < civil::kFirstYear || *number > civil::kLastYear)
      throw BadParameters(fmt::format("`year` '{}' is not a year from {} to {}", year,
                                      civil::kFirstYear, civil::kLastYear));
    reader.year_ = number;
  }
  reader.zone_ = std::move(zone);
  if (format.starts_with(kPattern)) {
    reader.format_ = TimeFormat::strptime;
    reader.pattern_ = std::make_shared<const TimePattern>(format.substr(kPattern.size()),
                                                          reader.year_.has_value());
  } else if (!format.empty()) {
    const auto found = std::ranges::find(kNames, format);
    if (found == kNames.end())
      throw BadParameters(fmt::format(
          "`time_format` '{}' is not auto, s, ms, us, ns, iso8601, clf, syslog, rfc2822 "
          "or strptime:PATTERN{}",
          format,
          format.find('%') == std::string_view::npos
              ? ""
              : fmt::format(": did you mean strptime:{}?", format)));
    reader.format_ = static_cast<TimeFormat>(found - kNames.begin());
  }
  const bool number =
      reader.format_ >= TimeFormat::seconds && reader.format_ <= TimeFormat::nanoseconds;
  if (reader.zone_ && (number || (reader.pattern_ && reader.pattern_->has_zone())))
    throw BadParameters(
        fmt::format("`time_zone` is for times that do not say their zone: {} do", format));
  if (reader.year_ && !reader.may_lack_year())
    throw BadParameters(
        "`year` is for times without a year: give it with `time_format` syslog, or "
        "with a pattern without %Y");
  return reader;
}

std::optional<Nanoseconds> TimeReader::read(std::string_view text) const noexcept {
  const TimeZone* const zone = zone_.get();
  switch (format_) {
    case TimeFormat::automatic:
      return parse_automatic(text, zone);
    case TimeFormat::iso8601:
      return parse_iso8601(text, zone, true);
    case TimeFormat::clf:
      return parse_clf(text, zone);
    case TimeFormat::syslog: {
      const auto time = parse_bsd_syslog(text);
      return time ? time : parse_iso8601(text, zone, false);
    }
    case TimeFormat::rfc2822:
      return parse_rfc2822(text, zone);
    case TimeFormat::strptime:
      return pattern_->read(text, zone);
    default:
      return parse_number(text, format_);
  }
}

bool TimeReader::may_lack_year() const noexcept {
  return format_ == TimeFormat::syslog || (pattern_ && !pattern_->has_year());
}

bool TimeReader::is_day(std::string_view text) const noexcept {
  constexpr std::string_view kLong = "yyyy-mm-dd", kShort = "yyyymmdd";
  if (pattern_) return pattern_->only_days();
  if (format_ != TimeFormat::automatic && format_ != TimeFormat::iso8601) return false;
  return text.size() == kLong.size()
             ? text[4] == '-' && text[7] == '-'
             : text.size() == kShort.size() && format_ == TimeFormat::iso8601;
}

Unclear TimeReader::is_unclear(std::string_view time) const noexcept {
  constexpr std::size_t kDayDigits = 8, kMinuteDigits = 12;
  if (format_ != TimeFormat::automatic ||
      (time.size() != kDayDigits && time.size() != kMinuteDigits) ||
      !std::ranges::all_of(time, is_digit))
    return Unclear::no;
  const auto date = take_date(time);
  if (!date || !civil::moment_of(*date, {}, 0, nullptr)) return Unclear::no;
  if (time.empty()) return Unclear::day;
  const auto hour = take_number(time, 2, 2), minute = take_number(time, 2, 2);
  return *hour <= 23 && *minute <= 59 ? Unclear::minute : Unclear::no;
}

bool TimeReader::is_off_clock(std::string_view text) const {
  if (!zone_ || read(text)) return false;
  TimeReader elsewhere = *this;
  elsewhere.zone_ = TimeZone::of_offset("UTC");
  return elsewhere.read(text).has_value();
}

std::string TimeReader::expected() const {
  switch (format_) {
    case TimeFormat::automatic:
      return "a time";
    case TimeFormat::seconds:
      return "a number of seconds";
    case TimeFormat::milliseconds:
      return "a number of milliseconds";
    case TimeFormat::microseconds:
      return "a number of microseconds";
    case TimeFormat::nanoseconds:
      return "a number of nanoseconds";
    case TimeFormat::iso8601:
      return "an ISO 8601 time";
    case TimeFormat::clf:
      return "a clf time such as 10/Oct/2000:13:55:36 -0700";
    case TimeFormat::syslog:
      return "a syslog time such as Oct 10 13:55:36";
    case TimeFormat::rfc2822:
      return "an RFC 2822 time such as Tue, 10 Oct 2000 13:55:36 -0700";
    case TimeFormat::strptime:
      break;
  }
  return "a time in the strptime pattern";
}

std::string TimeReader::advice(std::string_view text, std::string_view fields) const {
  if (is_off_clock(text)) return "";
  const auto give = [](std::string_view name) {
    return fmt::format("it looks like {}: give `time_format` {}", name, name);
  };
  // The fields from this one on, if it is one with a number.
  const auto spread = [fields](int more) -> std::string {
    std::string_view rest = fields;
    const auto first = take_number(rest, 1, 6);
    if (!first || !rest.empty()) return "";
    std::string all = fmt::format("`event_time` {}", *first);
    for (int i = 1; i <= more; ++i) all += fmt::format(",{}", *first + i);
    return all;
  };
  for (const TimeFormat other :
       {TimeFormat::iso8601, TimeFormat::clf, TimeFormat::rfc2822, TimeFormat::syslog})
    if (parse_time(text, other)) return give(name_of(other));
  const TimeZone* const utc = TimeZone::utc();
  if (parse_clf(text, utc)) {
    const std::string both = spread(1);
    return fmt::format(
        "it looks like clf without its offset from UTC: {}give `time_zone` if it has "
        "none",
        both.empty() ? "" : fmt::format("give {} if that is the next field, or ", both));
  }
  if (parse_rfc2822(text, utc))
    return "it looks like rfc2822 without its zone: give `time_zone` if it has none";
  std::string_view word = text;
  if (civil::take_month(word, false) && word.empty() && !spread(2).empty())
    return fmt::format(
        "it looks like the first of three fields of syslog: give `time_format` syslog "
        "and {}",
        spread(2));
  if (civil::take_weekday(word = text, false) && word == "," && !spread(5).empty())
    return fmt::format("it looks like the first of six fields of rfc2822: give {}", spread(5));
  if (const auto patterns = patterns_of(text); !patterns.empty()) {
    std::string given, longer;
    for (const std::string& pattern : patterns) {
      const char* const before = given.empty() ? "" : " or ";
      given += fmt::format("{}'{}{}'", before, kPattern, pattern);
      longer += fmt::format("{}'{}{} %H:%M:%S'", before, kPattern, pattern);
    }
    // In one field, a date may be the first part of a time.
    const std::string both =
        patterns[0].find("%M") == std::string::npos ? spread(1) : std::string();
    return fmt::format("it looks like a date of numbers: give `time_format` {}{}", given,
                       both.empty() ? ""
                                    : fmt::format(", or, if the time of day is the next field, {} "
                                                  "and `time_format` {}",
                                                  both, longer));
  }
  // Seconds since 1970 in the years from 2001 on.
  constexpr Nanoseconds kBillion = 1'000'000'000 * civil::kSecond;
  const auto decimal = parse_decimal(text);
  if (const auto time = parse_number(text, TimeFormat::automatic); decimal && time >= kBillion)
    return give(name_of(static_cast<TimeFormat>(1 + (9 - likely_unit(*decimal)) / 3)));
  return "";
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

}  // namespace sluice
