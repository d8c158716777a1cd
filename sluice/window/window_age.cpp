// How old the keys of a window are.
#include <algorithm>
#include <array>

#include "sluice/window/window.hpp"

namespace sluice {

// Age-partitioned filters keep no ages: a key is where its bits happen to be set.
bool Window::knows_ages() const noexcept {
  constexpr std::array<std::string_view, 4> kNames{"cohort", "exact-window", "timing", "timer"};
  return std::ranges::find(kNames, filter_name()) != kNames.end();
}

std::optional<std::uint64_t> Window::age_of(const Digest& digest, Nanoseconds now) const {
  const bool by_time = params().spec.by_time();
  const bool ages = by_time && clock_.started() && now > clock_.now();
  if (!ages) now = clock_.now();
  if (listed()) {
    const auto at = find_listed(digest, now);
    if (!at) return std::nullopt;
    const std::int64_t newest = by_time ? now : tick_ - 1;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(newest - list_.stamps()[*at], 0));
  }
  const std::int64_t passed = ages ? tick_of(now) - tick_ : 0;
  const unsigned most = generations();
  if (passed > std::int64_t{most}) return std::nullopt;
  // The most rotations that a key outlives tell its generation.
  const auto stays = [&](unsigned rotations) {
    Verdict verdict = Verdict::distinct;
    growth_->may_contain(std::span(&digest, 1), std::span(&verdict, 1), rotations);
    return verdict == Verdict::duplicate;
  };
  unsigned low = static_cast<unsigned>(passed), high = most;
  if (!stays(low)) return std::nullopt;
  while (low < high) {
    const unsigned middle = low + (high - low + 1) / 2;
    if (stays(middle))
      low = middle;
    else
      high = middle - 1;
  }
  const std::uint64_t age = most - low + static_cast<std::uint64_t>(passed);  // in generations
  if (age == 0) return 0;
  const std::uint64_t size = generation_size();
  if (!by_time) return position(now) + (age - 1) * size;
  // Since the last nanosecond of its generation.
  const std::int64_t end =
      (tick_of(now) - static_cast<std::int64_t>(age) + 1) * static_cast<std::int64_t>(size);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(now - end + 1, 0));
}

}  // namespace sluice
