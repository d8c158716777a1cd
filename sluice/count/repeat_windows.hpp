// How many of one key's repeats each of several windows would hold back.
//
// A repeat is held back if the last record of its key that was let through is less than the window's reach ago,
// in the units of the caller: nanoseconds or records. This is what a dedup with that window does, as long as
// records come roughly in the order of their times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice {

inline constexpr std::size_t kRepeatWindows = 9;
// From the shortest to the longest.
using WindowSizes = std::array<std::int64_t, kRepeatWindows>;

// 1 s, 10 s, 1 min, 10 min, 1 h, 6 h, 1 d, 7 d, 30 d.
inline constexpr WindowSizes kTimeWindows = [] {
  constexpr std::int64_t kSecond = 1'000'000'000, kHour = 3600 * kSecond, kDay = 24 * kHour;
  return WindowSizes{kSecond,   10 * kSecond, 60 * kSecond, 600 * kSecond, kHour,
                     6 * kHour, kDay,         7 * kDay,     30 * kDay};
}();

// A thousand to a hundred billion.
inline constexpr WindowSizes kRecordWindows = [] {
  WindowSizes sizes{};
  std::int64_t size = 1;
  for (std::int64_t& each : sizes) each = size *= 10;
  for (std::int64_t& each : sizes) each *= 100;
  return sizes;
}();

class RepeatWindows {
 public:
  // The key's first record.
  void begin(std::int64_t position) noexcept {
    last_.fill(position);
    held_.fill(0);
    records_ = 1;
  }
  // Without branches: whether a repeat is held back is hard to predict.
  void observe(std::int64_t position, const WindowSizes& reaches) noexcept {
    ++records_;
    for (std::size_t i = 0; i < kRepeatWindows; ++i) {
      const std::int64_t last = last_[i], later = position > last ? position : last;
      const std::int64_t gap = 2 * later - position - last;
      const bool holds = gap < reaches[i];
      held_[i] += holds;
      last_[i] = holds ? last : later;
    }
  }

  std::uint64_t records() const noexcept { return records_; }
  std::uint64_t duplicates() const noexcept { return records_ - 1; }
  std::uint64_t held(std::size_t window) const noexcept { return held_[window]; }

 private:
  std::uint32_t records_ = 0;
  std::array<std::uint32_t, kRepeatWindows> held_{};
  std::array<std::int64_t, kRepeatWindows> last_{};
};

}  // namespace sluice
