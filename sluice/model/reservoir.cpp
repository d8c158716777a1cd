#include "sluice/model/reservoir.hpp"

#include <algorithm>

#include "sluice/model/memo.hpp"
#include "sluice/model/power.hpp"

namespace sluice::model {
namespace {

const double kShareSetAtFirst = 1 - std::exp(-1.0);

unsigned whole_filters(double filters) {
  return static_cast<unsigned>(std::clamp(std::round(filters), 1.0, double{kMostReservoirFilters}));
}

// Chance that a bit is set `distance` records after its key was, where each record resets `resets`
// random bits of `size`: averaged over how many of the universe's other keys have the bit.
double shared_bit_alive(double size, double universe, double resets, double distance) {
  const double down = resets / size;
  return over_sharing_keys(universe / size, [&](double others) {
    const double both = down + others / universe;
    if (both == 0) return 1.0;
    return (others / universe + down * std::exp(-both * distance)) / both;
  });
}

double biased_uniform_fnr(const ReservoirShape& shape, double universe) {
  double fnr = 1;
  // From above: each step is closer to the largest fixed point, the one a new filter falls to.
  for (int step = 0; step < 400; ++step) {
    const double before = fnr;
    const auto caught = [&](double d) {
      return std::pow(shared_bit_alive(shape.size, universe, before * shape.resets, d),
                      shape.filters);
    };
    fnr = 1 - caught_on_uniform(caught, universe);
    if (fnr < 1e-6) return 0;
    if (std::abs(fnr - before) < 1e-8) break;
  }
  return fnr;
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

double reservoir_fill(const ReservoirShape& shape) {
  if (shape.variant == ReservoirVariant::paper) return 0.5;
  if (shape.filters * shape.resets == 1) return 1;
  // The root of x(1 + r(1 − xⁿ)) − 1 that is below 1: concave, and negative where we begin, so
  // Newton's steps come ever nearer from below.
  const double r = shape.resets;
  double fill = 1 / (1 + r);
  for (int step = 0; step < 200; ++step) {
    const double all = power_of(fill, shape.filters);
    const double next =
        fill + (1 - fill * (1 + r * (1 - all))) / (1 + r - r * (shape.filters + 1) * all);
    if (!(next > fill)) break;
    fill = next;
  }
  return fill;
}

double reservoir_fpr(const ReservoirShape& shape) {
  return power_of(reservoir_fill(shape), shape.filters);
}

unsigned reservoir_resets(ReservoirShape shape, double fpr) {
  if (shape.variant == ReservoirVariant::paper) return 1;
  // This is the highest allowed fill; the equation of reservoir_fill gives the number of resets for
  // it.
  const double fill = std::pow(fpr, 1.0 / shape.filters);
  const double needed = (1 / fill - 1) / (1 - fpr);
  if (!(needed <= kMostReservoirResets + 1.0)) return 0;
  shape.resets = std::max(1u, static_cast<unsigned>(needed));
  for (; shape.resets <= kMostReservoirResets; ++shape.resets)
    if (reservoir_fpr(shape) <= fpr) return shape.resets;
  return 0;
}

double reservoir_caught(const ReservoirShape& shape, double distance) {
  const double fill = reservoir_fill(shape);
  return bits_caught(shape.filters, fill, fill * shape.size, distance);
}

double reservoir_distance(const ReservoirShape& shape, double fnr) {
  const double fill = reservoir_fill(shape);
  return bits_distance(shape.filters, fill, fill * shape.size, fnr);
}

ForgettingPlan reservoir_memory(const ReservoirShape& shape) {
  const double fill = reservoir_fill(shape);
  ForgettingPlan plan = bits_memory(shape.filters, fill, fill * shape.size);
  plan.resets = shape.resets;
  return plan;
}

namespace {

ForgettingPlan farthest_plan(double bits, double fpr, ReservoirVariant variant) {
  ForgettingPlan best;
  for (unsigned filters = 1; filters <= kMostReservoirFilters; ++filters) {
    ReservoirShape shape{.size = bits / filters, .filters = filters, .variant = variant};
    shape.resets = reservoir_resets(shape, fpr);
    if (shape.resets == 0 || reservoir_fpr(shape) > fpr) continue;
    const ForgettingPlan plan = reservoir_memory(shape);
    // One maximum: past it more filters only bring more to lose.
    if (plan.mean_distance < 0.7 * best.mean_distance) break;
    if (plan.mean_distance > best.mean_distance) best = plan;
  }
  return best;
}

}  // namespace

ForgettingPlan reservoir_plan(double bits, double fpr, ReservoirVariant variant) {
  thread_local Memo<3, ForgettingPlan> known;
  return known({bits, fpr, static_cast<double>(variant)},
               [&] { return farthest_plan(bits, fpr, variant); });
}

double reservoir_uniform_fnr(const ReservoirShape& shape, double universe) {
  if (shape.variant == ReservoirVariant::biased) return biased_uniform_fnr(shape, universe);
  const auto caught = [&](double d) {
    return std::pow(shared_bit_alive(shape.size, universe, 1, d), shape.filters);
  };
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
