#include "sluice/infer/posteriors.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <numbers>

#include "sluice/base/bits.hpp"

namespace sluice {
namespace {

// A key that comes with every tick has no age: nothing to be inferred, and logarithms of 0.
constexpr double kMostChance = 1 - 1e-9;

// Below, a few terms of a series are as good as the library's functions: the first left out is
// below 1e-13 of the sum. Factors and no quotients: a division takes as long as three terms.
constexpr double kSmall = 0.36;

double exp_of_small(double x) noexcept {
  // In pairs, which do not wait for each other.
  const double square = x * x, fourth = square * square;
  return (1 + x) + square * (1.0 / 2 + x * (1.0 / 6)) +
         fourth * ((1.0 / 24 + x * (1.0 / 120)) + square * (1.0 / 720 + x * (1.0 / 5040))) +
         fourth * fourth *
             ((1.0 / 40320 + x * (1.0 / 362880)) + square * (1.0 / 3628800 + x * (1.0 / 39916800)));
}

// e^x for x ≤ 0, within 1e-13 of it: a power of two, and what is left, which is at most ln 2 / 2. A
// call of the library's would keep the steps of several keys from overlapping.
double exp_of(double x) noexcept {
  if (x >= -kSmall) return exp_of_small(x);
  if (x < -700) return 0;
  const double twos = std::floor(x * std::numbers::log2e + 0.5);
  const double rest = (x - twos * 0x1.62e42feep-1) - twos * 0x1.a39ef35793c76p-33;
  const auto power = static_cast<std::uint64_t>(static_cast<std::int64_t>(twos) + 1023) << 52;
  return exp_of_small(rest) * std::bit_cast<double>(power);
}

// ln(1 − p).
double log_of_rest(double p) noexcept {
  if (p > 1e-3) return std::log1p(-p);
  return -p * (1 + p * (1.0 / 2 + p * (1.0 / 3 + p * (1.0 / 4 + p * (1.0 / 5)))));
}

// x / (1 − e^−x).
double over_its_loss(double x) noexcept {
  if (x > 0.25) return x / (1 - exp_of(-x));
  const double square = x * x;
  return 1 + x * 0.5 +
         square *
             (1.0 / 12 + square * (-1.0 / 720 + square * (1.0 / 30240 - square * (1.0 / 1209600))));
}

}  // namespace

PosteriorCache::PosteriorCache(double window, double block, double generations,
                               Anchor anchor) noexcept
    : window_(window), block_(block), generations_(generations), anchor_(anchor) {}

// A chance to be in the window becomes that of a tick by the inverse of what the prior over ages
// says: 1 − (1 − p)^w, or w / (hold + 1/p) with the hold of a block's middle.
double PosteriorCache::chance_a_tick(const Prior& prior, double writes_a_tick) const noexcept {
  if (prior.kind == Prior::Kind::arrival)
    return std::min(prior.chance * writes_a_tick, kMostChance);
  if (anchor_ == Anchor::refreshed)
    return std::min(-std::expm1(std::log1p(-prior.chance) / window_), kMostChance);
  const double wait = window_ / prior.chance - (generations_ + 0.5) * block_;
  return wait > 1 ? 1 / wait : kMostChance;
}

const PosteriorCache::Powers& PosteriorCache::powers_of(const Prior& prior,
                                                        double writes_a_tick) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(prior.chance);
  Powers& powers = powers_[fold_multiply(bits, 0x9E3779B97F4A7C15ULL) % powers_.size()];
  if (powers.prior == prior && powers.writes_a_tick == writes_a_tick) return powers;
  const double chance = chance_a_tick(prior, writes_a_tick);
  powers.prior = prior;
  powers.writes_a_tick = writes_a_tick;
  powers.log = log_of_rest(chance);
  powers.block = anchor_ == Anchor::refreshed ? exp_of(block_ * powers.log)
                                              : over_its_loss(-block_ * powers.log) / -powers.log;
  return powers;
}

double PosteriorCache::within(const Prior& prior, const model::AgeEvidence& evidence,
                              double position, double ticks, double writes_a_tick) noexcept {
  if (ticks <= evidence.from) return 0;
  const Powers& powers = powers_of(prior, writes_a_tick);
  const double length = evidence.to - evidence.from;
  if (anchor_ == Anchor::refreshed) {
    // Theorems 3 to 5, with everything divided by (1 − p)^from.
    const double own = length == block_ ? powers.block : exp_of(length * powers.log);
    const double all = 1 - own + evidence.beyond * own;
    const double later = exp_of((ticks - evidence.from) * powers.log);
    if (!(all > 0)) return 0;
    return ticks < evidence.to ? (1 - later) / all : 1 - evidence.beyond * later / all;
  }
  const double hold = generations_ * block_ + position;
  const double gone = powers.block * exp_of(position * powers.log);
  const double all = length + evidence.inside * (hold - evidence.to) + evidence.beyond * gone;
  const double inside = std::min(evidence.to, ticks) - evidence.from +
                        evidence.inside * std::max(0.0, ticks - evidence.to);
  return all > 0 ? inside / all : 0;
}

double PosteriorCache::tail(const Prior& prior, double position, double writes_a_tick) noexcept {
  const Powers& powers = powers_of(prior, writes_a_tick);
  return powers.block * exp_of(position * powers.log);
}

void PosteriorCache::tails(std::span<const Prior> priors, double position, double writes_a_tick,
                           std::span<double> tails) const noexcept {
  for (std::size_t i = 0; i < priors.size(); ++i) {
    const double log = log_of_rest(chance_a_tick(priors[i], writes_a_tick));
    tails[i] = over_its_loss(-block_ * log) * exp_of(position * log) / -log;
  }
}

model::AgePrior PosteriorCache::age_prior(const Prior& prior, double position,
                                          double writes_a_tick) const noexcept {
  const double chance = chance_a_tick(prior, writes_a_tick);
  return anchor_ == Anchor::refreshed ? model::refreshed_age(chance)
                                      : model::renewal_age(chance, generations_, block_, position);
}

void AgePosteriors::prepare(const Cohort& filter, const CohortReader& reader,
                            const Pace& pace) noexcept {
  ages_ = filter.generations() + 1;
  assert(ages_ < kMostAges);
  // As CohortReader::of_age, in few steps: this is done for every hundred keys or so. A generation
  // begins `from` ticks ago, and what is not of the window is surely outside.
  for (unsigned age = 0; age < ages_; ++age) {
    const double from = age == 0 ? 0 : (age - 1) * pace.block + pace.position;
    const double length = age == 0 ? pace.position : pace.block;
    const bool possible = from < pace.window && length > 0;
    inside_[age] = possible ? std::min(length, pace.window - from) : 0;
    length_[age] = possible ? length : 1;
    beyond_[age] = possible ? reader.touched(filter, age) : 0;
  }
  inside_[ages_] = beyond_[ages_] = 0;
  length_[ages_] = 1;
}

void AgePosteriors::judge_all(const Prior& prior, const Costs& costs, double tail) noexcept {
  for (std::size_t age = 0; age <= ages_; ++age) {
    if (!prior.known()) {
      judgements_[age] = {Verdict::duplicate, std::nullopt};
      continue;
    }
    const double posterior = within(age, tail);
    judgements_[age] = {least_cost(posterior, costs), posterior};
  }
}

}  // namespace sluice
