// What a window is, as a person says it: `1M` deliveries, `10m` of time, or since the last `hour`
// or `day`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

struct WindowSpec {
  // The numbers are part of the snapshot format.
  enum class Kind : std::uint8_t {
    count = 1,     // the last `size` deliveries (with refresh: arrivals)
    time = 2,      // the last `size` nanoseconds
    landmark = 3,  // since the last full hour or day, in UTC
  };
  Kind kind = Kind::count;
  std::uint64_t size = 0;  // keys, or nanoseconds

  bool by_time() const noexcept { return kind != Kind::count; }
  friend bool operator==(const WindowSpec&, const WindowSpec&) = default;
};

// Nanoseconds: 73 years. Times have 63 bits, and it must be possible to subtract a window from any
// time.
inline constexpr std::uint64_t kLongestWindow = std::uint64_t{1} << 61;

// Whether a date without a time of day is fine enough for this window.
bool holds_days(const WindowSpec& window) noexcept;

// "1M", "10m", "day", "hour". Throws BadParameters naming `flag`.
WindowSpec parse_window(std::string_view flag, std::string_view text);

// "the last 1,000,000 deliveries", "the last 10 minutes", "the present day (UTC)": for messages.
// Different windows give different texts.
std::string describe(const WindowSpec& window, bool refreshed);
// "10 minutes": in the largest unit that leaves no remainder, spelled out, since "10m" would not
// show how m was understood.
std::string in_words(std::uint64_t nanoseconds);
std::string_view name_of(WindowSpec::Kind kind) noexcept;

}  // namespace sluice
