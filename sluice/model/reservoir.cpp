#include "sluice/model/reservoir.hpp"

#include <algorithm>

namespace sluice::model {
namespace {

const double kShareSetAtFirst = 1 - std::exp(-1.0);

unsigned whole_filters(double filters) {
  return static_cast<unsigned>(std::clamp(std::round(filters), 1.0, double{kMostReservoirFilters}));
}

// Chance that a bit is set `distance` records after its key was, where `resets` of the records
// reset a random bit of `size`: averaged over how many of the universe's other keys have the bit.
double shared_bit_alive(double size, double universe, double resets, double distance) {
  const double mean = universe / size;
  const double down = resets / size;
  const auto alive = [&](double others) {
    const double up = others / universe;
    if (down + up == 0) return 1.0;
    const double settled = up / (down + up);
    return settled + (1 - settled) * std::exp(-(down + up) * distance);
  };
  // Poisson; where there are many the mean tells as much.
  if (mean > 300) return alive(mean);
  const auto until = static_cast<int>(mean + 9 * std::sqrt(mean) + 12);
  double chance = std::exp(-mean), sum = 0;
  for (int others = 0; others <= until; ++others) {
    sum += chance * alive(others);
    chance *= mean / (others + 1);
  }
  return sum;
}

double biased_uniform_fnr(double size, unsigned filters, double universe) {
  double resets = 1;
  // From above: each step is closer to the largest fixed point, the one a new filter falls to.
  for (int step = 0; step < 200; ++step) {
    const double before = resets;
    const auto caught = [&](double d) {
      return std::pow(shared_bit_alive(size, universe, before, d), filters);
    };
    resets = 1 - caught_on_uniform(caught, universe);
    if (resets < 1e-9) return 0;
    if (std::abs(resets - before) < 1e-7) break;
  }
  return resets;
}

}  // namespace

double reservoir_filters(double fpr) {
  return std::log(fpr) / std::log(kShareSetAtFirst);
}

unsigned reservoir_most_filters(double fpr) {
  return whole_filters(reservoir_filters(fpr));
}

unsigned reservoir_mean_filters(double fpr) {
  return whole_filters((1 + reservoir_filters(fpr)) / 2);
}

double reservoir_fill(unsigned filters, ReservoirVariant variant) {
  if (variant == ReservoirVariant::paper) return 0.5;
  if (filters < kFewestBiasedFilters) return 1;
  double low = 0.5, high = 0.7;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (middle * (2 - std::pow(middle, filters)) < 1 ? low : high) = middle;
  }
  return low;
}

double reservoir_fpr(unsigned filters, ReservoirVariant variant) {
  return std::pow(reservoir_fill(filters, variant), filters);
}

double reservoir_caught(double size, unsigned filters, ReservoirVariant variant, double distance) {
  const double fill = reservoir_fill(filters, variant);
  return std::pow(fill + (1 - fill) * std::exp(-distance / (fill * size)), filters);
}

ForgettingPlan reservoir_memory(double bits, unsigned filters, ReservoirVariant variant) {
  const double fill = reservoir_fill(filters, variant);
  const double size = bits / filters;
  ForgettingPlan plan{.filters = filters, .fpr = reservoir_fpr(filters, variant)};
  if (fill < 1)
    measure_forgetting(
        [&](double d) {
          return std::pow(fill + (1 - fill) * std::exp(-d / (fill * size)), filters);
        },
        30 * fill * size, plan);
  return plan;
}

ForgettingPlan reservoir_plan(double bits, double fpr, ReservoirVariant variant) {
  unsigned filters = variant == ReservoirVariant::biased ? kFewestBiasedFilters : 1;
  while (filters < kMostReservoirFilters && reservoir_fpr(filters, variant) > fpr) ++filters;
  return reservoir_memory(bits, filters, variant);
}

double reservoir_uniform_fnr(double size, unsigned filters, ReservoirVariant variant,
                             double universe) {
  if (variant == ReservoirVariant::biased) return biased_uniform_fnr(size, filters, universe);
  const auto caught = [&](double d) { return reservoir_caught(size, filters, variant, d); };
  return 1 - caught_on_uniform(caught, universe);
}

double dutta_fpr_5_7(double size, unsigned filters, double universe, double records) {
  const double unique = std::exp(records * std::log1p(-1 / universe));
  return unique *
         (1 - filters * size / records + std::pow(kShareSetAtFirst * size / records, filters));
}

double dutta_fnr_5_14(double size, unsigned filters, double universe, double records) {
  return filters * (records - size) / (universe * records);
}

double dutta_last_insertion_5_15(double universe) {
  return 1 / universe;
}

double dutta_some_bit_zero_5_16(double size, unsigned filters, double records) {
  return 1 - std::pow(1 - size / records, filters);
}

double dutta_fnr_5_17(unsigned filters, double universe) {
  return filters / universe;
}

}  // namespace sluice::model
