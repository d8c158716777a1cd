#include "sluice/model/sliced.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/log_gamma.hpp"

namespace sluice::model {
namespace {

// A standard normal number (Box & Muller).
double normal(SplitMix64& random) {
  const double radius = std::sqrt(-2 * std::log1p(-random.next_unit()));
  return radius * std::cos(2 * std::numbers::pi * random.next_unit());
}

// (1 − (1 − 1/bits)^throws)^positions: eq. 1 with its parts free.
double all_set(double bits, double throws, double positions) {
  const double one = -std::expm1(throws * std::log1p(-1 / std::max(bits, 1.000001)));
  return std::pow(one, positions);
}

// E[f(X)] for X binomial of `trials` and `share`: from the likeliest X outwards, each term from the
// one before, as differences of lgammas have no digits left for large numbers.
template <class F>
double binomial_mean(double trials, double share, F f) {
  if (share >= 1) return f(trials);
  if (trials <= 0 || share <= 0) return f(0.0);
  const double odds = share / (1 - share);
  const double mode = std::min(trials, std::floor((trials + 1) * share));
  constexpr double kNothing = 1e-18;
  double weights = 1, sum = f(mode);
  double weight = 1;
  for (double held = mode; held < trials && weight > kNothing; ++held) {
    weight *= (trials - held) / (held + 1) * odds;
    weights += weight;
    sum += weight * f(held + 1);
  }
  weight = 1;
  for (double held = mode; held > 0 && weight > kNothing; --held) {
    weight *= held / ((trials - held + 1) * odds);
    weights += weight;
    sum += weight * f(held - 1);
  }
  return sum / weights;
}

// Σ over i in [from, until] of C(k,i) live^i dead^{k−i} density^i.
double binomial_sum(unsigned k, double live, double density, unsigned from, unsigned until) {
  double sum = 0, ways = 1;
  for (unsigned i = 0; i <= std::min(until, k); ++i) {
    if (i >= from) sum += ways * std::pow(live * density, i) * std::pow(1 - live, k - i);
    ways *= static_cast<double>(k - i) / (i + 1);
  }
  return sum;
}

SlicedErrors scattered_errors(unsigned k, double failed_share, double density, FaultRule rule) {
  const double live = 1 - failed_share;
  const unsigned x = std::min(rule.least_live, k);
  return {binomial_sum(k, live, density, x, k), x == 0 ? 0 : binomial_sum(k, live, 1, 0, x - 1)};
}

// All bits of a key are gone, or none.
SlicedErrors together_errors(double failed_share, double fpr, FaultRule rule) {
  const double live = 1 - failed_share;
  if (rule.least_live == 0) return {failed_share + live * fpr, 0};
  return {live * fpr, failed_share};
}

double share_of(unsigned failed, unsigned sites) {
  return std::min(1.0, static_cast<double>(failed) / sites);
}

// E[f(failed sites of a row)] when `failed` of `sites` failed, wherever, and a row has `row` sites.
template <class F>
double hypergeometric_mean(unsigned sites, unsigned failed, unsigned row, F f) {
  failed = std::min(failed, sites);
  const unsigned least = failed + row > sites ? failed + row - sites : 0;
  const unsigned most = std::min(failed, row);
  const auto log_ways = [](double n, double k) {
    return log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1);
  };
  double weights = 0, sum = 0;
  for (unsigned here = least; here <= most; ++here) {
    const double weight = std::exp(log_ways(row, here) + log_ways(sites - row, failed - here) -
                                   log_ways(sites, failed));
    weights += weight;
    sum += weight * f(here);
  }
  return sum / weights;
}

// Sites on which the bits of a key may be, once its row is known.
unsigned sites_in_row(const SlicedFilter& filter) {
  return filter.sites() / filter.rows();
}

}  // namespace

unsigned SlicedFilter::sites() const {
  const bool diced = slicing != Slicing::horizontal && slicing != Slicing::vertical;
  return diced ? slices * inner : slices;
}

unsigned SlicedFilter::rows() const {
  switch (slicing) {
    case Slicing::vertical:
      return 1;
    case Slicing::vertical_horizontal:
      return inner;
    default:
      return slices;
  }
}

double sliced_fpr_even(const SlicedFilter& filter) {
  const double parts =
      filter.slicing == Slicing::vertical_horizontal ? filter.sites() : filter.rows();
  return all_set(filter.bits / parts, filter.probes * filter.keys / parts, filter.probes);
}

double sliced_fpr(const SlicedFilter& filter) {
  const double rows = filter.rows();
  return binomial_mean(filter.keys, 1 / rows, [&](double held) {
    return all_set(filter.bits / rows, filter.probes * held, filter.probes);
  });
}

