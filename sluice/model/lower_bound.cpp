#include "sluice/model/lower_bound.hpp"

#include <algorithm>
#include <cmath>

namespace sluice::model {

double set_lower_bound_bits(double fpr) {
  return -std::log2(fpr);
}

double window_lower_bound_bits(double fpr, double slack) {
  const double bits = -std::log2(fpr);
  const double loglog = bits > 1 ? std::log2(bits) : 0;
  return bits + std::max(loglog, -std::log2(std::min(slack, 1.0)));
}

double set_lower_bound_fpr(double bits) {
  return std::exp2(-bits);
}

double window_lower_bound_fpr(double bits, double slack) {
  // In log₂(1/ε), by which the bound rises.
  double low = 1, high = std::max(bits, 1.0);
  for (int step = 0; step < 200 && high - low > 1e-15 * high; ++step) {
    const double middle = low + (high - low) / 2;
    (window_lower_bound_bits(std::exp2(-middle), slack) < bits ? low : high) = middle;
  }
  return std::exp2(-low);
}

}  // namespace sluice::model
