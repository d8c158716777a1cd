#include "sluice/model/stable.hpp"

#include <algorithm>

#include "sluice/model/memo.hpp"
#include "sluice/model/power.hpp"

namespace sluice::model {
namespace {

// 1/K − 1/m: a cell is set by one of K probes, unless it was the one that was set already.
double spread(const StableShape& shape) {
  return std::max(1.0 / shape.probes - 1.0 / shape.cells, 1e-12);
}

// Chance that a cell that was set `distance` records ago is above zero, where a record reduces it
// with chance `down` and sets it with chance `up`.
double cell_alive(unsigned max, double down, double up, double distance) {
  const double y = (down + up) * distance;
  const double none = std::exp(-y);
  // Not set again, and reduced fewer than max times; or last set some time since, and reduced fewer
  // than max times since then.
  double alive = 0;
  double reduced = none;               // e^{−y} (down · d)^i / i!
  double either = none, until = none;  // e^{−y} y^i / i! and its sum up to i
  double share = up / (down + up);     // up/(down + up) · (down/(down + up))^i
  for (unsigned i = 0; i < max; ++i) {
    alive += reduced + share * (1 - until);
    reduced *= down * distance / (i + 1);
    either *= y / (i + 1);
    until += either;
    share *= down / (down + up);
  }
  return std::min(alive, 1.0);
}

}  // namespace

double stable_zeros(const StableShape& shape) {
  return power_of(1 / (1 + 1 / (shape.decrements * spread(shape))), shape.max);
}

double stable_fpr(const StableShape& shape) {
  return power_of(1 - stable_zeros(shape), shape.probes);
}

unsigned stable_decrements(StableShape shape, double fpr) {
  const double zeros = 1 - std::pow(fpr, 1.0 / shape.probes);
  const double zero = shape.max == 1 ? zeros : std::pow(zeros, 1.0 / shape.max);
  const double needed = zero / (1 - zero) / spread(shape);
  shape.decrements =
      static_cast<unsigned>(std::clamp(std::floor(needed), 1.0, double{kMostStableDecrements}));
  while (shape.decrements < kMostStableDecrements && stable_fpr(shape) > fpr) ++shape.decrements;
  return shape.decrements;
}

double stable_caught(const StableShape& shape, double distance) {
  const double alive =
      cell_alive(shape.max, shape.decrements / shape.cells, shape.probes / shape.cells, distance);
  return std::pow(alive, shape.probes);
}

double stable_distance(const StableShape& shape, double fnr) {
  const double scale = shape.cells / (shape.probes + shape.decrements);
  if (shape.max == 1)
    return bits_distance(shape.probes, scale * shape.probes / shape.cells, scale, fnr);
  double low = 0, high = (30.0 + 4 * shape.max) * scale;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (1 - stable_caught(shape, middle) < fnr ? low : high) = middle;
  }
  return high;
}

// Simpson's rule, as with max > 1 there are powers of d before the exponentials.
ForgettingPlan stable_memory(const StableShape& shape) {
  const double scale = shape.cells / (shape.probes + shape.decrements);
  if (shape.max == 1) return bits_memory(shape.probes, scale * shape.probes / shape.cells, scale);
  constexpr int kSteps = 4096;
  ForgettingPlan plan{.filters = shape.probes, .fpr = stable_caught(shape, 1e9 * shape.cells)};
  const auto remembered = [&](double distance) {
    return (stable_caught(shape, distance) - plan.fpr) / (1 - plan.fpr);
  };
  const double settled = (30.0 + 4 * shape.max) * scale;
  double sum = remembered(0) + remembered(settled);
  for (int step = 1; step < kSteps; ++step)
    sum += (step % 2 == 1 ? 4 : 2) * remembered(settled * step / kSteps);
  plan.mean_distance = sum * settled / kSteps / 3;
  double low = 0, high = settled;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (remembered(middle) > 0.5 ? low : high) = middle;
  }
  plan.half_distance = high;
  return plan;
}

namespace {

double mean_distance(const StableShape& shape) {
  if (shape.max != 1) return stable_memory(shape).mean_distance;
  const double scale = shape.cells / (shape.probes + shape.decrements);
  return bits_mean_distance(shape.probes, scale * shape.probes / shape.cells, scale);
}

// Decrements are whole numbers, so distances fall short of a curve over the probes that has one
// maximum, by a step of them at most. Where even with that step the best one found is out of reach,
// so it is farther on: the search goes up and down from where the maximum of large tables is.
StableShape farthest_shape(double cells, unsigned max, double fpr) {
  constexpr double kProbesPerBit = 0.46;  // of large tables
  constexpr double kRoom = 1.002;         // a step is as much as P/(P − 1), or little more
  constexpr double kFirstStep = 1.5;      // of one decrement; it has been enough for all tried
  StableShape best;
  double farthest = 0;
  const auto more_to_come = [&](unsigned probes) {
    StableShape shape{.cells = cells, .probes = probes, .max = max};
    shape.decrements = stable_decrements(shape, fpr);
    if (stable_fpr(shape) > fpr) return farthest == 0;  // too few probes, or cells
    const double distance = mean_distance(shape);
    if (distance > farthest) {
      farthest = distance;
      best = shape;
      return true;
    }
    const double p = shape.decrements;
    return distance * kRoom * (p < 2 ? kFirstStep : p / (p - 1)) >= farthest;
  };
  const auto middle = static_cast<unsigned>(
      std::clamp(-kProbesPerBit * std::log2(fpr), 1.0, double{kMostStableProbes}));
  for (unsigned probes = middle; probes <= kMostStableProbes && more_to_come(probes);) ++probes;
  for (unsigned probes = middle - 1; probes >= 1 && more_to_come(probes);) --probes;
  return best;
}

}  // namespace

StableShape stable_shape(double cells, unsigned max, double fpr) {
  thread_local Memo<3, StableShape> known;
  return known({cells, static_cast<double>(max), fpr},
               [&] { return farthest_shape(cells, max, fpr); });
}

double stable_uniform_fnr(const StableShape& shape, double universe) {
  const double down = shape.decrements / shape.cells;
  const auto caught = [&](double d) {
    const double alive = over_sharing_keys(
        universe * shape.probes / shape.cells,
        [&](double others) { return cell_alive(shape.max, down, others / universe, d); });
    return std::pow(alive, shape.probes);
  };
  return 1 - caught_on_uniform(caught, universe);
}

}  // namespace sluice::model
