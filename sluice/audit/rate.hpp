// A counted error rate with its confidence interval.
#pragma once

#include <optional>
#include <string>

namespace sluice {

// Counts need not be whole numbers: older counts of a sample that was halved have less weight.
struct Rate {
  double errors = 0;
  double trials = 0;

  // The Wilson score interval at 95 % (Wilson 1927): the rates under which these counts are not
  // unlikely. Within [0, 1] and never empty; all of [0, 1] without a trial.
  double low() const noexcept;
  double high() const noexcept;
  // Empty if no error was counted: then the rate is below high(), but not necessarily 0.
  std::optional<double> value() const noexcept;
};

// "5.1e-02 (4.8e-02 to 5.4e-02)"; "< 3.8e-05" where no error was seen; "unknown" without a trial.
std::string describe(const Rate& rate);

}  // namespace sluice
