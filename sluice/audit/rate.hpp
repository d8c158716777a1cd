// An error rate that was counted, and how far it can be trusted.
#pragma once

#include <optional>
#include <string>

namespace sluice {

// Counts need not be whole: those of a sample that became smaller have less weight.
struct Rate {
  double errors = 0;
  double trials = 0;

  // The Wilson score interval at 95 % (Wilson 1927): of all rates those by which the counts are not
  // unlikely. Between 0 and 1, and never empty: without a trial it is all of that.
  double low() const noexcept;
  double high() const noexcept;
  // Nothing where no error was counted: the rate is then below high(), which is not to say 0.
  std::optional<double> value() const noexcept;
};

// "5.1e-02 (4.8e-02 to 5.4e-02)"; "< 3.8e-05" where no error was seen; "unknown" without a trial.
std::string describe(const Rate& rate);

}  // namespace sluice
