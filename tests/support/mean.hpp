// The mean of samples, and how far it can be trusted.
#pragma once

#include <cmath>
#include <vector>

namespace sluice::testing_support {

struct Measured {
  double mean, standard_error;
};

inline Measured mean_of(const std::vector<double>& samples) {
  const double count = static_cast<double>(samples.size());
  double sum = 0, squares = 0;
  for (const double sample : samples) sum += sample;
  for (const double sample : samples) squares += std::pow(sample - sum / count, 2);
  return {sum / count, std::sqrt(squares / (count - 1) / count)};
}

}  // namespace sluice::testing_support
