#include "sluice/stream/log_time.hpp"

#include <array>
#include <utility>

#include "sluice/stream/civil_time.hpp"

namespace sluice {
namespace {

using civil::take;

// Two digits at a fixed place, or more than 99.
int two_digits(const char* at) {
  const auto tens = static_cast<unsigned>(at[0] - '0'), ones = static_cast<unsigned>(at[1] - '0');
  return tens <= 9 && ones <= 9 ? static_cast<int>(10 * tens + ones) : 100;
}

// The zones that RFC 2822 defines, in hours ahead of UTC. The letters of the military zones mean
// nothing, it says: they were used with either sign. UTC is what many write for UT.
constexpr std::array<std::pair<std::string_view, int>, 12> kZones = {{{"ut", 0},
                                                                      {"utc", 0},
                                                                      {"gmt", 0},
                                                                      {"est", -5},
                                                                      {"edt", -4},
                                                                      {"cst", -6},
                                                                      {"cdt", -5},
                                                                      {"mst", -7},
                                                                      {"mdt", -6},
                                                                      {"pst", -8},
                                                                      {"pdt", -7},
                                                                      {"z", 0}}};

std::optional<Nanoseconds> take_zone(std::string_view& text) {
  if (text.starts_with('+') || text.starts_with('-')) return civil::take_offset(text);
  for (const auto& [name, hours] : kZones) {
    std::string_view rest = text;
    if (!civil::take_word(rest, name) || !rest.empty()) continue;
    text = rest;
    return hours * 3600 * civil::kSecond;
  }
  return std::nullopt;
}

// RFC 2822, 4.3: years of two digits are those from 1950 to 2049, of three those after 1900.
std::optional<int> take_year(std::string_view& text) {
  const std::size_t size = text.size();
  const auto year = civil::take_number(text, 2, 4);
  if (!year) return std::nullopt;
  const std::size_t digits = size - text.size();
  if (digits == 2 && *year < 50) return *year + 2000;
  return digits < 4 ? *year + 1900 : *year;
}

}  // namespace

std::optional<Nanoseconds> parse_clf(std::string_view text, const TimeZone* zone) {
  constexpr std::string_view kForm = "10/Oct/2000:13:55:36";
  take(text, '[');
  if (text.size() < kForm.size()) return std::nullopt;
  const char* const at = text.data();
  for (const std::size_t i : {2, 6, 11, 14, 17})
    if (at[i] != kForm[i]) return std::nullopt;
  std::string_view name = text.substr(3, 3);
  const auto month = civil::take_month(name, false);
  const int day = two_digits(at), century = two_digits(at + 7), year = two_digits(at + 9);
  const int hour = two_digits(at + 12), minute = two_digits(at + 15), second = two_digits(at + 18);
  if (!month || century > 99 || year > 99) return std::nullopt;
  text.remove_prefix(kForm.size());
  std::optional<Nanoseconds> fraction = 0;
  if (take(text, '.')) fraction = civil::take_fraction(text);
  if (!fraction) return std::nullopt;
  std::optional<Nanoseconds> offset;
  if (take(text, ' ')) {
    offset = civil::take_offset(text);
    if (!offset) return std::nullopt;
  }
  take(text, ']');
  if (!text.empty() || (!offset && zone == nullptr)) return std::nullopt;
  const auto clock = civil::clock_of(hour, minute, second, *fraction);
  if (!clock) return std::nullopt;
  return civil::moment_of({.year = 100 * century + year, .month = *month, .day = day}, *clock,
                          offset, zone);
}

std::optional<Nanoseconds> parse_bsd_syslog(std::string_view text) {
  if (take(text, '<') && (!civil::take_number(text, 1, 3) || !take(text, '>'))) return std::nullopt;
  const auto month = civil::take_month(text, false);
  if (!month || !civil::take_blanks(text)) return std::nullopt;
  const auto day = civil::take_number(text, 1, 2);
  if (!day || !civil::take_blanks(text)) return std::nullopt;
  const auto clock = civil::take_clock(text, true);
  if (!clock || !text.empty()) return std::nullopt;
  return civil::moment_of({.month = *month, .day = *day}, *clock, {}, nullptr);
}

std::optional<Nanoseconds> parse_rfc2822(std::string_view text, const TimeZone* zone) {
  std::optional<int> weekday;
  if (!text.empty() && !civil::is_digit(text.front())) {
    weekday = civil::take_weekday(text, false);
    if (!weekday || !take(text, ',')) return std::nullopt;
    civil::take_blanks(text);
  }
  const auto day = civil::take_number(text, 1, 2);
  if (!day || !civil::take_blanks(text)) return std::nullopt;
  const auto month = civil::take_month(text, false);
  if (!month || !civil::take_blanks(text)) return std::nullopt;
  const auto year = take_year(text);
  if (!year || !civil::take_blanks(text)) return std::nullopt;
  const auto clock = civil::take_clock(text, true);
  if (!clock) return std::nullopt;
  std::optional<Nanoseconds> offset;
  if (civil::take_blanks(text)) {
    offset = take_zone(text);
    if (!offset) return std::nullopt;
  }
  if (!text.empty() || (!offset && zone == nullptr)) return std::nullopt;
  const civil::Date date{.year = *year, .month = *month, .day = *day};
  const auto moment = civil::moment_of(date, *clock, offset, zone);
  if (moment && weekday && *weekday != civil::weekday_of(date)) return std::nullopt;
  return moment;
}

}  // namespace sluice
