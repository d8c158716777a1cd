#include "sluice/count/census.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <unordered_set>

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

  void add(const RepeatWindows& key, double weight) noexcept {
    duplicates += weight * static_cast<double>(key.duplicates());
    for (std::size_t i = 0; i < kRepeatWindows; ++i)
      held[i] += weight * static_cast<double>(key.held(i));
  }
  void add_products(const RepeatWindows& key, double weight) noexcept {
    const auto repeats = static_cast<double>(key.duplicates());
    duplicates_squared += weight * repeats * repeats;
    if (repeats > 0) repeated_keys += weight;
    for (std::size_t i = 0; i < kRepeatWindows; ++i) {
      const auto each = static_cast<double>(key.held(i));
      held_squared[i] += weight * each * each;
      held_duplicates[i] += weight * each * repeats;
    }
  }
  // Keys are what is sampled: the variance is that of a ratio, summed over keys. If all keys of the sample
  // are alike, others may differ from them by all of their repeats.
  Estimate share(std::size_t i) const noexcept {
    const double ratio = held[i] / duplicates;
    const double most = std::max(ratio, 1 - ratio);
    const double usual_squared = repeated_keys > 0 ? duplicates_squared / repeated_keys : 1;
    const double variance = held_squared[i] - 2 * ratio * held_duplicates[i] +
                            ratio * ratio * duplicates_squared +
                            unseen * most * most * usual_squared;
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
    if (counts_[i] == 0)
      top_.observe(digests[i], keys[i], positions[i]);
    else if (!top_.ignores(counts_[i]))
      top_.observe(digests[i], keys[i], positions[i], counts_[i], windows_of(digests[i]));
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

const RepeatWindows* Census::windows_of(const Digest& digest) const noexcept {
  const Windowed* const entry = windowed_.find(digest);
  return entry == nullptr ? nullptr : &entry->windows;
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

// A key with so many records that TopKeys has seen a large part of them in any case is known, whether it is
// in the sample or not. All others are known from the sample. No key may be known because it is in the
// sample, whose keys are seen from their first record on: it would count once, and those like it outside
// not at all.
Census::Sums Census::sums() const {
  constexpr std::uint64_t kKnownPart = 4;
  Sums sums;
  std::unordered_set<std::uint64_t> known;
  // TopKeys misses at most records / kKeys of a key.
  const std::uint64_t heavy = kKnownPart * (records_ / TopKeys::kKeys + 1);
  if (!windowed_.is_complete())
    top_.each([&](const Digest& digest, std::uint64_t most, const RepeatWindows& windows) {
      if (windows.records() < heavy) return;
      if (windows.records() < kKnownPart * (most - std::min(most, windows.records()))) return;
      known.insert(digest.lo);
      sums.add(windows, 1);
    });
  const auto weight = static_cast<double>(windowed_.one_in());
  sums.unseen = kUnseenCases * weight * (weight - 1);
  windowed_.each([&](const Windowed& entry) {
    if (known.contains(entry.key.lo)) return;
    sums.add(entry.windows, weight);
    sums.add_products(entry.windows, weight * (weight - 1));
  });
  return sums;
}

std::vector<WindowShare> Census::windows() const {
  const Sums sums = this->sums();
  std::vector<WindowShare> shares;
  if (sums.duplicates == 0) return shares;
  const std::int64_t span = timeline_.span();
  for (std::size_t i = 0; i < kRepeatWindows; ++i) {
    shares.push_back({sizes_[i], sums.share(i)});
    if (sizes_[i] >= span) break;
  }
  return shares;
}

}  // namespace sluice
