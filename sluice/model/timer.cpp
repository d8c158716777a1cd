#include "sluice/model/timer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "sluice/model/bloom.hpp"
#include "sluice/model/log_gamma.hpp"
#include "sluice/model/power.hpp"
#include "sluice/model/small_bloom.hpp"
#include "sluice/model/timing.hpp"

namespace sluice::model {
namespace {

// Chance that writing one key sets a given timer of its slice.
double touch(const TimerTable& table) {
  const double range = table.timers / (table.vertical ? table.probes : table.slices);
  if (table.vertical) return 1 / std::max(range, 1.0);
  return -std::expm1(table.probes * std::log1p(-1 / std::max(range, 1.000001)));
}

// Up to this mean every number of keys is visited, above it four per standard deviation: the sum of
// a smooth function over a bell curve is as accurate with these.
constexpr double kEveryNumberUpTo = 64;
constexpr double kDeviations = 9;  // what lies farther out is below a double's precision

// ln of a binomial chance by Stirling's formula and the next term of its series: lgamma has no digits
// left where there are billions of keys.
double log_binomial(double keys, double share, double held) {
  const double mean = keys * share, others = keys - held, over = held - mean;
  return -held * std::log1p(over / mean) - others * std::log1p(-over / (keys - mean)) -
         0.5 * std::log(2 * std::numbers::pi * held * others / keys) +
         (1 / keys - 1 / held - 1 / others) / 12;
}

// Calls visit(chance, held) for the numbers of keys that a slice may hold.
template <class Visit>
void each_slice(const TimerTable& table, double keys, Visit visit) {
  if (table.vertical || table.slices <= 1) return visit(1.0, keys);
  const double share = 1.0 / table.slices, mean = keys * share;
  if (mean <= kEveryNumberUpTo) {
    double chance = std::exp(keys * std::log1p(-share));
    for (double held = 0; held <= keys; ++held) {
      visit(chance, held);
      if (held > mean && chance < 1e-18) break;
      chance *= (keys - held) / (held + 1) * share / (1 - share);
    }
    return;
  }
  const double deviation = std::sqrt(mean * (1 - share)), step = std::floor(deviation / 4);
  const double reach = std::ceil(kDeviations * deviation / step) * step;
  for (double held = std::floor(mean) - reach; held <= mean + reach; held += step)
    if (held >= 1 && held < keys) visit(step * std::exp(log_binomial(keys, share, held)), held);
}

// The mean of f(keys in a slice).
template <class F>
double over_slices(const TimerTable& table, double keys, F f) {
  double sum = 0;
  each_slice(table, keys, [&](double chance, double held) { sum += chance * f(held); });
  return sum;
}

// A polynomial in z, by degree.
using Series = std::vector<double>;
constexpr double kEveryProbe = std::numeric_limits<double>::infinity();

// What the timers of a key may show: each shows group i with chance weights[i]. Where probes go
// anywhere, the `throws` probes of a group's keys cannot each hit several of the timers.
struct Shown {
  Series weights;
  double throws;   // infinite where each probe has timers of its own
  double own = 0;  // chance that a timer shows the key's own time, which all of them may
};

// Adds factor · Σ_{j ≤ most} C(throws, j) (weight z / throws)^j times `from` to `to`.
void add_product(Series& to, const Series& from, double weight, double throws, unsigned most,
                 double factor) {
  for (std::size_t degree = 0; degree < from.size(); ++degree) {
    double term = factor * from[degree];
    for (std::size_t j = 0; j <= most && degree + j < to.size(); ++j) {
      to[degree + j] += term;
      const auto hits = static_cast<double>(j);
      term *= weight * std::max(0.0, 1 - hits / throws) / (hits + 1);
    }
  }
}

// Chance that each of `draws` timers shows one of the groups, no group more than `most` times. By
// the exponential generating function: draws! times the coefficient of z^draws in the product over
// groups of their series up to z^most. With `pair` two of the draws are one timer, and show the
// same: its group has room for two fewer.
double chance_of_no_more(const Shown& shown, unsigned draws, unsigned most, bool pair) {
  if (pair && (draws < 2 || most < 2)) return 0;
  const unsigned single = pair ? draws - 2 : draws;
  Series without(single + 1, 0.0), with(single + 1, 0.0), next(single + 1);
  without[0] = 1;
  const auto multiply = [&](double weight, double throws) {
    if (pair) {
      next.assign(single + 1, 0.0);
      add_product(next, with, weight, throws, most, 1);
      add_product(next, without, weight, throws, most - 2, weight);
      with.swap(next);
    }
    next.assign(single + 1, 0.0);
    add_product(next, without, weight, throws, most, 1);
    without.swap(next);
  };
  for (const double weight : shown.weights) multiply(weight, shown.throws);
  if (shown.own > 0) multiply(shown.own, kEveryProbe);
  return (pair ? with : without)[single] * std::exp(log_gamma(single + 1.0));
}

// Chance that two probes of a key fall on one timer.
double chance_of_pair(const TimerTable& table) {
  if (table.vertical) return 0;
  const double range = table.timers / table.slices;
  double none = 1;
  for (unsigned probe = 1; probe < table.probes; ++probe) none *= std::max(0.0, 1 - probe / range);
  return 1 - none;
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
Shown last_writers(const TimerTable& table, const Groups& groups, double count) {
  Shown shown{{}, table.vertical ? kEveryProbe : table.probes * groups.keys_each};
  const double touched = touch(table);
  const double kept = std::exp(groups.keys_each * std::log1p(-touched));
  double untouched = 1;
  for (double i = 0; i < count; ++i, untouched *= kept)
    shown.weights.push_back(untouched * (1 - kept));
  return shown;
}

// Chance that a key never seen passes the test in a slice that holds that many keys.
double slice_fpr(const TimerTable& table, unsigned equal, double held, double generations) {
  if (held <= 0) return 0;
  if (equal <= 1) return chance_all_live(touch(table), table.probes, held);
  const double paired = chance_of_pair(table);
  const Groups groups = groups_of(held, generations);
  const Shown shown = last_writers(table, groups, groups.count);
  const auto passed = [&](bool pair) {
    return chance_of_no_more(shown, table.probes, table.probes, pair) -
           chance_of_no_more(shown, table.probes, equal - 1, pair);
  };
  const double apart = passed(false);
  return std::max(0.0, paired == 0 ? apart : apart + paired * (passed(true) - apart));
}

// Chance that a key does not pass it once `younger` groups are written after it.
double lost_at(const TimerTable& table, unsigned equal, const Groups& groups, double younger) {
  const double paired = chance_of_pair(table);
  // What the younger groups have not taken still shows the key's own time.
  Shown shown = last_writers(table, groups, younger);
  shown.own = 1;
  for (const double weight : shown.weights) shown.own -= weight;
  const double apart = chance_of_no_more(shown, table.probes, equal - 1, false);
  if (paired == 0) return apart;
  return apart + paired * (chance_of_no_more(shown, table.probes, equal - 1, true) - apart);
}

// How many times the error of written keys a running window errs: as in a large table of this error.
double window_excess(double fpr, unsigned probes) {
  constexpr double kManyKeys = 1e6;
  const double share = std::pow(fpr, 1.0 / probes);
  if (!(share > 0 && share < 1)) return 1;
  const double touched = -std::expm1(std::log1p(-share) / kManyKeys);
  return power_of(window_live_share(touched, probes, kManyKeys) / share, probes);
}

// Keys that come about as often, and the chance that a tick brings a given one of them.
struct Rank {
  double keys, chance;
};
std::vector<Rank> zipf_ranks(double keys, double skew) {
  std::vector<Rank> ranks;
  double sum = 0;
  for (double first = 1; first <= keys;) {
    const double next = std::min(keys + 1, std::max(first + 1, std::floor(first * 1.03)));
    double weights = 0;
    for (double rank = first; rank < next; ++rank) weights += std::pow(rank, -skew);
    ranks.push_back({next - first, weights / (next - first)});
    sum += weights;
    first = next;
  }
  for (Rank& rank : ranks) rank.chance /= sum;
  return ranks;
}

// What a slice does to the keys of a stream.
struct SliceRates {
  double mistaken;  // chance that a key outside the window is held when it comes
  double ending;    // chance a tick that it no longer would be
  std::vector<double>
      lost;  // chance that a key is lost to the test by the end of each step of ages
};
constexpr double kAgeSteps = 50;

SliceRates slice_rates(const TimerTable& table, unsigned equal, double held, double window) {
  SliceRates rates{slice_fpr(table, equal, held, window), 0, {}};
  const double touched = touch(table), dead = std::exp(held * std::log1p(-touched));
  const double writes = touched * held / window;
  // Of live timers as many die a tick as of dead ones are written; and an equal one is overwritten.
  rates.ending = table.probes * writes * dead / (1 - dead) + (equal > 1 ? equal * writes : 0);
  if (equal <= 1) return rates;
  const Groups groups = groups_of(std::max(1.0, held), window);
  double most = 0;
  for (double step = 0; step < kAgeSteps; ++step) {
    const double younger = std::floor((step + 0.5) * groups.count / kAgeSteps);
    rates.lost.push_back(most = std::max(most, lost_at(table, equal, groups, younger)));
  }
  return rates;
}

// Errors and arrivals of one key, a tick.
struct KeyRates {
  double mistaken = 0, outside = 0, lost = 0, inside = 0;
};

// From one delivery to the next: held for the window, or until an arrival after the test has lost
// it; then waiting for an arrival that is not mistaken.
KeyRates key_rates(const SliceRates& slice, double p, double window) {
  double lost = 0, held = window, before = 0, left = window;
  for (const double by_now : slice.lost) {
    const double caught = -std::expm1(-p * left);
    lost += (by_now - before) * caught;
    held -= (by_now - before) * (left - caught / p);
    before = by_now;
    left -= window / kAgeSteps;
  }
  const double mistaken =
      slice.mistaken > 0 ? (1 - lost) * slice.mistaken * (1 + p / slice.ending) : 0;
  const double cycle = held + (1 - lost + mistaken) / p;
  return {mistaken / cycle, (1 - lost + mistaken) / cycle, lost / cycle, p * held / cycle};
}

}  // namespace

double timer_fpr(const TimerTable& table, double keys) {
  if (keys <= 0) return 0;
  const double touched = touch(table);
  return over_slices(table, keys,
                     [&](double held) { return chance_all_live(touched, table.probes, held); });
}

double timer_window_fpr(const TimerTable& table, double keys) {
  if (keys <= 0) return 0;
  const double touched = touch(table);
  if (table.vertical) return power_of(window_live_share(touched, table.probes, keys), table.probes);
  SmallBloom slice(table.timers / table.slices, table.probes);
  const double written = over_slices(table, keys, [&](double held) { return slice.fpr(held); });
  return std::min(1.0, written * window_excess(written, table.probes));
}

double timer_equal_fpr(const TimerTable& table, unsigned equal, double keys, double generations) {
  if (equal <= 1) return timer_fpr(table, keys);
  return over_slices(table, keys,
                     [&](double held) { return slice_fpr(table, equal, held, generations); });
}

double timer_equal_fnr(const TimerTable& table, unsigned equal, double keys, double generations) {
  if (equal <= 1 || keys <= 0) return 0;
  // Of a key's slice the other keys are as uneven as of any.
  return over_slices(table, std::max(0.0, keys - 1), [&](double others) {
    const Groups groups = groups_of(others + 1, generations);
    // The most steps for ages: the chance is smooth in them.
    const double steps = std::min(groups.count, 200.0);
    double sum = 0;
    for (double step = 0; step < steps; ++step)
      sum += lost_at(table, equal, groups, std::floor((step + 0.5) * groups.count / steps));
    return sum / steps;
  });
}

double timer_equal_bound(const TimerTable& table, unsigned equal, double keys) {
  const double k = table.probes, x = std::min(equal, table.probes);
  const double range = table.timers / table.slices;
  const double one = -std::expm1(-k / range);
  const double live = -std::expm1(-k * keys / table.slices / range);
  const double ways = std::exp(log_gamma(k + 1) - log_gamma(x + 1) - log_gamma(k - x + 1));
  return std::min(1.0, keys / table.slices * ways * std::pow(one, x) * std::pow(live, k - x));
}

TimerStreamErrors timer_stream_errors(const TimerTable& table, unsigned equal,
                                      const TimerStream& stream) {
  const std::vector<Rank> ranks = zipf_ranks(stream.keys, stream.skew);
  double live = 0;
  for (const Rank& rank : ranks)
    live += rank.keys * stream.window * rank.chance / (1 + stream.window * rank.chance);
  KeyRates sum;
  each_slice(table, live, [&](double chance, double held) {
    const SliceRates slice = slice_rates(table, equal, held, stream.window);
    for (const Rank& rank : ranks) {
      const KeyRates rates = key_rates(slice, rank.chance, stream.window);
      sum.mistaken += chance * rank.keys * rates.mistaken;
      sum.outside += chance * rank.keys * rates.outside;
      sum.lost += chance * rank.keys * rates.lost;
      sum.inside += chance * rank.keys * rates.inside;
    }
  });
  return {live, sum.mistaken / sum.outside, sum.inside > 0 ? sum.lost / sum.inside : 0};
}

double timer_timers_for(const TimerTable& table, double keys, double fpr) {
  if (table.vertical) {
    const double touched = window_touched(std::pow(fpr, 1.0 / table.probes), table.probes, keys);
    return (1 + 1e-10) * table.probes / std::min(1.0, touched);
  }
  TimerTable sized = table;
  // A slice of few timers has a whole number of them.
  const double slices = table.slices, few = slices * SmallBloom::kFewBits;
  const auto error = [&](double timers) {
    sized.timers = timers;
    return timer_window_fpr(sized, keys);
  };
  const auto rounded = [&](double timers) {
    return timers <= few ? std::ceil(timers / slices) * slices : timers;
  };
  double low = 0, high = rounded(2 * bloom_bits(table.probes, keys, fpr) + slices);
  double above = 1, below = error(high);
  while (below > fpr) low = high, above = below, below = error(high = rounded(2 * high));
  // The logarithm of the error is nearly a straight line in the size: so the next size to try is
  // where that line meets `fpr`, but every third halves what is left.
  for (int step = 0; step < 100 && high - low > std::max(1e-9 * high, high <= few ? slices : 0.0);
       ++step) {
    const double share =
        step % 3 == 2 || !(below > 0)
            ? 0.5
            : std::clamp(std::log(above / fpr) / std::log(above / below), 1e-4, 1.0);
    double middle = rounded(low + share * (high - low));
    if (middle >= high) middle = high <= few ? high - slices : low + 0.9999 * (high - low);
    const double there = error(middle);
    if (there > fpr)
      low = middle, above = there;
    else
      high = middle, below = there;
  }
  return high;
}

}  // namespace sluice::model
