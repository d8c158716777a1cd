// How many distinct keys are among j arrivals: D(j) of Dautrich & Ravishankar 2013, §2.5.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::model {

// Eq. 15 for a uniform stream over `keys` keys, which is eq. 16: U (1 − (1 − 1/U)^j).
double uniform_distinct(double keys, double arrivals);

// Eq. 15 for the power law p_x = 1/(x H_U), x = 1 … U: summed term by term up to x = 2^13, beyond
// that as an integral that is within 1e-8 of the sum.
double power_law_distinct(std::uint64_t keys, double arrivals);

// The same by eq. 17, j/H (1 − γ + ln(U H / j)). Holds for 1 ≪ j ≪ U H only: D(1) is not 1, and it
// falls once j passes U H.
double power_law_distinct_limit(double keys, double arrivals);

// H_n = 1 + 1/2 + … + 1/n.
double harmonic(double n);

// D as a function to be asked often.
class DistinctKeys {
 public:
  struct Point {
    double arrivals;
    double distinct;
  };

  // Every arrival counts as a new key, D(j) = j: what holds inside a window where only delivered
  // events are inserted.
  DistinctKeys() = default;
  static DistinctKeys uniform(double keys);
  static DistinctKeys power_law(std::uint64_t keys);
  // Straight lines between points on a log-log plot (eq. 18), from (1, 1) on; beyond the last point
  // D stays. Points ascend in both. Throws BadParameters.
  static DistinctKeys measured(std::span<const Point> points);

  double operator()(double arrivals) const noexcept;

 private:
  std::vector<Point> logs_;  // of the points
  double uniform_ = 0;       // keys of a uniform stream
};

}  // namespace sluice::model
