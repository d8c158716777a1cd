#include "sluice/stream/time_zone.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "sluice/stream/civil_time.hpp"

namespace sluice {
namespace {

constexpr Nanoseconds kBeforeAll = std::numeric_limits<Nanoseconds>::min();

}  // namespace

TimeZone::TimeZone(std::vector<Change> changes) : changes_(std::move(changes)) {
  assert(!changes_.empty() && changes_.front().from == kBeforeAll);
}

std::shared_ptr<const TimeZone> TimeZone::of_offset(std::string_view text) {
  std::optional<Nanoseconds> offset = 0;
  if (text != "UTC") offset = civil::take_offset(text);
  if (!offset || (text != "UTC" && !text.empty())) return nullptr;
  return std::shared_ptr<const TimeZone>(new TimeZone({{kBeforeAll, *offset}}));
}

const TimeZone* TimeZone::utc() {
  static const TimeZone zone({{kBeforeAll, 0}});
  return &zone;
}

// A local time is less than two days from the moment that it is.
std::optional<Nanoseconds> TimeZone::to_utc(Nanoseconds local) const noexcept {
  constexpr Nanoseconds kFarthest = 2 * civil::kDay;
  auto each = std::ranges::upper_bound(changes_, local - kFarthest, {}, &Change::from);
  if (each != changes_.begin()) --each;
  std::optional<Nanoseconds> found;
  for (; each != changes_.end() && each->from <= local + kFarthest; ++each) {
    const Nanoseconds moment = local - each->offset;
    const bool ended = each + 1 != changes_.end() && moment >= each[1].from;
    if (moment < each->from || ended) continue;
    if (found) return std::nullopt;
    found = moment;
  }
  return found;
}

}  // namespace sluice
