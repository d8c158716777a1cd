#include "sluice/model/small_bloom.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sluice/model/power.hpp"

namespace sluice::model {
namespace {

// The mean of the k-th power of a normal variable that is cut off at 0 and 1: Gauss and Hermite's
// nine points.
double power_of_normal(double mean, double deviation, unsigned exponent) {
  struct Point {
    double at, weight;
  };
  static constexpr std::array<Point, 5> kPoints = {{{0, 0.4063492063492063},
                                                    {1.023255663789133, 0.2440975028949394},
                                                    {2.076847978677830, 0.04991640676521788},
                                                    {3.205429002856470, 0.002789141321231769},
                                                    {4.512745863399783, 2.23458440077466e-5}}};
  const auto at = [&](double value) { return power_of(std::clamp(value, 0.0, 1.0), exponent); };
  double sum = kPoints[0].weight * at(mean);
  for (std::size_t i = 1; i < kPoints.size(); ++i)
    sum += kPoints[i].weight *
           (at(mean - kPoints[i].at * deviation) + at(mean + kPoints[i].at * deviation));
  return sum;
}

}  // namespace

SmallBloom::SmallBloom(double bits, unsigned probes) : bits_(bits), probes_(probes) {
  if (!(bits <= kFewBits)) return;
  bits_ = std::max(1.0, std::round(bits));
  chances_.assign(static_cast<std::size_t>(bits_) + 1, 0.0);
  chances_[0] = 1;
  for (std::size_t set = 0; set < chances_.size(); ++set)
    hits_.push_back(power_of(static_cast<double>(set) / bits_, probes));
  errors_ = {0};
}

// Throw by throw: with x bits set, one more is set with chance (m − x)/m.
void SmallBloom::add_a_key() {
  for (unsigned probe = 0; probe < probes_; ++probe) {
    for (std::size_t set = chances_.size() - 1; set > 0; --set) {
      const auto x = static_cast<double>(set);
      chances_[set] = (chances_[set] * x + chances_[set - 1] * (bits_ - x + 1)) / bits_;
    }
    chances_[0] = 0;
  }
  errors_.push_back(std::inner_product(chances_.begin(), chances_.end(), hits_.begin(), 0.0));
}

double SmallBloom::fpr(double keys) {
  constexpr double kAll = 1 - 1e-9;
  if (!(keys > 0)) return 0;
  if (!errors_.empty()) {
    const double whole = std::round(keys);
    while (static_cast<double>(errors_.size()) <= whole && errors_.back() < kAll) add_a_key();
    return whole < static_cast<double>(errors_.size()) ? errors_[static_cast<std::size_t>(whole)]
                                                       : 1;
  }
  const double throws = probes_ * keys;
  const double one = std::log1p(-1 / bits_), two = std::log1p(-2 / bits_);
  const double zero = std::exp(throws * one);
  // (1 − 1/m)((1 − 2/m)^t − (1 − 1/m)^2t) + (z − z²)/m, without the difference of nearly equal ones.
  const double variance = (1 - 1 / bits_) * zero * zero * std::expm1(throws * (two - 2 * one)) +
                          zero * (1 - zero) / bits_;
  return power_of_normal(1 - zero, std::sqrt(std::max(0.0, variance)), probes_);
}

}  // namespace sluice::model
