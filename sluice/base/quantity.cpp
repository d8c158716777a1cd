#include "sluice/base/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <span>

#include "sluice/base/bits.hpp"
#include "sluice/base/error.hpp"

namespace sluice {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr Unit kCountUnits[] = {{"", 1}, {"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}};

constexpr Unit kSizeUnits[] = {
    {"", 1},
    {"B", 1},
    {"KiB", 1ULL << 10},
    {"MiB", 1ULL << 20},
    {"GiB", 1ULL << 30},
    {"TiB", 1ULL << 40},
    {"kB", 1'000},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
};

constexpr Unit kDurationUnits[] = {
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60ULL * 1'000'000'000},
    {"h", 3'600ULL * 1'000'000'000},
    {"d", 86'400ULL * 1'000'000'000},
};

constexpr std::string_view kCountAdvice =
    "give a whole number, with k, M or G for thousands, millions or billions, such as 500k or 1M";
constexpr std::string_view kSizeAdvice = "give a size in bytes, such as 4096, 512KiB, 64MiB or 8MB";
constexpr std::string_view kDurationAdvice =
    "give a number and its unit (ns, us, ms, s, m for minutes, h or d), such as 500ms, 10m or 24h";

// Why a text is not a quantity: the middle of the sentence that `refuse` makes.
enum class Flaw { none, form, fraction, range };

struct Reading {
  Flaw flaw = Flaw::none;
  std::uint64_t value = 0;
};

[[noreturn]] void refuse(std::string_view flag, std::string_view text, std::string_view reason,
                         std::string_view advice) {
  throw BadParameters(fmt::format("{} '{}' {}: {}", flag, text, reason, advice));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A number at the start of a text: digits, which may have _ between them, a fraction and an exponent.
struct Number {
  std::string digits;      // all significant ones, without the point; empty: zero
  long exponent = 0;       // of the last digit
  std::size_t length = 0;  // of the text; 0: it does not begin with a number

  // Digits before the point, if positive.
  long whole_digits() const { return static_cast<long>(digits.size()) + exponent; }
};

// Takes digits from `at` on, and returns whether there are any.
bool take_digits(std::string_view text, std::size_t& at, std::string& digits) {
  const std::size_t start = at;
  for (; at < text.size(); ++at) {
    const bool between = text[at] == '_' && at > start && at + 1 < text.size() &&
                         is_digit(text[at - 1]) && is_digit(text[at + 1]);
    if (is_digit(text[at]))
      digits += text[at];
    else if (!between)
      break;
  }
  return at > start;
}

// Of "e6", "E+6" or "e-6" at `at`; 0 if there is none.
long take_exponent(std::string_view text, std::size_t& at) {
  constexpr long kMost = 1'000'000;  // far beyond any quantity
  std::size_t next = at;
  if (next == text.size() || (text[next] != 'e' && text[next] != 'E')) return 0;
  const bool negative = ++next < text.size() && text[next] == '-';
  if (next < text.size() && (text[next] == '-' || text[next] == '+')) ++next;
  long exponent = 0;
  const std::size_t start = next;
  for (; next < text.size() && is_digit(text[next]); ++next)
    exponent = std::min(kMost, exponent * 10 + (text[next] - '0'));
  if (next == start) return 0;
  at = next;
  return negative ? -exponent : exponent;
}

Number scan_number(std::string_view text) {
  Number number;
  std::size_t at = 0;
  bool any = take_digits(text, at, number.digits);
  std::size_t fraction = at + 1;
  const std::size_t whole = number.digits.size();
  if (at < text.size() && text[at] == '.' && take_digits(text, fraction, number.digits)) {
    any = true;
    at = fraction;
  }
  if (!any) return {};
  number.exponent = -static_cast<long>(number.digits.size() - whole);
  number.exponent += take_exponent(text, at);
  number.length = at;
  const std::size_t first = std::min(number.digits.find_first_not_of('0'), number.digits.size());
  number.digits.erase(0, first);
  while (number.digits.ends_with('0')) {
    number.digits.pop_back();
    ++number.exponent;
  }
  return number;
}

Uint128 power_of_ten(long exponent) {
  Uint128 power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

// A number and a unit, in whole units of factor 1, at most `most`. All arithmetic is on integers, so
// that "0.1" of something is exactly that.
Reading read_quantity(std::string_view text, std::span<const Unit> units, std::uint64_t most) {
  const Number number = scan_number(text);
  if (number.length == 0) return {Flaw::form};
  const std::string_view name = text.substr(number.length);
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end()) return {Flaw::form};
  if (number.digits.empty()) return {};
  // 2^64 has 20 digits, and finer parts of a unit are not whole. All stay below 2^128.
  constexpr long kMostWhole = 20, kMostDigits = 24, kMostDecimals = 36;
  if (number.whole_digits() > kMostWhole) return {Flaw::range};
  if (static_cast<long>(number.digits.size()) > kMostDigits || -number.exponent > kMostDecimals)
    return {Flaw::fraction};
  Uint128 scaled = 0;
  for (const char digit : number.digits) scaled = scaled * 10 + static_cast<unsigned>(digit - '0');
  scaled *= power_of_ten(number.exponent);
  scaled *= unit->factor;
  const Uint128 divisor = power_of_ten(-number.exponent);
  if (scaled % divisor != 0) return {Flaw::fraction};
  if (scaled / divisor > most) return {Flaw::range};
  return {Flaw::none, static_cast<std::uint64_t>(scaled / divisor)};
}

std::uint64_t value_or_refuse(const Reading& reading, std::string_view flag, std::string_view text,
                              std::string_view noun, std::string_view whole_of,
                              std::string_view advice) {
  switch (reading.flaw) {
    case Flaw::none:
      break;
    case Flaw::form:
      refuse(flag, text, fmt::format("is not a {}", noun), advice);
    case Flaw::fraction:
      refuse(flag, text, fmt::format("is not a whole {}", whole_of), advice);
    case Flaw::range:
      refuse(flag, text, "is too large", advice);
  }
  return reading.value;
}

Reading read_count(std::string_view text) {
  return read_quantity(text, kCountUnits, std::numeric_limits<std::uint64_t>::max());
}

Reading read_duration(std::string_view text) {
  return read_quantity(text, kDurationUnits, std::numeric_limits<std::int64_t>::max());
}

std::optional<double> value_of(const Number& number) {
  const std::string text =
      fmt::format("{}e{}", number.digits.empty() ? "0" : number.digits, number.exponent);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

// A number or a percentage; nothing when it is neither.
std::optional<double> read_ratio(std::string_view text) {
  const bool percent = !text.empty() && text.back() == '%';
  if (percent) text.remove_suffix(1);
  const Number number = scan_number(text);
  if (text.empty() || number.length < text.size()) return std::nullopt;
  const std::optional<double> value = value_of(number);
  return value && percent ? *value / 100 : value;
}

// At most one decimal, and none when it would be zero.
std::string short_decimal(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

// Three significant digits without an exponent, for 0 <= value < 1000.
std::string three_digits(double value) {
  std::string text = fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::uint64_t parse_count(std::string_view flag, std::string_view text) {
  return value_or_refuse(read_count(text), flag, text, "count", "number", kCountAdvice);
}

std::uint64_t parse_size(std::string_view flag, std::string_view text) {
  const Reading reading =
      read_quantity(text, kSizeUnits, std::numeric_limits<std::uint64_t>::max());
  if (reading.flaw == Flaw::form && text.size() > 1) {
    // For a number with a bare prefix, name the two units that it might mean.
    const char prefix = text.back();
    const std::string_view number = text.substr(0, text.size() - 1);
    const bool is_prefix = std::string_view("kKMGT").find(prefix) != std::string_view::npos;
    if (is_prefix && scan_number(number).length == number.size()) {
      const char binary = prefix == 'k' ? 'K' : prefix;
      const char decimal = prefix == 'K' ? 'k' : prefix;
      refuse(flag, text, "could mean two sizes",
             fmt::format("say {}{}iB (powers of 1024) or {}{}B (powers of 1000)", number, binary,
                         number, decimal));
    }
  }
  return value_or_refuse(reading, flag, text, "size", "number of bytes", kSizeAdvice);
}

std::chrono::nanoseconds parse_duration(std::string_view flag, std::string_view text) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value_or_refuse(
      read_duration(text), flag, text, "duration", "number of nanoseconds", kDurationAdvice)));
}

double parse_rate(std::string_view flag, std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view unit = slash == std::string_view::npos ? "" : text.substr(slash + 1);
  const double seconds = unit == "s"   ? 1
                         : unit == "m" ? 60
                         : unit == "h" ? 3600
                         : unit == "d" ? 86'400
                                       : 0;
  if (seconds == 0)
    throw BadParameters(
        fmt::format("{} '{}' is no rate: give keys per second, minute, hour or day, such as 50k/s",
                    flag, text));
  const std::string_view number = text.substr(0, slash);
  // Less than one per second may be meant.
  constexpr double kMost = 0x1p64;
  const std::optional<double> keys = read_number(number);
  if (!keys)
    throw BadParameters(fmt::format("{} '{}' is no rate, such as 50k/s or .5/s", flag, text));
  if (*keys >= kMost)
    refuse(flag, text, "is too large",
           "give keys per second, minute, hour or day, such as 50k/s, and fewer than 2^64");
  return *keys / seconds;
}

std::optional<double> read_number(std::string_view text) {
  const Number number = scan_number(text);
  if (number.length == 0) return std::nullopt;
  const auto unit = std::ranges::find(kCountUnits, text.substr(number.length), &Unit::name);
  const std::optional<double> value = value_of(number);
  if (unit == std::end(kCountUnits) || !value) return std::nullopt;
  return *value * static_cast<double>(unit->factor);
}

double parse_probability(std::string_view flag, std::string_view text) {
  const std::optional<double> value = read_ratio(text);
  constexpr std::string_view kAdvice =
      "give a number above 0 and below 1, such as 1e-6, 0.01 or 1%";
  if (!value) refuse(flag, text, "is not a probability", kAdvice);
  if (!(*value > 0 && *value < 1)) refuse(flag, text, "is out of range", kAdvice);
  return *value;
}

double parse_share(std::string_view flag, std::string_view text) {
  const std::optional<double> value = read_ratio(text);
  constexpr std::string_view kAdvice = "give a number from 0 to 1, such as 0.3 or 30%";
  if (!value) refuse(flag, text, "is not a share", kAdvice);
  if (!(*value >= 0 && *value <= 1)) refuse(flag, text, "is out of range", kAdvice);
  return *value;
}

DurationOrCount parse_duration_or_count(std::string_view flag, std::string_view text) {
  constexpr std::string_view kAdvice =
      "give a duration such as 30s or 10m, or a count such as 5000 or 1M";
  const Reading count = read_count(text);
  const Reading duration = read_duration(text);
  const bool is_count = count.flaw != Flaw::form;
  const std::uint64_t value = value_or_refuse(is_count ? count : duration, flag, text,
                                              "duration or a count", "number", kAdvice);
  if (value == 0) refuse(flag, text, "is zero", kAdvice);
  if (is_count) return value;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value));
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string format_count(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string format_size(std::uint64_t bytes) {
  if (bytes == 1) return "1 byte";
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  constexpr std::array<std::string_view, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would be printed as 1024.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", short_decimal(value), kUnits[unit]);
}

std::string exact_size(std::uint64_t bytes) {
  std::string plain = std::to_string(bytes), shortest;
  for (const Unit& unit : kSizeUnits) {
    // Powers of 1000 only if those of 1024, which come first, will not do.
    if (unit.name == "kB" && !shortest.empty()) break;
    // No more than three decimals.
    const Uint128 thousandths = Uint128{bytes} * 1000;
    if (unit.factor == 1 || bytes < unit.factor || thousandths % unit.factor != 0) continue;
    std::string text = fmt::format("{}.{:03}", bytes / unit.factor,
                                   static_cast<unsigned>(thousandths / unit.factor % 1000));
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
    text += unit.name;
    if (shortest.empty() || text.size() < shortest.size()) shortest = text;
  }
  return shortest.empty() || shortest.size() > plain.size() ? plain : shortest;
}

std::string format_rate(double per_second) {
  constexpr std::array<std::string_view, 4> kUnits = {"", "k", "M", "G"};
  std::size_t unit = 0;
  // 999.5 would be printed as 1000.
  while (per_second >= 999.5 && unit + 1 < kUnits.size()) {
    per_second /= 1000;
    ++unit;
  }
  return fmt::format("{}{}/s", three_digits(per_second), kUnits[unit]);
}

std::string format_probability(double probability) {
  return fmt::format("{:.2g}", probability);
}

std::string format_duration(std::chrono::nanoseconds value) {
  // Through unsigned, so that the most negative value has a magnitude.
  const bool negative = value.count() < 0;
  const auto raw = static_cast<std::uint64_t>(value.count());
  const std::uint64_t ns = negative ? 0 - raw : raw;
  const auto fraction_of = [ns](double unit) {
    return three_digits(static_cast<double>(ns) / unit);
  };
  const auto two_parts = [](std::uint64_t total, std::uint64_t per_unit, char unit, char rest) {
    const std::uint64_t left = total % per_unit;
    return left == 0 ? fmt::format("{}{}", total / per_unit, unit)
                     : fmt::format("{}{} {}{}", total / per_unit, unit, left, rest);
  };
  std::string text;
  // Each bound is where three digits, or the next finer unit rounded, would reach the unit above.
  if (ns == 0)
    text = "0s";
  else if (ns < 1'000)
    text = fmt::format("{}ns", ns);
  else if (ns < 999'500)
    text = fraction_of(1e3) + "us";
  else if (ns < 999'500'000)
    text = fraction_of(1e6) + "ms";
  else if (ns < 59'950'000'000)
    text = fraction_of(1e9) + "s";
  else if (ns < 3'599'500'000'000)
    text = two_parts((ns + 500'000'000) / 1'000'000'000, 60, 'm', 's');
  else if (ns < 86'370'000'000'000)
    text = two_parts((ns + 30'000'000'000) / 60'000'000'000, 60, 'h', 'm');
  else
    text = two_parts((ns + 1'800'000'000'000) / 3'600'000'000'000, 24, 'd', 'h');
  return negative ? "-" + text : text;
}

}  // namespace sluice
