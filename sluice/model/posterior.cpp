#include "sluice/model/posterior.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::model {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

// Σ (1 − q)^i for i < n.
double series(double q, double n) {
  if (q <= 0) return n;
  if (q >= 1) return n > 0 ? 1 : 0;
  return n == kForever ? 1 / q : -std::expm1(n * std::log1p(-q)) / q;
}

// Σ i (1 − q)^i for i < n.
double moment(double q, double n) {
  if (q >= 1) return 0;
  if (n == kForever) return (1 - q) / (q * q);
  const double pairs = n * (n - 1) / 2;
  // Where the closed form would cancel: its expansion, good to (nq)³.
  if (n * q < 1e-4) return pairs * (1 - q * (2 * n - 1) / 3 + q * q * (n - 2) * (3 * n - 1) / 12);
  const double r = 1 - q;
  const double power = std::exp(n * std::log1p(-q));
  return (r - power * (n - (n - 1) * r)) / (q * q);
}

double power(double q, double n) {
  if (q >= 1) return n > 0 ? 0 : 1;
  return std::exp(n * std::log1p(-q));
}

struct Sum {
  double mass = 0;
  double moment = 0;
};

// Ages from `a` to before `b` with one hazard, the weight at `a` being `first`.
void add(Sum& sum, double q, double first, double a, double b) {
  if (!(b > a) || first <= 0) return;
  const double mass = series(q, b - a);
  sum.mass += first * mass;
  sum.moment += first * (a * mass + moment(q, b - a));
}

void add(Sum& sum, const AgePrior& prior, double likelihood, double a, double b) {
  if (likelihood <= 0) return;
  const double middle = std::min(b, prior.hold);
  add(sum, prior.inside, likelihood * power(prior.inside, a), a, middle);
  const double start = std::max(a, prior.hold);
  if (b > start)
    add(sum, prior.outside, likelihood * prior.tail * power(prior.outside, start - prior.hold),
        start, b);
}

// Over ages below `ticks`.
Sum sum_below(const AgePrior& prior, const AgeEvidence& evidence, double ticks) {
  Sum sum;
  add(sum, prior, 1, evidence.from, std::min(evidence.to, ticks));
  const double until = std::max(evidence.to, prior.hold);
  add(sum, prior, evidence.inside, evidence.to, std::min(until, ticks));
  add(sum, prior, evidence.beyond, until, ticks);
  return sum;
}

double weight(const AgePrior& prior, double age) {
  return age < prior.hold ? power(prior.inside, age)
                          : prior.tail * power(prior.outside, age - prior.hold);
}

}  // namespace

AgePrior refreshed_age(double p) {
  return {.inside = p, .outside = p, .hold = 0, .tail = 1};
}

AgePrior renewal_age(double p, double hold) {
  return {.inside = 0, .outside = p, .hold = hold, .tail = 1};
}

// The j-th block beyond the hold (from 0) has waited j·block + position ticks: its weights are
// (1 − p)^that. Their sum, as one geometric tail with the same mass.
AgePrior renewal_age(double p, double generations, double block, double position) {
  const double mass = block * power(p, position) / -std::expm1(block * std::log1p(-p));
  return {.inside = 0,
          .outside = p,
          .hold = generations * block + position,
          .tail = p >= 1 ? 0 : mass * p};
}

double posterior_within(const AgePrior& prior, const AgeEvidence& evidence, double ticks) {
  const double all = sum_below(prior, evidence, kForever).mass;
  return all > 0 ? sum_below(prior, evidence, ticks).mass / all : 0;
}

double posterior_mean(const AgePrior& prior, const AgeEvidence& evidence) {
  const Sum all = sum_below(prior, evidence, kForever);
  return all.mass > 0 ? all.moment / all.mass : kForever;
}

// Weights never rise within a piece, so the greatest is at the beginning of one.
double posterior_mode(const AgePrior& prior, const AgeEvidence& evidence) {
  double best = evidence.from, most = -1;
  const auto consider = [&](double age, double likelihood) {
    const double chance = likelihood * weight(prior, age);
    if (chance > most) most = chance, best = age;
  };
  if (evidence.to > evidence.from) {
    consider(evidence.from, 1);
    if (prior.hold > evidence.from && prior.hold < evidence.to) consider(prior.hold, 1);
  }
  if (prior.hold > evidence.to) consider(evidence.to, evidence.inside);
  if (evidence.to < kForever) consider(std::max(evidence.to, prior.hold), evidence.beyond);
  return best;
}

double classic_posterior(double p, double arrivals, double fpr) {
  const double written = p >= 1 ? 1 : -std::expm1(arrivals * std::log1p(-p));
  const double mistaken = (1 - written) * fpr;
  return written + mistaken > 0 ? written / (written + mistaken) : 0;
}

double timers_pattern(unsigned cells, unsigned oldest, double untouched) {
  return std::pow(untouched, oldest) * std::pow(1 - untouched, cells - oldest);
}

double timer_untouched(double timers, unsigned probes, double distinct) {
  if (timers <= 1) return distinct > 0 ? 0 : 1;
  return std::exp(probes * distinct * std::log1p(-1 / timers));
}

unsigned timing_last_age(double window, double block, double position) {
  return window <= position ? 0 : static_cast<unsigned>(std::ceil((window - position) / block));
}

// Expired, age > ⌈(w − b)/B⌉, is the same as (age − 1)·B + b ≥ w.
AgeEvidence timing_evidence(const TimingSight& sight) {
  const double to = sight.age * sight.block + sight.position;
  const double from = sight.age > 0 ? to - sight.block : 0;
  if (from >= sight.window) return {.from = from, .to = kForever};
  return {.from = from, .to = to, .inside = sight.touched, .beyond = sight.touched};
}

double timing_posterior(double p, const TimingSight& sight) {
  const double w = sight.window, block = sight.block, b = sight.position;
  const unsigned last = timing_last_age(w, block, b);
  if (sight.age > last) return 0;  // Theorem 2
  if (p >= 1) return 1;
  const double log = std::log1p(-p);
  // With b = 0 nothing is of age 0, and F(r, 0, 0) is 0.
  if (sight.age == 0)  // Theorem 3
    return 1 - std::exp(w * log) / (-std::expm1(b * log) / sight.touched + std::exp(b * log));
  const double left = w - (sight.age - 1) * block - b;
  if (sight.age < last)  // Theorem 4
    return 1 - std::exp(left * log) /
                   (-std::expm1(block * log) / sight.touched + std::exp(block * log));
  return -std::expm1(left * log) / (1 - std::exp(block * log) * (1 - sight.touched));  // Theorem 5
}

}  // namespace sluice::model
