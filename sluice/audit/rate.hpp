// A measured error rate with its confidence interval.
#pragma once

#include <optional>
#include <string>

namespace sluice {

// The normal distribution's two-sided 95 %.
inline constexpr double kNormal95 = 1.959963984540054;

// Student's t at 97.5 % for `freedom` degrees of freedom, by its expansion around the normal
// distribution (Fisher and Cornish 1960): within 1 % from 3 on, and too small below.
double student95(double freedom) noexcept;

// An interval at 95 % for a rate.
struct Interval {
  double low = 0, high = 1;
};
// For a weighted sum of hits with this mean and variance; one hit more would add `one_more`.
Interval interval95(double share, double variance, double one_more) noexcept;

// Counts need not be whole numbers: older counts of a sample that was halved have less weight.
struct Rate {
  // For counts of events that are not independent: the best estimate, and how uncertain it is.
  struct Estimate {
    double share = 0;
    double independent = 0;             // as many independent trials would be as uncertain
    double quantile = kNormal95;        // of the error's distribution; larger if few keys erred
    std::optional<Interval> ends = {};  // if it is known; the two above do not count then
  };

  double errors = 0;
  double trials = 0;
  std::optional<Estimate> estimate = {};  // none: the trials are independent

  // The interval of the estimate, or the Wilson score interval at 95 % (Wilson 1927): the rates under which these counts are not
  // unlikely. Within [0, 1] and never empty; all of [0, 1] without a trial.
  double low() const noexcept;
  double high() const noexcept;
  // Empty if no error was counted: then the rate is below high(), but not necessarily 0.
  std::optional<double> value() const noexcept;
};

// "5.1e-02 (4.8e-02 to 5.4e-02)"; "< 3.8e-05" where no error was seen; "unknown" without a trial.
std::string describe(const Rate& rate);

}  // namespace sluice
