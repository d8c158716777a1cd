#include "sluice/judge/error_meter.hpp"

#include <cmath>

namespace sluice {
namespace {

// Between two looks the error is assumed to rise like a power of the keys, with whatever exponent fits
// both: about the eighth in a Bloom filter, less and less as it fills. Steps of a sixteenth of its
// keys are short enough for that, and at first those of a quarter of what has come.
constexpr std::uint64_t kLooksPerFill = 16, kFirstLook = 4, kFirstSteps = 4;
constexpr std::uint64_t kLookEveryAtLeast = 64, kLookEveryAtMost = 16384;
// In a steady state the steps double, to a whole fill at most, but for that of a small filter.
constexpr std::uint64_t kSteadyLookAtLeast = 1024;

bool is_over(const FilterStats& stats) {
  return stats.target_fpr > 0 && stats.predicted_fpr > stats.target_fpr;
}

bool nearly(double value, double before, double within) {
  return std::abs(value - before) <= within * before;
}

// The mean of the error from one number of keys to another.
double mean_fpr(double fpr, std::uint64_t keys, double fpr_before, std::uint64_t keys_before) {
  if (!(keys > keys_before && keys_before > 0 && fpr > fpr_before && fpr_before > 0))
    return (fpr + fpr_before) / 2;
  const auto to = static_cast<double>(keys), from = static_cast<double>(keys_before);
  const double exponent = std::log(fpr / fpr_before) / std::log(to / from);
  return (fpr * to - fpr_before * from) / ((exponent + 1) * (to - from));
}

}  // namespace

double loss_odds(double fpr) noexcept {
  constexpr double kMost = 1e6;
  return fpr < kMost / (kMost + 1) ? fpr / (1 - fpr) : kMost;
}

// The lost ones are not among those let through. If most new keys are lost, few are left to
// estimate from: the estimate is then limited by the number held back. If nearly all are lost, it
// is assumed that the share of new keys among the records is what it was before.
void ErrorMeter::Losses::add(double fpr, std::uint64_t distinct,
                             std::uint64_t duplicates) noexcept {
  constexpr double kMostAreLost = 0.5, kNearlyAllAreLost = 0.9;
  const auto passed = static_cast<double>(distinct), held = static_cast<double>(duplicates);
  const double lost = passed * loss_odds(fpr);
  if (fpr < kMostAreLost) {
    few += lost;
    new_keys += passed + lost;
    records += passed + held;
  } else if (fpr < kNearlyAllAreLost || records == 0) {
    most += lost;
    held_back += held;
  } else {
    const double share = std::min(1.0, new_keys / records);
    few += std::clamp(share * (passed + held) - passed, 0.0, held);
  }
}

ErrorMeter::Losses ErrorMeter::losses(const FilterStats& stats) const noexcept {
  Losses losses = losses_;
  const double fpr = mean_fpr(stats.predicted_fpr, stats.keys, predicted_fpr_, keys_held_);
  if (knows_first_)
    losses.few += first_ * fpr;
  else
    losses.add(fpr, distinct_, duplicates_);
  return losses;
}

double ErrorMeter::expected_lost(const FilterStats& stats) const noexcept {
  const Losses all = losses(stats);
  return all.few + std::min(all.most, all.held_back);
}

std::uint64_t ErrorMeter::over_target(const FilterStats& stats) const noexcept {
  return over_target_ + (is_over(stats) ? distinct_ + others_ : 0);
}

double ErrorMeter::worst_fpr(const FilterStats& stats) const noexcept {
  return std::max(worst_fpr_, stats.predicted_fpr);
}

void ErrorMeter::look(const FilterStats& stats) noexcept {
  losses_ = losses(stats);
  over_target_ = over_target(stats);
  worst_fpr_ = worst_fpr(stats);
  records_ += distinct_ + others_;
  distinct_ = duplicates_ = others_ = 0;
  first_ = 0;
  // A window that is full has a generation more or less, and errs more or less with that.
  const bool steady =
      stats.keys > 0 && nearly(stats.predicted_fpr, predicted_fpr_, 1.0 / 3) &&
      nearly(static_cast<double>(stats.keys), static_cast<double>(keys_held_), 1.0 / 12);
  predicted_fpr_ = stats.predicted_fpr;
  keys_held_ = stats.keys;
  const std::uint64_t keys = stats.capacity > 0 ? stats.capacity : stats.keys;
  const std::uint64_t step = std::clamp(keys / kLooksPerFill, kLookEveryAtLeast, kLookEveryAtMost);
  next_look_ =
      steady ? std::min(2 * next_look_, std::clamp(keys, kSteadyLookAtLeast, kLookEveryAtMost))
             : std::clamp(records_ / kFirstSteps, kFirstLook, step);
}

}  // namespace sluice
