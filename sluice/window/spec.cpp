#include "sluice/window/spec.hpp"

#include <fmt/format.h>

#include <chrono>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kHour = 3'600'000'000'000;
constexpr std::uint64_t kDay = 24 * kHour;

}  // namespace

WindowSpec parse_window(std::string_view flag, std::string_view text) {
  if (text == "hour") return {WindowSpec::Kind::landmark, kHour};
  if (text == "day") return {WindowSpec::Kind::landmark, kDay};
  const DurationOrCount parsed = parse_duration_or_count(flag, text);
  if (const auto* keys = std::get_if<std::uint64_t>(&parsed))
    return {WindowSpec::Kind::count, *keys};
  const auto nanoseconds =
      static_cast<std::uint64_t>(std::get<std::chrono::nanoseconds>(parsed).count());
  if (nanoseconds > kLongestWindow)
    throw BadParameters(fmt::format("{} '{}' is too long: at most 73 years", flag, text));
  return {WindowSpec::Kind::time, nanoseconds};
}

bool holds_days(const WindowSpec& window) noexcept {
  return !window.by_time() || window.size >= kDay;
}

std::string in_words(std::uint64_t nanoseconds) {
  struct Unit {
    std::uint64_t nanoseconds;
    std::string_view name;
  };
  constexpr Unit kUnits[] = {{kDay, "day"},
                             {kHour, "hour"},
                             {kHour / 60, "minute"},
                             {kHour / 3600, "second"},
                             {1'000'000, "millisecond"},
                             {1'000, "microsecond"},
                             {1, "nanosecond"}};
  for (const Unit& unit : kUnits) {
    if (nanoseconds % unit.nanoseconds != 0) continue;
    const std::uint64_t count = nanoseconds / unit.nanoseconds;
    return counted(count, unit.name);
  }
  return "";
}

std::string describe(const WindowSpec& window, bool refreshed) {
  switch (window.kind) {
    case WindowSpec::Kind::count:
      if (window.size == 1) return refreshed ? "the last arrival" : "the last delivery";
      return fmt::format("the last {} {}", format_count(window.size),
                         refreshed ? "arrivals" : "deliveries");
    case WindowSpec::Kind::time:
      return fmt::format("the last {}", in_words(window.size));
    case WindowSpec::Kind::landmark:
      break;
  }
  if (window.size == kHour) return "the present hour (UTC)";
  if (window.size == kDay) return "the present day (UTC)";
  return fmt::format("since the last whole {} (UTC)", in_words(window.size));
}

std::string_view name_of(WindowSpec::Kind kind) noexcept {
  switch (kind) {
    case WindowSpec::Kind::count:
      return "count";
    case WindowSpec::Kind::time:
      return "time";
    case WindowSpec::Kind::landmark:
      break;
  }
  return "landmark";
}

}  // namespace sluice
