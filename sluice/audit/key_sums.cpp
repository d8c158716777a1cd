#include "sluice/audit/key_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

// The numbers of KeySums. `Wrongly` is what a key was held back for without being a duplicate: lost,
// or undecided. The first kSums are sums, the others are sums of products.
enum Number : std::size_t {
  kDistinctKeys,
  kDistinct,
  kLost,
  kDuplicateKeys,
  kDuplicates,
  kPassed,
  kThrough,
  kWrongly,
  kSums,
  kDistinct2 = kSums,
  kDistinctLost,
  kLost2,
  kPassed2,
  kPassedThrough,
  kPassedWrongly,
  kThrough2,
  kThroughWrongly,
  kWrongly2,
  kEnd
};
static_assert(kEnd == KeySums::kNumbers);

// No error was seen. Up to z² erring keys in the sample are not unlikely; each is assumed to have as
// many errors as a key has trials on average.
Rate::Estimate without_errors(double keys, double trials, double all_trials) noexcept {
  return {.share = 0, .independent = std::max(keys, 1.0) * std::max(1.0, all_trials / trials)};
}

// `squares`: the sum over keys of how much each moves the number of errors.
Rate::Estimate clustered(double errors, double trials, double squares, double erring_keys,
                         double sample) noexcept {
  // Of a sample that is all keys nothing is uncertain: the truth is the rate of this run.
  const double variance = (1 - 1 / sample) * squares / (trials * trials);
  const double share = (errors + 0.5) / (trials + 1);
  return {.share = std::clamp(errors / trials, 0.0, 1.0),
          .independent = variance > 0 ? share * (1 - share) / variance
                                      : std::numeric_limits<double>::infinity(),
          .quantile = student95(erring_keys - 1)};
}

// n / (n - 1), where a sum of n squares is one of deviations from an estimate of the same n.
double unbiased(double keys) noexcept {
  return keys / std::max(0.5, keys - 1);
}

}  // namespace

void KeyCounts::add(const KeyCounts& other) noexcept {
  distinct += other.distinct;
  lost += other.lost;
  duplicates += other.duplicates;
  passed += other.passed;
  let_through += other.let_through;
  held += other.held;
}

void KeyCounts::halve() noexcept {
  for (float* number : {&distinct, &lost, &duplicates, &passed, &let_through, &held}) *number /= 2;
}

void KeySums::add(const KeyCounts& key) noexcept {
  const double distinct = key.distinct, lost = key.lost, passed = key.passed;
  const double through = key.let_through;
  const double wrongly = static_cast<double>(key.held) - (key.duplicates - key.passed);
  sums_[kDistinctKeys] += distinct > 0;
  sums_[kDistinct] += distinct;
  sums_[kLost] += lost;
  sums_[kDuplicateKeys] += key.duplicates > 0;
  sums_[kDuplicates] += key.duplicates;
  sums_[kPassed] += passed;
  sums_[kThrough] += through;
  sums_[kWrongly] += wrongly;
  sums_[kDistinct2] += distinct * distinct;
  sums_[kDistinctLost] += distinct * lost;
  sums_[kLost2] += lost * lost;
  sums_[kPassed2] += passed * passed;
  sums_[kPassedThrough] += passed * through;
  sums_[kPassedWrongly] += passed * wrongly;
  sums_[kThrough2] += through * through;
  sums_[kThroughWrongly] += through * wrongly;
  sums_[kWrongly2] += wrongly * wrongly;
}

void KeySums::halve() noexcept {
  for (std::size_t i = 0; i < kEnd; ++i) sums_[i] /= i < kSums ? 2 : 4;
}

Rate KeySums::positives(double sample) const noexcept {
  const double trials = sums_[kDistinct], errors = sums_[kLost];
  Rate rate{.errors = errors, .trials = trials};
  if (!(trials > 0)) return rate;
  if (!(errors > 0)) {
    rate.estimate = without_errors(sums_[kDistinctKeys], trials, trials);
    return rate;
  }
  const double share = errors / trials;
  const double squares =
      sums_[kLost2] - 2 * share * sums_[kDistinctLost] + share * share * sums_[kDistinct2];
  rate.estimate =
      clustered(errors, trials, std::max(0.0, squares), errors * errors / sums_[kLost2], sample);
  return rate;
}

Rate KeySums::negatives(double sample, const Totals& totals) const noexcept {
  Rate rate{.errors = sums_[kPassed], .trials = sums_[kDuplicates]};
  if (!(rate.trials > 0)) return rate;
  // In a small sample the sampled part of the total may be more than the total.
  double held = totals.held / sample - sums_[kWrongly];
  if (!(held > 0)) held = rate.trials - rate.errors;
  if (!(rate.errors > 0)) {
    rate.estimate = without_errors(sums_[kDuplicateKeys], rate.trials, held);
    return rate;
  }
  // The weight of least variance; but the keys that err most may be missing from the sample, so
  // those that are there count twice.
  const double passed2 = sums_[kPassed2];
  double weight = (sums_[kPassedThrough] + passed2) / (sums_[kThrough2] + passed2);
  double errors = rate.errors + weight * (totals.let_through / sample - sums_[kThrough]);
  // Infinite only if the sums are no sums of keys.
  if (!(errors > 0 && std::isfinite(errors))) weight = 0, errors = rate.errors;
  const double trials = errors + held, share = errors / trials, right = 1 - share;
  // Of (1 - share) (passed - weight · let through) + share · held wrongly.
  const double squares =
      right * right *
          (passed2 - 2 * weight * sums_[kPassedThrough] + weight * weight * sums_[kThrough2]) +
      2 * right * share * (sums_[kPassedWrongly] - weight * sums_[kThroughWrongly]) +
      share * share * sums_[kWrongly2];
  const double erring_keys = rate.errors * rate.errors / passed2;
  // Half a key more, which differs from the others by one event: rare keys may be missing.
  const double unseen = (share * share + right * right) / 2;
  rate.estimate = clustered(errors, trials, std::max(0.0, squares) * unbiased(erring_keys) + unseen,
                            erring_keys, sample);
  return rate;
}

// No run comes near the limits. A sum within its limit stays there: what is added is less than
// 2^-53 of it, at most 2^24 or the square of that, and rounding takes that away. Rounding is
// monotonic, too, so errors stay at most as many as trials.
bool KeySums::plausible() const noexcept {
  constexpr double kMostOfSums = 0x1p80, kMostOfProducts = 0x1p110;
  for (std::size_t i = 0; i < kNumbers; ++i) {
    const bool may_be_negative = i == kWrongly || i == kPassedWrongly || i == kThroughWrongly;
    const double most = i < kSums ? kMostOfSums : kMostOfProducts;
    const double least = may_be_negative ? -most : 0;
    if (!(sums_[i] >= least && sums_[i] <= most)) return false;
  }
  return sums_[kLost] <= sums_[kDistinct] && sums_[kPassed] <= sums_[kDuplicates];
}

}  // namespace sluice
