#include "sluice/model/dynamic_sizing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <tuple>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/model/bloom.hpp"

namespace sluice::model {
namespace {

// Bits per key of the best standard filter: ln ε / ln .6185, where .6185 is e^{−(ln 2)²}. The paper
// also prints .61285, a misprint.
double ideal_bits_per_key(double fpr) {
  return -std::log(fpr) / (std::numbers::ln2 * std::numbers::ln2);
}

template <class Weight>
SetSizes sizes_of(std::uint64_t bound, Weight weight) {
  if (bound == 0 || bound > kLargestBound)
    throw BadParameters(
        fmt::format("the largest set of a distribution has {} keys: it must be 1 to {}; divide all "
                    "sizes by the same number",
                    bound, kLargestBound));
  SetSizes sizes(bound);
  for (std::uint64_t i = 0; i < bound; ++i) sizes[i] = weight(static_cast<double>(i + 1));
  const double total = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  if (!(total > 0) || !std::isfinite(total))
    throw BadParameters(
        fmt::format("the distribution has no set of 1 to {} keys: bring its mean within them, or "
                    "make it wider",
                    bound));
  for (double& chance : sizes) chance /= total;
  return sizes;
}

void check_error(const char* name, double fpr) {
  if (!(fpr > 0 && fpr < 1))
    throw BadParameters(fmt::format("{} is {}: an error must be above 0 and below 1", name, fpr));
}

// tails[i]: chance of more than i keys.
std::vector<double> tails_of(const SetSizes& sizes) {
  std::vector<double> tails(sizes.size() + 1);
  for (std::size_t i = sizes.size(); i-- > 0;) tails[i] = tails[i + 1] + sizes[i];
  return tails;
}

double share_of(double fpr, unsigned filters) {
  return -std::expm1(std::log1p(-fpr) / filters);
}

std::uint64_t capacity_of(std::uint64_t bound, unsigned filters) {
  return (bound + filters - 1) / filters;
}

double expected_bits_with(const std::vector<double>& tails, double fpr, unsigned filters) {
  const std::uint64_t bound = tails.size() - 1;
  const std::uint64_t capacity = capacity_of(bound, filters);
  double begun = 1;  // r₁
  for (std::uint64_t before = capacity; before < bound; before += capacity) begun += tails[before];
  return begun * static_cast<double>(bound) / filters * ideal_bits_per_key(share_of(fpr, filters));
}

}  // namespace

DynamicShape filter_for(double capacity, double fpr) {
  const auto bits = [&](unsigned probes) {
    return std::ceil(capacity * probes / -std::log1p(-std::pow(fpr, 1.0 / probes)));
  };
  // At the least memory half of the bits are set: k = log₂(1/ε), up or down.
  const double best = std::clamp(-std::log2(fpr), 1.0, double{kMostProbes});
  const auto down = static_cast<unsigned>(std::floor(best));
  const auto up = static_cast<unsigned>(std::ceil(best));
  const unsigned probes = bits(down) <= bits(up) ? down : up;
  return {bits(probes), probes, capacity};
}

SetSizes uniform_sizes(std::uint64_t bound) {
  return sizes_of(bound, [](double) { return 1.0; });
}

SetSizes normal_sizes(std::uint64_t bound, double mean, double deviation) {
  if (!(deviation > 0))
    throw BadParameters(
        fmt::format("the deviation of a normal distribution is {}: it must be above 0", deviation));
  return sizes_of(bound, [&](double keys) {
    const double away = (keys - mean) / deviation;
    return std::exp(-away * away / 2);
  });
}

SetSizes zipf_sizes(std::uint64_t bound, double exponent, ZipfOrder order) {
  SetSizes sizes = sizes_of(bound, [&](double rank) { return std::pow(rank, -exponent); });
  if (order == ZipfOrder::maximum) std::ranges::reverse(sizes);
  return sizes;
}

SetSizes random_zipf_sizes(std::uint64_t bound, double exponent, std::uint64_t seed) {
  SetSizes sizes = zipf_sizes(bound, exponent, ZipfOrder::minimum);
  SplitMix64 random(seed);
  for (std::size_t i = sizes.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>(random.next_unit() * static_cast<double>(i));
    std::swap(sizes[i - 1], sizes[other]);
  }
  return sizes;
}

double expected_bits(const SetSizes& sizes, double fpr, unsigned filters) {
  return expected_bits_with(tails_of(sizes), fpr, filters);
}

// §4.2.
BoundedPlan least_memory(const SetSizes& sizes, double fpr, unsigned most_filters) {
  check_error("the error of the plan", fpr);
  if (sizes.empty()) throw BadParameters("a distribution without sizes: it must have one or more");
  const std::vector<double> tails = tails_of(sizes);
  const std::uint64_t bound = sizes.size();
  BoundedPlan plan;
  plan.standard_bits = plan.expected_bits = expected_bits_with(tails, fpr, 1);
  const auto most = static_cast<unsigned>(std::min<std::uint64_t>(most_filters, bound));
  for (unsigned filters = 2; filters <= most; ++filters) {
    const double bits = expected_bits_with(tails, fpr, filters);
    if (bits >= plan.expected_bits) continue;
    plan.expected_bits = bits;
    plan.filters = filters;
  }
  plan.filter_fpr = share_of(fpr, plan.filters);
  plan.shape = filter_for(static_cast<double>(capacity_of(bound, plan.filters)), plan.filter_fpr);
  return plan;
}

// §4.3.
double standard_rebuild_at(const DynamicShape& shape, double limit) {
  return bloom_keys_limit(shape.bits, shape.probes, limit);
}

double dynamic_rebuild_at(const DynamicShape& shape, double limit) {
  return dynamic_keys(shape, limit);
}

// §4.4.
DynamicConfiguration DynamicConfiguration::make(double capacity, double target, double limit) {
  check_error("the target error", target);
  check_error("the limit of error", limit);
  if (target >= limit)
    throw BadParameters(
        fmt::format("the target error {} must be below the limit {}", target, limit));
  if (!(capacity >= 1) || !std::isfinite(capacity))
    throw BadParameters(fmt::format("a capacity of {} keys: it must be 1 or more", capacity));
  return {filter_for(std::ceil(capacity), target), target, limit, 1};
}

bool DynamicConfiguration::must_rebuild(double keys) const {
  return dynamic_fpr(shape, keys) > limit;
}

DynamicConfiguration DynamicConfiguration::next(double keys) const {
  const double outgrown = std::floor(dynamic_rebuild_at(shape, limit)) + 1;
  DynamicConfiguration made = make(std::max({2 * shape.capacity, outgrown, keys}), target, limit);
  made.version = version + 1;
  return made;
}

DynamicConfiguration DynamicConfiguration::after(const DynamicConfiguration& heard,
                                                 double keys) const {
  const DynamicConfiguration& later = heard.later_than(*this) ? heard : *this;
  return later.must_rebuild(keys) ? later.next(keys) : later;
}

bool DynamicConfiguration::later_than(const DynamicConfiguration& other) const {
  const auto order = [](const DynamicConfiguration& it) {
    return std::tuple(it.version, it.shape.capacity, it.shape.bits, it.shape.probes, it.target,
                      it.limit);
  };
  return order(*this) > order(other);
}

}  // namespace sluice::model
