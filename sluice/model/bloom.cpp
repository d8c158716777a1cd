#include "sluice/model/bloom.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sluice/model/log_gamma.hpp"
#include "sluice/model/memo.hpp"
#include "sluice/model/power.hpp"

namespace sluice::model {
namespace {

constexpr double kBlockBits = 512;

// E[(1 − (1 − 1/lane)^X)^bits] for X Poisson of `mean`, and how it rises with the mean.
struct Uneven {
  double value, slope;
};

// The same for eight bits and sixteen, of which most are asked for, but in fewer instructions.
template <class Power>
Uneven uneven(double mean, double lane, unsigned bits, Power power) {
  const double kept = 1 - 1 / lane;
  // Nine deviations below the mean are less than a double's precision of the sum, as the power
  // rises with X; above it, terms are added until they are.
  const double from = std::max(0.0, std::floor(mean - 9 * std::sqrt(mean)));
  double chance = std::exp(from * std::log(mean) - mean - log_gamma(from + 1));
  double zero = std::pow(kept, from);
  double match = power(1 - zero, bits), before = 0;
  Uneven sum{0, 0};
  for (double x = from;; ++x) {
    zero *= kept;
    const double next = power(1 - zero, bits), term = chance * match;
    sum.value += term;
    sum.slope += chance * (next - match);  // d/dmean E f(X) = E[f(X + 1) − f(X)]
    if (x > mean && term <= before && term <= 1e-17 * sum.value) break;
    before = term;
    match = next;
    chance *= mean / (x + 1);
  }
  return sum;
}

Uneven uneven(double mean, double lane, unsigned bits) {
  if (!std::has_single_bit(bits) || bits < 8 || bits > 32)
    return uneven(mean, lane, bits, power_of);
  return uneven(mean, lane, bits, [](double base, unsigned exponent) {
    base *= base;
    base *= base;
    base *= base;
    for (; exponent > 8; exponent /= 2) base *= base;
    return base;
  });
}

// More keys per block than this leave no bit unset: a share of e⁻⁶⁴. Also bounds the sum above.
double most_mean(double lane) {
  return 64 * lane;
}

// Keys per block at which the error is `fpr`: Newton's method on logarithms, from where it would be
// if all blocks held as many, which is too many. Near the solution each step doubles the digits.
double uneven_mean(double lane, unsigned bits, double fpr) {
  const double even = std::log1p(-std::pow(fpr, 1.0 / bits)) / std::log1p(-1 / lane);
  double mean = std::min(even, most_mean(lane));
  for (int step = 0; step < 60; ++step) {
    const Uneven now = uneven(mean, lane, bits);
    if (!(now.value > 0 && now.slope > 0)) break;  // below what a double can tell
    const double off = std::log(fpr / now.value);
    const double by = std::exp(std::clamp(off * now.value / (now.slope * mean), -40.0, 1.0));
    mean = std::min(mean * by, most_mean(lane));
    if (std::abs(by - 1) < 1e-7) break;  // the digits of this step are right twice as far
  }
  return mean;
}

// Chance that `positions` given bits are all set after `throws` throws at `bits` bits, by inclusion
// and exclusion of those that are not.
long double all_set(double bits, unsigned positions, double throws) {
  long double sum = 0, ways = 1;
  for (unsigned missing = 0; missing <= positions; ++missing) {
    const long double term =
        ways * std::exp(throws * std::log1p(-(static_cast<long double>(missing) / bits)));
    sum += missing % 2 == 0 ? term : -term;
    ways *= static_cast<long double>(positions - missing) / (missing + 1);
  }
  return sum;
}

constexpr unsigned kMostExactProbes = 24;

// The alternating sums above have terms of up to 2^probes together, known to some 19 digits: what
// is left of an error far below that is noise.
bool sums_exactly(double bits, unsigned probes, double mean) {
  return probes <= kMostExactProbes && probes < bits && mean > 1e-12 * std::exp2(probes);
}

}  // namespace

double bloom_fpr_limit(double bits, unsigned probes, double keys) {
  return keys <= 0 ? 0 : std::pow(-std::expm1(-(probes * keys / bits)), probes);
}

double bloom_keys_limit(double bits, unsigned probes, double fpr) {
  return -bits / probes * std::log1p(-std::pow(fpr, 1.0 / probes));
}

double bloom_fpr_exact(double bits, unsigned probes, double keys) {
  if (keys <= 0 || probes == 0) return keys <= 0 ? 0 : 1;
  const double throws = probes * keys;
  const double mean = bloom_fpr(bits, probes, keys);
  if (!sums_exactly(bits, probes, mean)) {
    const double zero = std::exp(-(throws / bits));
    const double variance = (zero - (1 + throws / bits) * zero * zero) / bits;
    const double pairs = probes * (probes - 1.0) / 2;
    return std::min(1.0, mean * (1 + pairs * variance / ((1 - zero) * (1 - zero))));
  }
  // distinct[j]: chance that the probes asked so far are j different bits.
  long double distinct[kMostExactProbes + 1] = {1};
  for (unsigned probe = 0; probe < probes; ++probe) {
    for (unsigned j = probe + 1; j > 0; --j)
      distinct[j] = distinct[j] * (j / bits) + distinct[j - 1] * ((bits - (j - 1)) / bits);
    distinct[0] = 0;
  }
  long double sum = 0;
  for (unsigned j = 1; j <= probes; ++j) sum += distinct[j] * all_set(bits, j, throws);
  return static_cast<double>(std::clamp(sum, 0.0L, 1.0L));
}

double bloom_fpr(double bits, unsigned probes, double keys) {
  if (keys <= 0) return 0;
  const double share_zero = std::exp(probes * keys * std::log1p(-1 / std::max(bits, 1.000001)));
  return std::pow(1 - share_zero, probes);
}

unsigned bloom_probes(double bits, double keys) {
  const double best = bits / std::max(keys, 1.0) * std::log(2.0);
  return static_cast<unsigned>(std::clamp(std::round(best), 1.0, double{kMostProbes}));
}

double bloom_bits(unsigned probes, double keys, double fpr) {
  const double share_one = std::pow(fpr, 1.0 / probes);
  // Inverse of 1 − (1 − 1/m)^{kn}: m = 1 / (1 − (1 − share)^{1/kn}).
  return -1 / std::expm1(std::log1p(-share_one) / (probes * std::max(keys, 1.0)));
}

namespace {

// The mean of the `power`-th power of a block's error.
double blocked_moment(double blocks, unsigned probes, double keys, unsigned power) {
  thread_local Memo<3, double> known;
  return known({keys / blocks, static_cast<double>(probes), static_cast<double>(power)},
               [&] { return uneven_fpr(keys / blocks, kBlockBits / probes, probes * power); });
}

}  // namespace

double uneven_fpr(double mean, double lane, unsigned bits) {
  if (mean <= 0) return 0;
  if (mean > most_mean(lane)) return 1;
  return std::min(uneven(mean, lane, bits).value, 1.0);
}

double blocked_bloom_fpr(double blocks, unsigned probes, double keys) {
  return blocked_moment(blocks, probes, keys, 1);
}

// As uneven(), with other chances.
double blocked_bloom_fpr_of_few(double blocks, unsigned probes, double keys) {
  constexpr double kFew = 256;  // of more, Poisson's chances are the same but for some percent
  if (blocks > kFew) return blocked_bloom_fpr(blocks, probes, keys);
  if (keys <= 0) return 0;
  const double kept = 1 - probes / kBlockBits, share = 1 / blocks, mean = keys * share;
  if (blocks <= 1) return power_of(1 - std::pow(kept, keys), probes);
  const double spread = 9 * std::sqrt(mean) + 9;
  const double from = std::max(0.0, std::floor(mean - spread)), to = std::min(keys, mean + spread);
  double chance = std::exp(log_gamma(keys + 1) - log_gamma(from + 1) - log_gamma(keys - from + 1) +
                           from * std::log(share) + (keys - from) * std::log1p(-share));
  double zero = std::pow(kept, from), sum = 0;
  for (double x = from; x <= to; ++x) {
    sum += chance * power_of(1 - zero, probes);
    chance *= (keys - x) / ((x + 1) * (blocks - 1));
    zero *= kept;
  }
  return std::min(sum, 1.0);
}

// Blocks are all but independent.
double blocked_bloom_spread(double blocks, unsigned probes, double keys) {
  const double mean = blocked_moment(blocks, probes, keys, 1);
  return std::sqrt(std::max(0.0, blocked_moment(blocks, probes, keys, 2) - mean * mean) / blocks);
}

// The bits left at zero by n·k throws into m have the variance m·z(1 − (1 + c)z), z = e^{−c} and
// c = kn/m; the error is the k-th power of the others' share.
double bloom_spread(double bits, unsigned probes, double keys) {
  if (keys <= 0) return 0;
  const double load = probes * keys / bits, zero = std::exp(-load);
  const double deviation = std::sqrt(std::max(0.0, zero * (1 - (1 + load) * zero)) / bits);
  return probes * bloom_fpr(bits, probes, keys) * deviation / std::max(1 - zero, 1e-9);
}

double blocked_bloom_blocks(unsigned probes, double keys, double fpr) {
  return std::max(keys, 1.0) / blocked_bloom_keys(1, probes, fpr);
}

double bloom_keys(double bits, unsigned probes, double fpr) {
  const double share_one = std::pow(fpr, 1.0 / probes);
  return std::log1p(-share_one) / (probes * std::log1p(-1 / bits));
}

double blocked_bloom_keys(double blocks, unsigned probes, double fpr) {
  thread_local Memo<2, double> known;
  return blocks * known({static_cast<double>(probes), fpr},
                        [&] { return uneven_mean(kBlockBits / probes, probes, fpr); });
}

double bloom_keys_of_ones(double bits, unsigned probes, double ones) {
  return std::log1p(-ones / bits) / (probes * std::log1p(-1 / bits));
}

double blocked_bloom_keys_of_ones(double blocks, unsigned probes, double ones) {
  return -blocks * (kBlockBits / probes) * std::log1p(-ones / (blocks * kBlockBits));
}

std::uint64_t merged_keys(std::uint64_t a, std::uint64_t b, std::uint64_t ones, double estimate) {
  const std::uint64_t least = std::max(a, b);
  const std::uint64_t most = std::max(least, std::min(a + b, ones));
  // Also true of an estimate without bound.
  if (!(estimate < static_cast<double>(most))) return most;
  return std::max(least, static_cast<std::uint64_t>(std::llround(estimate)));
}

}  // namespace sluice::model
