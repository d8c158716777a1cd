// Files of the tz database: RFC 8536. The second half of a file has 64-bit times; after the last of
// them, a rule in the style of POSIX's TZ says how it goes on.
#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/stream/civil_time.hpp"
#include "sluice/stream/time_zone.hpp"

namespace sluice {
namespace {

using civil::take;
using civil::take_number;

[[noreturn]] void refuse() {
  throw BadParameters("it is not a file of the tz database (TZif, version 2 or later)");
}

void need(bool sound) {
  if (!sound) refuse();
}

std::string_view take_bytes(std::string_view& bytes, std::uint64_t count) {
  need(count <= bytes.size());
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

std::int64_t take_big_endian(std::string_view& bytes, std::size_t size) {
  std::uint64_t value = 0;
  for (const char byte : take_bytes(bytes, size))
    value = value << 8 | static_cast<unsigned char>(byte);
  const unsigned unused = 64 - 8 * static_cast<unsigned>(size);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

struct Header {
  // isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt
  std::array<std::uint64_t, 6> counts{};
  // The bytes of what follows, with times of this size.
  std::uint64_t bytes(std::uint64_t time_bytes) const {
    const auto& [ut, standard, leap, times, types, chars] = counts;
    return times * (time_bytes + 1) + types * 6 + chars + leap * (time_bytes + 4) + standard + ut;
  }
};

Header take_header(std::string_view& bytes) {
  constexpr std::size_t kReserved = 15;
  need(take_bytes(bytes, 4) == "TZif");
  need(take_bytes(bytes, 1) >= "2");
  take_bytes(bytes, kReserved);
  Header header;
  for (std::uint64_t& count : header.counts)
    count = static_cast<std::uint32_t>(take_big_endian(bytes, 4));
  return header;
}

// [+-]hh[:mm[:ss]], up to a week.
Nanoseconds take_rule_time(std::string_view& text) {
  const bool negative = take(text, '-');
  if (!negative) take(text, '+');
  const auto hours = take_number(text, 1, 3);
  need(hours && *hours <= 167);
  Nanoseconds seconds = *hours * Nanoseconds{3600};
  for (const int unit : {60, 1}) {
    if (!take(text, ':')) break;
    const auto number = take_number(text, 2, 2);
    need(number && *number <= 59);
    seconds += *number * unit;
  }
  return (negative ? -seconds : seconds) * civil::kSecond;
}

// CET, or <+03>.
void skip_name(std::string_view& text) {
  const bool quoted = take(text, '<');
  const std::size_t end = quoted ? text.find('>') : text.find_first_of("+-0123456789,");
  const std::size_t size = std::min(end, text.size());
  need(size > 0 && (!quoted || end != std::string_view::npos));
  text.remove_prefix(size + (quoted ? 1 : 0));
}

// A day of each year, and a local time.
struct RuleDay {
  char kind = 'M';  // Mmonth.week.weekday; Jday without 29 February; or 0-based day with it: 'n'
  int month = 0, week = 0, day = 0;
  Nanoseconds time = 2 * 3600 * civil::kSecond;

  Nanoseconds in(int year) const {
    std::int64_t date = civil::days_from_date(year, 1, 1) + day;
    if (kind == 'J') date += -1 + (day >= 60 && civil::is_leap_year(year));
    if (kind == 'M') {
      const int first = civil::weekday_of({.year = year, .month = month, .day = 1});
      int of_month = 1 + (day - first + 7) % 7 + 7 * (week - 1);
      if (of_month > civil::days_in_month(year, month)) of_month -= 7;  // week 5 is the last
      date = civil::days_from_date(year, month, of_month);
    }
    return date * civil::kDay + time;
  }
};

RuleDay take_rule_day(std::string_view& text) {
  RuleDay rule;
  need(take(text, ','));
  if (take(text, 'M')) {
    const auto month = take_number(text, 1, 2);
    const bool first = take(text, '.');
    const auto week = take_number(text, 1, 1);
    const bool second = take(text, '.');
    const auto day = take_number(text, 1, 1);
    need(month && week && day && first && second);
    need(*month >= 1 && *month <= 12 && *week >= 1 && *week <= 5 && *day <= 6);
    rule.month = *month;
    rule.week = *week;
    rule.day = *day;
  } else {
    rule.kind = take(text, 'J') ? 'J' : 'n';
    const auto day = take_number(text, 1, 3);
    need(day && *day <= 365 && (rule.kind == 'n' || *day >= 1));
    rule.day = *day;
  }
  if (take(text, '/')) rule.time = take_rule_time(text);
  return rule;
}

}  // namespace

class ZoneFile {
 public:
  explicit ZoneFile(std::string_view bytes) {
    take_bytes(bytes, take_header(bytes).bytes(4));
    const Header header = take_header(bytes);
    std::string_view body = take_bytes(bytes, header.bytes(8));
    read(header, body);
    need(take(bytes, '\n') && bytes.ends_with('\n'));
    bytes.remove_suffix(1);
    if (!bytes.empty()) go_on(bytes);
  }

  std::shared_ptr<const TimeZone> zone() && {
    return std::shared_ptr<const TimeZone>(new TimeZone(std::move(changes_)));
  }

 private:
  static Nanoseconds offset_of(std::int64_t seconds) {
    constexpr std::int64_t kMost = 26 * 3600;  // RFC 8536: from -25 to 26 hours
    need(seconds >= -kMost && seconds <= kMost);
    return seconds * civil::kSecond;
  }

  void read(const Header& header, std::string_view body) {
    const std::uint64_t times = header.counts[3], types = header.counts[4];
    need(types > 0);
    std::string_view moments = take_bytes(body, times * 8), kinds = take_bytes(body, times);
    std::vector<Nanoseconds> offsets;
    for (std::uint64_t i = 0; i < types; ++i) {
      offsets.push_back(offset_of(take_big_endian(body, 4)));
      take_bytes(body, 2);
    }
    changes_.push_back({std::numeric_limits<Nanoseconds>::min(), offsets.front()});
    for (const char kind : kinds) {
      const std::int64_t second = take_big_endian(moments, 8);
      const auto type = static_cast<unsigned char>(kind);
      need(type < types);
      // The beginning of all time, and of our clocks.
      if (second < -civil::kYearless / civil::kSecond) {
        changes_.back().offset = offsets[type];
        continue;
      }
      if (second > civil::kYearless / civil::kSecond) return;
      add(second * civil::kSecond, offsets[type]);
    }
  }

  void add(Nanoseconds from, Nanoseconds offset) {
    need(changes_.back().from < from);
    changes_.push_back({from, offset});
  }

  void go_on(std::string_view rule) {
    skip_name(rule);
    const Nanoseconds standard = -take_rule_time(rule);
    if (rule.empty()) return;  // the last change says the same
    skip_name(rule);
    const Nanoseconds summer =
        rule.starts_with(',') ? standard + 3600 * civil::kSecond : -take_rule_time(rule);
    const RuleDay begins = take_rule_day(rule), ends = take_rule_day(rule);
    need(rule.empty());
    int year = changes_.size() > 1 ? civil::year_of(changes_.back().from) : civil::kFirstYear;
    for (; year <= civil::kLastYear + 1; ++year) {
      TimeZone::Change pair[] = {{begins.in(year)-standard, summer},
                                 {ends.in(year)-summer, standard}};
      if (pair[1].from < pair[0].from) std::swap(pair[0], pair[1]);
      for (const TimeZone::Change& change : pair)
        if (change.from > changes_.back().from) changes_.push_back(change);
    }
  }

  std::vector<TimeZone::Change> changes_;
};

std::shared_ptr<const TimeZone> TimeZone::of_file(std::string_view bytes) {
  return ZoneFile(bytes).zone();
}

}  // namespace sluice
