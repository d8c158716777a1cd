#include "sluice/model/forgetting.hpp"

#include "sluice/model/power.hpp"

namespace sluice::model {

double bits_caught(unsigned filters, double fill, double scale, double distance) {
  return std::pow(fill + (1 - fill) * std::exp(-distance / scale), filters);
}

// caught is a sum over how many of the bits have been touched since: the term in which i have not
// is C(k,i) (1 − fill)^i fill^{k−i} e^{−id/scale}, and its integral over d has scale/i.
ForgettingPlan bits_memory(unsigned filters, double fill, double scale) {
  ForgettingPlan plan{.filters = filters, .fpr = power_of(fill, filters)};
  if (fill <= 0 || fill >= 1) return plan;
  double term = plan.fpr;
  for (unsigned i = 1; i <= filters; ++i) {
    term *= (1 - fill) / fill * (filters - i + 1) / i;
    plan.mean_distance += term / i;
  }
  plan.mean_distance *= scale / (1 - plan.fpr);
  const double half = std::pow((1 + plan.fpr) / 2, 1.0 / filters);
  plan.half_distance = -scale * std::log((half - fill) / (1 - fill));
  return plan;
}

}  // namespace sluice::model
