#include "sluice/stream/time_pattern.hpp"

#include <fmt/format.h>

#include "sluice/base/error.hpp"
#include "sluice/stream/civil_time.hpp"

namespace sluice {
namespace {

constexpr const char* kConversions =
    "%Y %y %m %b %B %h %d %e %j %a %A %H %I %p %M %S %f %z %Z %s %F %T %R %D %n %t %%";

// What is written in short.
std::string_view expansion_of(char conversion) {
  switch (conversion) {
    case 'F':
      return "%Y-%m-%d";
    case 'T':
      return "%H:%M:%S";
    case 'R':
      return "%H:%M";
    case 'D':
      return "%m/%d/%y";
    default:
      return {};
  }
}

// The letter under which a conversion counts, so that nothing is said twice; none if there is no such
// conversion.
char meaning_of(char conversion) {
  switch (conversion) {
    case 'y':
      return 'Y';
    case 'b':
    case 'B':
    case 'h':
      return 'm';
    case 'e':
      return 'd';
    case 'A':
      return 'a';
    case 'I':
      return 'H';
    case 'Z':
      return 'z';
    default:
      return std::string_view("YmdjaHpMSfzs").find(conversion) < 12 ? conversion : '\0';
  }
}

bool is_number(char conversion) {
  return std::string_view("YymdejHIMSfs").find(conversion) != std::string_view::npos;
}

[[noreturn]] void refuse(std::string_view pattern, const std::string& why) {
  throw BadParameters(fmt::format("`time_format` strptime:{} {}", pattern, why));
}

// Seconds since 1970 in the years of clocks have at most ten digits.
constexpr std::size_t kMostDigits = 10;

bool take_seconds(std::string_view& text, bool& negative, std::int64_t& seconds) {
  negative = civil::take(text, '-');
  std::size_t digits = 0;
  for (; !text.empty() && civil::is_digit(text.front()); text.remove_prefix(1)) {
    if (++digits > kMostDigits) return false;
    seconds = seconds * 10 + (text.front() - '0');
  }
  return digits > 0;
}

}  // namespace

struct TimePattern::Parts {
  civil::Date date;
  int day_of_year = 0, weekday = -1, hour = 0, minute = 0, second = 0;
  bool afternoon = false;
  Nanoseconds fraction = 0;
  std::optional<Nanoseconds> offset;
  bool negative = false;
  std::int64_t seconds = 0;
};

TimePattern::TimePattern(std::string_view pattern, bool yearless) {
  add(pattern, pattern);
  // 1/2/2026, but 20260102.
  for (std::size_t i = 0; i + 1 < steps_.size(); ++i)
    if (is_number(steps_[i].what) && is_number(steps_[i + 1].what))
      steps_[i].loose = steps_[i + 1].loose = false;
  check(pattern, yearless);
}

bool TimePattern::has(char what) const noexcept {
  return (said_ >> (what - 'A') & 1) != 0;
}

void TimePattern::say(char what, std::string_view whole) {
  if (has(what)) refuse(whole, fmt::format("says %{} twice, in one way or another", what));
  said_ |= std::uint64_t{1} << (what - 'A');
}

void TimePattern::add(std::string_view pattern, std::string_view whole) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == ' ' || c == '\t') {
      steps_.push_back({' ', c, true});
      continue;
    }
    if (c != '%') {
      steps_.push_back({'\0', c, true});
      continue;
    }
    if (++i == pattern.size()) refuse(whole, "ends with a single %: write %% for a percent sign");
    const char conversion = pattern[i];
    if (conversion == '%') {
      steps_.push_back({'\0', '%', true});
    } else if (conversion == 'n' || conversion == 't') {
      steps_.push_back({' ', ' ', true});
    } else if (const std::string_view more = expansion_of(conversion); !more.empty()) {
      add(more, whole);
    } else if (const char meaning = meaning_of(conversion); meaning != '\0') {
      say(meaning, whole);
      steps_.push_back({conversion, '\0', true});
    } else {
      refuse(whole,
             fmt::format("has the unknown conversion %{}: there are {}", conversion, kConversions));
    }
  }
}

