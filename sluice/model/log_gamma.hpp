// ln Γ(x), for several threads: std::lgamma also writes the sign of Γ(x) to a variable of the process.
#pragma once

#include <cmath>

namespace sluice::model {

inline double log_gamma(double x) noexcept {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

}  // namespace sluice::model
