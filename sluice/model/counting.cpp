#include "sluice/model/counting.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::model {
namespace {

// ln C(n, k), factor by factor: for large n the difference of two lgammas has no digits left.
double log_ways(double n, unsigned k) {
  double sum = 0;
  for (unsigned i = 0; i < k; ++i) sum += std::log((n - i) / (i + 1.0));
  return sum;
}

}  // namespace

double counter_overflow(double counters, unsigned probes, double keys, unsigned limit) {
  const double throws = probes * keys;
  if (throws < limit) return 0;
  const double mean = throws / counters;
  const auto chance_of = [&](unsigned raised) {
    return std::exp(log_ways(throws, raised) - raised * std::log(counters) +
                    (throws - raised) * std::log1p(-1 / counters));
  };
  double sum = 0;
  if (limit <= mean) {
    // Few values are below the limit, and falling from it: the rest is above.
    double term = chance_of(limit - 1);
    for (double raised = limit - 1; raised >= 0 && term > 1e-17 * sum; --raised) {
      sum += term;
      term *= raised * (counters - 1) / (throws - raised + 1);
    }
    return 1 - std::min(sum, 1.0);
  }
  // Past the mean, terms fall: stop where they no longer count.
  double term = chance_of(limit);
  for (double raised = limit; raised <= throws && term > 1e-17 * sum; ++raised) {
    sum += term;
    term *= (throws - raised) / ((raised + 1) * (counters - 1));
  }
  return std::min(sum, 1.0);
}

double counting_overflow_bound(double counters, unsigned probes, double keys, unsigned limit) {
  const double throws = probes * keys;
  if (throws < limit) return 0;
  const double log_bound = log_ways(throws, limit) - (limit - 1.0) * std::log(counters);
  return std::min(1.0, std::exp(log_bound));
}

double counting_overflow_worst(double counters, unsigned limit) {
  const double each = std::numbers::e * std::numbers::ln2 / limit;
  return std::min(1.0, counters * std::pow(each, limit));
}

}  // namespace sluice::model
