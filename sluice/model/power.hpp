// Integer powers, several times as fast as std::pow.
#pragma once

namespace sluice::model {

// By squaring; accurate to a few units in the last place.
constexpr double power_of(double base, unsigned exponent) noexcept {
  double power = 1;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 == 1) power *= base;
  return power;
}

}  // namespace sluice::model
