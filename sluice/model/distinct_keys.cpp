#include "sluice/model/distinct_keys.hpp"

#include <algorithm>
#include <cmath>

#include "sluice/base/error.hpp"

namespace sluice::model {
namespace {

constexpr double kEuler = 0.57721566490153286;
// Terms summed one by one. The integral in place of the rest is off by a 24th of the slope at its
// start: 1 / (24 kSummed²) of the sum at most, 6e-10.
constexpr std::uint64_t kSummed = 1u << 13;

// Points of a power law's curve: four an octave are within 1e-4 of it in between.
constexpr int kPointsAnOctave = 4;
constexpr int kOctaves = 48;

}  // namespace

double harmonic(double n) {
  if (n < 64) {
    double sum = 0;
    for (double i = 1; i <= n; ++i) sum += 1 / i;
    return sum;
  }
  const double square = n * n;
  return std::log(n) + kEuler + 1 / (2 * n) - 1 / (12 * square) + 1 / (120 * square * square);
}

double uniform_distinct(double keys, double arrivals) {
  if (keys <= 1) return std::min(arrivals, 1.0);
  return -keys * std::expm1(arrivals * std::log1p(-1 / keys));
}

double power_law_distinct(std::uint64_t keys, double arrivals) {
  const double scale = 1 / harmonic(static_cast<double>(keys));
  const auto seen = [&](double x) { return -std::expm1(arrivals * std::log1p(-scale / x)); };
  double sum = 0;
  // From the small terms to the large.
  for (std::uint64_t x = std::min(keys, kSummed); x > 0; --x) sum += seen(static_cast<double>(x));
  if (keys <= kSummed) return sum;
  // The rest by midpoints (the sum over whole x is the integral from half to half), Simpson in ln
  // x.
  const double from = std::log(static_cast<double>(kSummed) + 0.5);
  const double to = std::log(static_cast<double>(keys) + 0.5);
  const int steps = 2 * static_cast<int>(std::ceil((to - from) * 64));
  const double step = (to - from) / steps;
  double integral = 0;
  for (int i = 0; i <= steps; ++i) {
    const double x = std::exp(from + i * step);
    const double weight = i == 0 || i == steps ? 1 : i % 2 == 1 ? 4 : 2;
    integral += weight * x * seen(x);
  }
  return sum + integral * step / 3;
}

double power_law_distinct_limit(double keys, double arrivals) {
  const double total = harmonic(keys);
  return arrivals / total * (1 - kEuler + std::log(keys * total / arrivals));
}

DistinctKeys DistinctKeys::uniform(double keys) {
  if (!(keys >= 1)) throw BadParameters("a uniform stream has 1 key or more");
  DistinctKeys curve;
  curve.uniform_ = keys;
  return curve;
}

DistinctKeys DistinctKeys::power_law(std::uint64_t keys) {
  if (keys == 0) throw BadParameters("a power-law stream has 1 key or more");
  const double most = 64 * static_cast<double>(keys) * harmonic(static_cast<double>(keys));
  std::vector<Point> points;
  for (int i = 1; i <= kPointsAnOctave * kOctaves; ++i) {
    const double arrivals = std::exp2(static_cast<double>(i) / kPointsAnOctave);
    if (arrivals > most) break;
    points.push_back({arrivals, power_law_distinct(keys, arrivals)});
  }
  return measured(points);
}

DistinctKeys DistinctKeys::measured(std::span<const Point> points) {
  DistinctKeys curve;
  curve.logs_.push_back({0, 0});
  Point last{1, 1};
  for (const Point& point : points) {
    if (point.arrivals == 1) continue;
    if (!(point.arrivals > last.arrivals && point.distinct >= last.distinct &&
          point.distinct <= point.arrivals))
      throw BadParameters(
          "measured numbers of distinct keys ascend, and none is above its number of arrivals");
    curve.logs_.push_back({std::log(point.arrivals), std::log(point.distinct)});
    last = point;
  }
  if (curve.logs_.size() < 2) throw BadParameters("measured numbers of distinct keys: give one");
  return curve;
}

double DistinctKeys::operator()(double arrivals) const noexcept {
  if (uniform_ > 0) return uniform_distinct(uniform_, arrivals);
  if (logs_.empty() || arrivals <= 1) return arrivals;
  const double wanted = std::log(arrivals);
  const auto after =
      std::upper_bound(logs_.begin(), logs_.end(), wanted,
                       [](double value, const Point& point) { return value < point.arrivals; });
  if (after == logs_.end()) return std::exp(logs_.back().distinct);
  const Point& left = *(after - 1);
  const double share = (wanted - left.arrivals) / (after->arrivals - left.arrivals);
  return std::exp(left.distinct + share * (after->distinct - left.distinct));
}

}  // namespace sluice::model
