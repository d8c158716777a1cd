#include "sluice/count/census.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace sluice {
namespace {

// The range of clocks (window/clock.cpp).
constexpr std::int64_t kLastMoment = std::int64_t{1} << 61;

// A window of the last n records has the record n before the next one. A time window has ended when it is as
// long ago as the window is long.
WindowSizes reaches_of(Timeline::Axis axis, WindowSizes sizes) {
  if (axis == Timeline::Axis::records)
    for (std::int64_t& size : sizes) ++size;
  return sizes;
}

}  // namespace

// Over keys: repeats and those that each window holds back, and products of these, weighted for the
// variance of their ratio.
struct Census::Sums {
  double duplicates = 0, duplicates_squared = 0;
  double repeated_keys = 0;  // weighted like the products
  double unseen = 0;         // keys like none in the sample, weighted so, too
  std::array<double, kRepeatWindows> held{}, held_squared{}, held_duplicates{};

  void add(const RepeatWindows& key) noexcept {
    duplicates += static_cast<double>(key.duplicates());
    for (std::size_t i = 0; i < kRepeatWindows; ++i) held[i] += static_cast<double>(key.held(i));
  }
  // A key for which `weight` keys stand, without what was added of it already: `followed`, or null.
  void add_sampled(const RepeatWindows& key, const RepeatWindows* followed,
                   double weight) noexcept {
    const auto rest_of = [](std::uint64_t all, std::uint64_t part) {
      return static_cast<double>(all) - static_cast<double>(part);
    };
    const double repeats =
        rest_of(key.duplicates(), followed == nullptr ? 0 : followed->duplicates());
    const double squared = weight * (weight - 1);
    duplicates += weight * repeats;
    duplicates_squared += squared * repeats * repeats;
    if (repeats > 0) repeated_keys += squared;
    for (std::size_t i = 0; i < kRepeatWindows; ++i) {
      const double each = rest_of(key.held(i), followed == nullptr ? 0 : followed->held(i));
      held[i] += weight * each;
      held_squared[i] += squared * each * each;
      held_duplicates[i] += squared * each * repeats;
    }
  }
  // Keys are what is sampled: the variance is that of a ratio, summed over keys. If all keys of the sample
  // are alike, others may differ from them by all of their repeats. If one key has most of the repeats, the
  // ratio is its own, and this variance says nothing of the others; but then there seem to be more repeats than
  // the `known` ones, or fewer if such a key is not in the sample, and the difference may be held back or not.
  Estimate share(std::size_t i, double known) const noexcept {
    const double ratio = std::clamp(held[i] / duplicates, 0.0, 1.0);
    const double most = std::max(ratio, 1 - ratio);
    const double usual_squared = repeated_keys > 0 ? duplicates_squared / repeated_keys : 1;
    const double variance = held_squared[i] - 2 * ratio * held_duplicates[i] +
                            ratio * ratio * duplicates_squared +
                            unseen * most * most * usual_squared +
                            ratio * (1 - ratio) * std::pow(duplicates - known, 2);
    return {ratio, std::sqrt(std::max(0.0, variance)) / duplicates};
  }
};

Census::Census(Timeline::Axis axis, std::uint64_t most_bytes)
    : sizes_(axis == Timeline::Axis::time ? kTimeWindows : kRecordWindows),
      reaches_(reaches_of(axis, sizes_)),
      keys_(most_bytes - kFixedBytes),
      windowed_(kWindowBytes),
      top_(reaches_),
      timeline_(axis) {}

void Census::feed(std::span<const Digest> digests, std::span<const std::int64_t> times,
                  std::span<const std::string_view> keys) {
  positions_.resize(digests.size());
  if (timeline_.axis() == Timeline::Axis::records)
    std::iota(positions_.begin(), positions_.end(), static_cast<std::int64_t>(records_));
  else  // differences of times must not overflow
    std::ranges::transform(times, positions_.begin(), [](std::int64_t time) {
      return std::clamp(time, -kLastMoment, kLastMoment);
    });
  const std::span<const std::int64_t> positions = positions_;
  counts_.assign(digests.size(), 0);
  new_keys_.assign(digests.size(), 0);
  keys_.observe(digests, [&](std::size_t i, Counted& entry, std::uint64_t weight) {
    if (weight != 0) entry = {digests[i], 0};
    counts_[i] = ++entry.records;
    new_keys_[i] = static_cast<double>(weight);
  });
  const auto one_in = static_cast<double>(keys_.one_in());
  for (std::size_t i = 0; i < digests.size(); ++i) {
    timeline_.add(positions[i], new_keys_[i], one_in);
    if (!keys_.is_complete())
      top_.observe(digests[i], keys[i], positions[i], counts_[i]);
    else if (!top_.ignores(counts_[i]))
      top_.observe_known(digests[i], keys[i], positions[i], counts_[i]);
  }
  windowed_.observe(digests, [&](std::size_t i, Windowed& entry, std::uint64_t weight) {
    entry.key = digests[i];
    if (weight != 0)
      entry.windows.begin(positions[i]);
    else
      entry.windows.observe(positions[i], reaches_);
  });
  records_ += digests.size();
}

// There are no more than records, whatever is estimated.
Estimate Census::distinct() const noexcept {
  const Estimate keys = keys_.keys();
  return {std::min(keys.value, static_cast<double>(records_)), keys.standard_error};
}

Estimate Census::duplicates() const noexcept {
  const Estimate keys = keys_.keys();
  return {std::max(0.0, static_cast<double>(records_) - keys.value), keys.standard_error};
}

// What TopKeys has seen of a key counts once; of the keys in the sample, the rest counts with their weight
// (the difference estimator of survey sampling). This is unbiased since what TopKeys sees of a key does not
// depend on whether the key is in the sample. And it leaves to the sample none of the keys that would decide
// the result by being in it or not: of a key that comes often, TopKeys sees nearly all.
Census::Sums Census::sums() const {
  Sums sums;
  const bool follows = !windowed_.is_complete();
  if (follows) top_.each([&](const RepeatWindows& windows) { sums.add(windows); });
  const auto weight = static_cast<double>(windowed_.one_in());
  sums.unseen = kUnseenCases * weight * (weight - 1);
  windowed_.each([&](const Windowed& entry) {
    sums.add_sampled(entry.windows, follows ? top_.windows_of(entry.key) : nullptr, weight);
  });
  return sums;
}

std::vector<WindowShare> Census::windows() const {
  const Sums sums = this->sums();
  std::vector<WindowShare> shares;
  if (sums.duplicates == 0) return shares;
  const double known = windowed_.is_complete() ? sums.duplicates : duplicates().value;
  const std::int64_t span = timeline_.span();
  for (std::size_t i = 0; i < kRepeatWindows; ++i) {
    shares.push_back({sizes_[i], sums.share(i, known)});
    if (sizes_[i] >= span) break;
  }
  return shares;
}

}  // namespace sluice
