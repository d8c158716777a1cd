#include "apps/redis/bf_filters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "apps/redis/commands.hpp"
#include "apps/redis/effects.hpp"
#include "apps/redis/making.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/bloom/bloom.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/dynamic/dynamic.hpp"

namespace sluice::server {
namespace {

// Beyond this factor the next filter would take all memory at once: `dynamic` takes no larger one.
constexpr std::int64_t kMostGrowth = 16;
// A stricter error than this would take more and more memory for nothing: digests have 128 bits. A laxer one
// is none that filters take.
constexpr double kStrictest = 1e-30, kLaxest = 0.999;

Making making_of(const BfWanted& wanted, std::int64_t now_ms) {
  Making making{.secret = Secret::random()};
  making.made_ms = now_ms;
  making.filter = wanted.nonscaling ? "bloom,layout=classic"
                                    : fmt::format("dynamic,tighten=0.5,growth={}",
                                                  std::min(wanted.expansion, kMostGrowth));
  making.keys = wanted.capacity;
  making.fpr = std::clamp(wanted.error, kStrictest, kLaxest);
  constexpr std::int64_t kMost = Entry::kNonScaling - 1;
  making.expansion = wanted.nonscaling
                         ? Entry::kNonScaling
                         : static_cast<std::uint16_t>(std::min(wanted.expansion, kMost));
  return making;
}

// The series, or the filter of NONSCALING, that a BF command has made; else null.
const Dynamic* series_of(const Entry& entry) {
  return entry.expansion() == 0 ? nullptr : entry.filter().as<Dynamic>();
}

const Bloom* fixed_of(const Entry& entry) {
  return entry.expansion() == Entry::kNonScaling ? entry.filter().as<Bloom>() : nullptr;
}

}  // namespace

void make_bf(Host& host, Place& place, const BfWanted& wanted) {
  const Making making = making_of(wanted, host.now_ms());
  try {
    const Forecast forecast =
        forecast_filter(making.filter, {.keys = making.keys, .fpr = making.fpr});
    check_room(host, bytes_in(forecast, host.memory().costs()));
    make_entry(host, place, 1, making);
  } catch (const NoMemory& error) {
    throw BadParameters(fmt::format("Insufficient memory to create filter: {}", error.what()));
  } catch (const BadParameters& error) {
    throw BadParameters(fmt::format("could not create filter: {}", error.what()));
  }
}

BfNumbers bf_numbers(const Entry& entry) {
  if (const Bloom* const fixed = fixed_of(entry))
    return {.capacity = fixed->params().capacity, .filters = 1, .items = fixed->keys()};
  if (const Dynamic* const series = series_of(entry)) {
    const DynamicStats stats = series->series();
    const std::uint64_t capacity = stats.real_capacity + stats.kept;
    return {.capacity = capacity, .filters = stats.filters, .items = capacity - stats.room};
  }
  const FilterStats stats = entry.filter().stats();
  return {.capacity = stats.capacity, .filters = 1, .items = stats.keys};
}

std::uint64_t bf_room(const Entry& entry) {
  if (fixed_of(entry) == nullptr && series_of(entry) == nullptr)
    return std::numeric_limits<std::uint64_t>::max();
  const BfNumbers numbers = bf_numbers(entry);
  return numbers.capacity - std::min(numbers.capacity, numbers.items);
}

bool bf_may_grow(Host& host, const Entry& entry) {
  if (entry.expansion() == Entry::kNonScaling) return false;
  try {
    const Dynamic& series = *series_of(entry);
    check_room(host, series.params().shape(series.series().filters).bytes());
    return true;
  } catch (const NoMemory&) {
    return false;
  }
}

}  // namespace sluice::server