void TimePattern::check(std::string_view whole, bool yearless) const {
  bool twelve = false;
  for (const Step& step : steps_) twelve |= step.what == 'I';
  if (twelve != has('p')) refuse(whole, "needs both of %I and %p, or %H");
  if (has('s')) {
    for (const char other : std::string_view("YmdjaHMSz"))
      if (has(other)) refuse(whole, fmt::format("says the time twice: by %s, and by %{}", other));
    return;
  }
  if (has('j') && (has('m') || has('d')))
    refuse(whole, "says the day twice: by %j, and by month or day");
  if (!has('j') && !has('m')) refuse(whole, "does not say the month: add %m, %b or %j");
  if (!has('j') && !has('d')) refuse(whole, "does not say the day: add %d");
  if (!has('Y') && (!yearless || has('j')))
    refuse(whole, "does not say the year: add %Y or %y, or give `year` if the times have none");
  if (has('M') && !has('H')) refuse(whole, "does not say the hour: add %H");
  if (has('H') && !has('M')) refuse(whole, "does not say the minute: add %M");
  if (has('S') && !has('M')) refuse(whole, "does not say the minute: add %M");
  if (has('f') && !has('S')) refuse(whole, "does not say the second: add %S before %f");
  if (has('z') && !has('H')) refuse(whole, "has a zone and no time of day: add %H:%M");
  if (has('z') && !has('Y'))
    refuse(whole, "has a zone and no year: times without a year are in `time_zone`");
}

bool TimePattern::take(const Step& step, std::string_view& text, Parts& parts) noexcept {
  const auto number = [&](int& to, std::size_t most) {
    const auto value = civil::take_number(text, step.loose ? 1 : most, most);
    if (value) to = *value;
    return value.has_value();
  };
  const auto keep = [](int& to, std::optional<int> value) {
    if (value) to = *value;
    return value.has_value();
  };
  switch (step.what) {
    case '\0':
      return civil::take(text, step.literal);
    case ' ':
      civil::take_blanks(text);
      return true;
    case 'Y':
      return keep(parts.date.year, civil::take_number(text, 4, 4));
    case 'y':
      if (!keep(parts.date.year, civil::take_number(text, 2, 2))) return false;
      parts.date.year += parts.date.year < 69 ? 2000 : 1900;
      return true;
    case 'm':
      return number(parts.date.month, 2);
    case 'b':
    case 'B':
    case 'h':
      return keep(parts.date.month, civil::take_month(text, true));
    case 'd':
    case 'e':
      // Padded with a blank, it has one digit, whatever follows.
      if (civil::take(text, ' ')) return keep(parts.date.day, civil::take_number(text, 1, 1));
      return number(parts.date.day, 2);
    case 'j':
      return number(parts.day_of_year, 3);
    case 'a':
    case 'A':
      return keep(parts.weekday, civil::take_weekday(text, true));
    case 'H':
      return number(parts.hour, 2);
    case 'I':
      if (!number(parts.hour, 2) || parts.hour < 1 || parts.hour > 12) return false;
      parts.hour %= 12;
      return true;
    case 'p':
      parts.afternoon = civil::take_word(text, "pm");
      return parts.afternoon || civil::take_word(text, "am");
    case 'M':
      return number(parts.minute, 2);
    case 'S':
      return number(parts.second, 2);
    case 'f': {
      const auto fraction = civil::take_fraction(text);
      if (fraction) parts.fraction = *fraction;
      return fraction.has_value();
    }
    case 'z':
      parts.offset =
          civil::take(text, 'Z') || civil::take(text, 'z') ? 0 : civil::take_offset(text);
      return parts.offset.has_value();
    case 'Z':
      parts.offset = 0;
      return civil::take_word(text, "utc") || civil::take_word(text, "gmt");
    case 's':
      return take_seconds(text, parts.negative, parts.seconds);
    default:
      return false;
  }
}

std::optional<Nanoseconds> TimePattern::read(std::string_view text,
                                             const TimeZone* zone) const noexcept {
  Parts parts;
  for (const Step& step : steps_)
    if (!take(step, text, parts)) return std::nullopt;
  if (!text.empty()) return std::nullopt;
  if (has('s')) {
    if (parts.seconds >= civil::kYearless / civil::kSecond) return std::nullopt;
    const Nanoseconds time = parts.seconds * civil::kSecond + parts.fraction;
    return parts.negative ? -time : time;
  }
  if (has('j')) {
    const int days = civil::is_leap_year(parts.date.year) ? 366 : 365;
    if (parts.day_of_year < 1 || parts.day_of_year > days) return std::nullopt;
    parts.date.day = parts.day_of_year;
    for (parts.date.month = 1;; ++parts.date.month) {
      const int length = civil::days_in_month(parts.date.year, parts.date.month);
      if (parts.date.day <= length) break;
      parts.date.day -= length;
    }
  }
  const auto clock = civil::clock_of(parts.hour + (parts.afternoon ? 12 : 0), parts.minute,
                                     parts.second, parts.fraction);
  if (!clock) return std::nullopt;
  const auto moment = civil::moment_of(parts.date, *clock, parts.offset, zone);
  if (moment && parts.weekday >= 0 && parts.date.year != civil::kNoYear &&
      parts.weekday != civil::weekday_of(parts.date))
    return std::nullopt;
  return moment;
}

}  // namespace sluice
