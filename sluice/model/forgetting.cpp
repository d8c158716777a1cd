#include "sluice/model/forgetting.hpp"

#include <limits>

#include "sluice/model/power.hpp"

namespace sluice::model {

double bits_caught(unsigned filters, double fill, double scale, double distance) {
  return std::pow(fill + (1 - fill) * std::exp(-distance / scale), filters);
}

double bits_distance(unsigned filters, double fill, double scale, double fnr) {
  // Of the part that fades, what is left: 1 − (1 − (1 − fnr)^{1/k}) / (1 − fill).
  const double faded = std::expm1(std::log1p(-fnr) / filters) / (1 - fill);
  return faded > -1 ? -scale * std::log1p(faded) : std::numeric_limits<double>::infinity();
}

// caught is a sum over how many of the bits have been touched since: the term in which i have not
// is C(k,i) (1 − fill)^i fill^{k−i} e^{−id/scale}, and its integral over d has scale/i.
double bits_mean_distance(unsigned filters, double fill, double scale) {
  if (fill <= 0 || fill >= 1) return 0;
  const double fpr = power_of(fill, filters), odds = (1 - fill) / fill;
  double term = fpr, sum = 0;
  for (unsigned i = 1; i <= filters; ++i) {
    term *= odds * (filters - i + 1) / i;
    sum += term / i;
  }
  return sum * (scale / (1 - fpr));
}

ForgettingPlan bits_memory(unsigned filters, double fill, double scale) {
  ForgettingPlan plan{.filters = filters,
                      .fpr = power_of(fill, filters),
                      .mean_distance = bits_mean_distance(filters, fill, scale)};
  if (fill <= 0 || fill >= 1) return plan;
  const double half = std::pow((1 + plan.fpr) / 2, 1.0 / filters);
  plan.half_distance = -scale * std::log((half - fill) / (1 - fill));
  return plan;
}

}  // namespace sluice::model