double sliced_density(const SlicedFilter& filter) {
  return std::pow(sliced_fpr(filter), 1.0 / filter.probes);
}

double general_fpr_even(const GeneralSlicing& slicing) {
  const double k = static_cast<double>(slicing.slices_per_key) * slicing.bits_per_slice;
  const double held = slicing.keys * slicing.slices_per_key / slicing.slices;
  return all_set(slicing.bits / slicing.slices, slicing.bits_per_slice * held, k);
}

double general_fpr(const GeneralSlicing& slicing) {
  const double share = static_cast<double>(slicing.slices_per_key) / slicing.slices;
  const double one = binomial_mean(slicing.keys, share, [&](double held) {
    return all_set(slicing.bits / slicing.slices, slicing.bits_per_slice * held,
                   slicing.bits_per_slice);
  });
  return std::pow(one, slicing.slices_per_key);
}

SlicedErrors sliced_errors(const SlicedFilter& filter, unsigned failed, FaultRule rule) {
  const double gone = share_of(failed, filter.sites());
  const double fpr = sliced_fpr(filter);
  if (filter.slicing == Slicing::horizontal) return together_errors(gone, fpr, rule);
  return scattered_errors(filter.probes, gone, std::pow(fpr, 1.0 / filter.probes), rule);
}

SlicedErrors diced_errors(const SlicedFilter& filter, unsigned failed, FaultRule rule) {
  return errors_at(filter, sliced_fpr(filter), failed, rule);
}

SlicedErrors errors_at(const SlicedFilter& cut, double fpr, unsigned failed, FaultRule rule) {
  if (cut.slicing == Slicing::horizontal)
    return together_errors(share_of(failed, cut.sites()), fpr, rule);
  const double density = std::pow(fpr, 1.0 / cut.probes);
  if (cut.slicing == Slicing::vertical)
    return scattered_errors(cut.probes, share_of(failed, cut.sites()), density, rule);
  const unsigned row = sites_in_row(cut);
  const auto mean = [&](double SlicedErrors::*which) {
    return hypergeometric_mean(cut.sites(), failed, row, [&](unsigned here) {
      return scattered_errors(cut.probes, share_of(here, row), density, rule).*which;
    });
  };
  return {mean(&SlicedErrors::fpr), mean(&SlicedErrors::fnr)};
}

double fault_tolerance(const SlicedFilter& filter, unsigned failed, double fpr) {
  const bool horizontal = filter.slicing == Slicing::horizontal;
  const double whole = bloom_fpr(filter.bits, filter.probes, filter.keys);
  const double chance = horizontal ? whole : std::pow(whole, 1.0 / filter.probes);
  const double limit = horizontal ? fpr : std::pow(fpr, 1.0 / filter.probes);
  if (limit <= chance) return std::numeric_limits<double>::infinity();
  return std::max<double>(failed, failed * (1 - chance) / (limit - chance));
}

double fault_tolerance_fnr(const SlicedFilter& filter, unsigned failed, double fnr,
                           FaultRule rule) {
  if (rule.least_live == 0) return failed;  // there are none, however few sites
  if (filter.slicing == Slicing::horizontal) return std::max<double>(failed, failed / fnr);
  // The share of failed sites at which false negatives come to `fnr`: they rise with it.
  double low = 0, high = 1;
  for (int step = 0; step < 200 && high - low > 1e-15 * high; ++step) {
    const double middle = low + (high - low) / 2;
    (scattered_errors(filter.probes, middle, 1, rule).fnr < fnr ? low : high) = middle;
  }
  return failed / high;
}

double fault_tolerance_at(const SlicedFilter& cut, double alive, unsigned failed, double fpr,
                          FaultRule rule) {
  if (fpr <= alive) return std::numeric_limits<double>::infinity();
  const bool horizontal = cut.slicing == Slicing::horizontal;
  if (horizontal)
    return rule.least_live == 0 ? std::max<double>(failed, failed * (1 - alive) / (fpr - alive))
                                : failed;
  const double density = std::pow(alive, 1.0 / cut.probes);
  const auto within = [&](double share) {
    return scattered_errors(cut.probes, share, density, rule).fpr <= fpr;
  };
  // The share of failed sites at which false positives pass `fpr` for the first time: with the
  // hybrid rule they fall again when hardly any bit can be read.
  constexpr unsigned kSteps = 4096;
  unsigned step = 1;
  while (step <= kSteps && within(static_cast<double>(step) / kSteps)) ++step;
  if (step > kSteps) return failed;
  double low = static_cast<double>(step - 1) / kSteps, high = static_cast<double>(step) / kSteps;
  for (int round = 0; round < 200 && high - low > 1e-15 * high; ++round) {
    const double middle = low + (high - low) / 2;
    (within(middle) ? low : high) = middle;
  }
  return failed / low;
}

