// Whole powers, which std::pow takes several times as long for.
#pragma once

namespace sluice::model {

// By squaring: a few units in the last place off.
constexpr double power_of(double base, unsigned exponent) noexcept {
  double power = 1;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 == 1) power *= base;
  return power;
}

}  // namespace sluice::model
