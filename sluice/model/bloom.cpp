#include "sluice/model/bloom.hpp"

#include <algorithm>
#include <cmath>

namespace sluice::model {
namespace {

constexpr double kBlockBits = 512;

// The x in (low, high) where the rising function f passes `target`, to the last bits of a double:
// f's error in x is then far below a key or a block.
template <class F>
double solve(F f, double target, double low, double high) {
  while (f(high) < target) high *= 2;
  for (int step = 0; step < 200 && high - low > 1e-12 * high; ++step) {
    const double middle = low + (high - low) / 2;
    (f(middle) < target ? low : high) = middle;
  }
  return high;
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
  if (keys <= 0) return 0;
  const double mean = keys / blocks;
  // So full that no bit is left (a share of e⁻⁶⁴); also bounds the sum below.
  if (mean > 64 * kBlockBits) return 1;
  const double log_zero = std::log1p(-(probes / kBlockBits));
  // Beyond twelve standard deviations the Poisson terms are below a double's precision of the sum.
  const double spread = 12 * std::sqrt(mean) + 40;
  const auto from = static_cast<std::uint64_t>(std::max(0.0, mean - spread));
  const auto until = static_cast<std::uint64_t>(mean + spread);
  double sum = 0;
  for (std::uint64_t held = from; held <= until; ++held) {
    const double x = static_cast<double>(held);
    const double log_share = x * std::log(mean) - mean - std::lgamma(x + 1);
    sum += std::exp(log_share) * std::pow(-std::expm1(x * log_zero), probes * power);
  }
  return std::min(sum, 1.0);
}

}  // namespace

double blocked_bloom_fpr(double blocks, unsigned probes, double keys) {
  return blocked_moment(blocks, probes, keys, 1);
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
  // Error falls with the number of blocks: solve in its reciprocal, keys a block.
  const double load = solve(
      [&](double keys_a_block) { return blocked_bloom_fpr(1, probes, keys_a_block); }, fpr, 0, 16);
  return std::max(keys, 1.0) / load;
}

double bloom_keys(double bits, unsigned probes, double fpr) {
  const double share_one = std::pow(fpr, 1.0 / probes);
  return std::log1p(-share_one) / (probes * std::log1p(-1 / bits));
}

double blocked_bloom_keys(double blocks, unsigned probes, double fpr) {
  return blocks *
         solve([&](double load) { return blocked_bloom_fpr(1, probes, load); }, fpr, 0, 16);
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