double wire_bits(const SlicedFilter& filter) {
  return filter.probes * std::log2(filter.bits / filter.sites());
}

double sites_of_key(const SlicedFilter& filter) {
  const double row = sites_in_row(filter);
  return row <= 1 ? 1 : -row * std::expm1(filter.probes * std::log1p(-1 / row));
}

// The j-th site is asked when all bits on the j − 1 before it are set, and there is a j-th. So, for
// each j, the chance of that over the probes in turn: `before[d]` while d < j sites were met.
double pipelined_sites(const SlicedFilter& filter, double density) {
  const double row = sites_in_row(filter);
  double sum = 0;
  for (unsigned j = 1; j <= std::min<double>(filter.probes, row); ++j) {
    std::vector<double> before(j, 0.0);
    before[0] = 1;
    double met = 0;  // a j-th site is there
    for (unsigned probe = 0; probe < filter.probes; ++probe) {
      // A later bit on one of the first j − 1 sites must be set too; one elsewhere need not.
      met *= 1 - (j - 1) / row * (1 - density);
      met += before[j - 1] * (1 - (j - 1) / row);
      for (unsigned d = j - 1; d > 0; --d)
        before[d] = density * (before[d] * (d / row) + before[d - 1] * (1 - (d - 1) / row));
      before[0] = 0;
    }
    sum += met;
  }
  return sum;
}

double pipelined_sites_filling(const SlicedFilter& filter) {
  // Smooth in the number of keys: the middle of each step is near enough.
  constexpr int kSteps = 256;
  double sum = 0;
  for (int step = 0; step < kSteps; ++step) {
    const double keys = filter.keys * (step + 0.5) / kSteps;
    const double density = all_set(filter.bits, filter.probes * keys, 1);
    sum += pipelined_sites(filter, density);
  }
  return sum / kSteps;
}

double fairness(std::span<const double> loads) {
  double sum = 0, squares = 0;
  for (const double load : loads) {
    sum += load;
    squares += load * load;
  }
  return squares == 0 ? 1 : sum * sum / (static_cast<double>(loads.size()) * squares);
}

double expected_fairness(unsigned slices, unsigned slices_per_key, double concentration) {
  return 1 / (1 + (slices - 1.0) * concentration / slices_per_key);
}

double zipf_concentration(double keys, double exponent) {
  double sum = 0, squares = 0;
  for (double rank = std::max(1.0, keys); rank >= 1; --rank) {
    const double weight = std::pow(rank, -exponent);
    sum += weight;
    squares += weight * weight;
  }
  return squares / (sum * sum);
}

HighestLoad zipf_highest_load(unsigned slices, unsigned slices_per_key, double keys,
                              double exponent) {
  constexpr double kPlaced = 4096;  // each of the rest is too little to be seen
  constexpr double kWork = 2e7;     // steps in all
  std::vector<double> placed;
  double sum = 0, rest = 0, squares = 0;
  for (double rank = 1; rank <= keys; ++rank) {
    const double weight = std::pow(rank, -exponent);
    sum += weight;
    if (rank <= kPlaced) {
      placed.push_back(weight / slices_per_key);
    } else {
      rest += weight;
      squares += weight * weight;
    }
  }
  const double even = rest / slices, spread = std::sqrt(squares / slices_per_key / slices);
  const double steps = static_cast<double>(placed.size()) * slices_per_key + slices;
  const double rounds = std::floor(std::clamp(kWork / steps, 16.0, 400.0));
  SplitMix64 random(1);
  std::vector<double> loads(slices);
  double mean = 0, mean_square = 0;
  for (double round = 0; round < rounds; ++round) {
    for (double& load : loads) load = spread == 0 ? even : even + spread * normal(random);
    for (const double weight : placed)
      for (unsigned i = 0; i < slices_per_key; ++i) loads[random.next() % slices] += weight;
    const double highest = *std::max_element(loads.begin(), loads.end()) / sum;
    mean += highest / rounds;
    mean_square += highest * highest / rounds;
  }
  return {mean, std::sqrt(std::max(0.0, mean_square - mean * mean))};
}

double growth_density(double bits, unsigned probes, double fpr) {
  return bits * std::pow(fpr, 1.0 / probes);
}

double growth_density_fpr(double bits, unsigned probes, double set) {
  return std::pow(set / bits, probes);
}

double growth_fpr(double fpr, unsigned filters) {
  return -std::expm1(filters * std::log1p(-fpr));
}

double growth_share(double fpr, unsigned filters) {
  return -std::expm1(std::log1p(-fpr) / filters);
}

}  // namespace sluice::model
