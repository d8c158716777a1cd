#include "sluice/model/timer.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sluice/model/bloom.hpp"

namespace sluice::model {
namespace {

// Chance that writing one key sets a given timer of its slice.
double touch(const TimerTable& table) {
  const double range = table.timers / (table.vertical ? table.probes : table.slices);
  if (table.vertical) return 1 / std::max(range, 1.0);
  return -std::expm1(table.probes * std::log1p(-1 / std::max(range, 1.000001)));
}

// The mean of f(keys in a slice).
template <class F>
double over_slices(const TimerTable& table, double keys, F f) {
  if (table.vertical || table.slices <= 1) return f(keys);
  const double share = 1.0 / table.slices;
  const double mean = keys * share, spread = 12 * std::sqrt(mean) + 20;
  const double until = std::min(keys, std::floor(mean + spread));
  double sum = 0;
  for (double held = std::max(0.0, std::floor(mean - spread)); held <= until; ++held) {
    const double log_chance = std::lgamma(keys + 1) - std::lgamma(held + 1) -
                              std::lgamma(keys - held + 1) + held * std::log(share) +
                              (keys - held) * std::log1p(-share);
    sum += std::exp(log_chance) * f(held);
  }
  return sum;
}

// Chance that each of `draws` timers shows one of the groups, no group more than `most` times, when
// each shows group i with chance weights[i]. By the exponential generating function: draws! times
// the coefficient of z^draws in the product over groups of Σ_{j ≤ most} (weight z)^j / j!.
double chance_of_no_more(const std::vector<double>& weights, unsigned draws, unsigned most) {
  std::vector<double> coefficients(draws + 1, 0.0);
  coefficients[0] = 1;
  for (const double weight : weights) {
    for (unsigned degree = draws; degree > 0; --degree) {
      double term = 1;
      for (unsigned j = 1; j <= std::min(most, degree); ++j) {
        term *= weight / j;
        coefficients[degree] += term * coefficients[degree - j];
      }
    }
  }
  return coefficients[draws] * std::exp(std::lgamma(draws + 1.0));
}

// Keys that share a time: as many generations as there are keys at most.
struct Groups {
  double count, keys_each;
};
Groups groups_of(double keys, double generations) {
  const double count = std::max(1.0, std::round(std::min(keys, generations)));
  return {count, keys / count};
}

double chance_all_live(double touched, unsigned probes, double keys) {
  return std::pow(-std::expm1(keys * std::log1p(-touched)), probes);
}

// Chance that a timer shows each of the youngest `count` groups: that it was set by one of its keys
// and by none since.
std::vector<double> last_writers(double touched, const Groups& groups, double count) {
  std::vector<double> weights;
  const double kept = std::exp(groups.keys_each * std::log1p(-touched));
  double untouched = 1;
  for (double i = 0; i < count; ++i, untouched *= kept) weights.push_back(untouched * (1 - kept));
  return weights;
}

}  // namespace

double timer_fpr(const TimerTable& table, double keys) {
  if (keys <= 0) return 0;
  const double touched = touch(table);
  return over_slices(table, keys,
                     [&](double held) { return chance_all_live(touched, table.probes, held); });
}

double timer_equal_fpr(const TimerTable& table, unsigned equal, double keys, double generations) {
  if (equal <= 1) return timer_fpr(table, keys);
  const double touched = touch(table);
  return over_slices(table, keys, [&](double held) {
    if (held <= 0) return 0.0;
    const Groups groups = groups_of(held, generations);
    const double live = chance_all_live(touched, table.probes, held);
    return std::max(0.0, live - chance_of_no_more(last_writers(touched, groups, groups.count),
                                                  table.probes, equal - 1));
  });
}

double timer_equal_fnr(const TimerTable& table, unsigned equal, double keys, double generations) {
  if (equal <= 1 || keys <= 0) return 0;
  const double touched = touch(table);
  // Of a key's slice the other keys are as uneven as of any.
  return over_slices(table, std::max(0.0, keys - 1), [&](double others) {
    const Groups groups = groups_of(others + 1, generations);
    // Ages in so many steps at most: the chance is smooth in them.
    const double steps = std::min(groups.count, 200.0);
    double sum = 0;
    for (double step = 0; step < steps; ++step) {
      const double younger = std::floor((step + 0.5) * groups.count / steps);
      // The key's own time: kept by its timer, or set by another key of the same generation, of
      // which half came later. The younger groups took the rest.
      std::vector<double> weights = last_writers(touched, groups, younger);
      double rest = 1;
      for (const double weight : weights) rest -= weight;
      weights.push_back(rest);
      sum += chance_of_no_more(weights, table.probes, equal - 1);
    }
    return sum / steps;
  });
}

double timer_equal_bound(const TimerTable& table, unsigned equal, double keys) {
  const double k = table.probes, x = std::min(equal, table.probes);
  const double range = table.timers / table.slices;
  const double one = -std::expm1(-k / range);
  const double live = -std::expm1(-k * keys / table.slices / range);
  const double ways = std::exp(std::lgamma(k + 1) - std::lgamma(x + 1) - std::lgamma(k - x + 1));
  return std::min(1.0, keys / table.slices * ways * std::pow(one, x) * std::pow(live, k - x));
}

double timer_timers_for(const TimerTable& table, double keys, double fpr) {
  TimerTable sized = table;
  double low = table.probes, high = 2 * bloom_bits(table.probes, keys, fpr) + table.slices + 2;
  const auto error = [&](double timers) {
    sized.timers = timers;
    return timer_fpr(sized, keys);
  };
  while (error(high) > fpr) high *= 2;
  for (int step = 0; step < 200 && high - low > 1e-9 * high; ++step) {
    const double middle = low + (high - low) / 2;
    (error(middle) > fpr ? low : high) = middle;
  }
  return high;
}

}  // namespace sluice::model
