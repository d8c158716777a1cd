// How far back filters that forget at random remember, in keys.
//
// `caught(d)` is the chance that a key is judged duplicate when it repeats after d other keys. It
// falls from 1 to the false-positive rate, with which even a key never seen is caught. Without that
// share, (caught − fpr) / (1 − fpr) is the chance that the filter still remembers the key: a
// distribution of distances, with a mean and a median.
#pragma once

#include <cmath>

namespace sluice::model {

struct ForgettingPlan {
  unsigned filters = 0;      // bits or cells per key
  double fpr = 0;            // the lasting error, on keys that are all new
  double mean_distance = 0;  // keys after which one is forgotten, on average
  double half_distance = 0;  // keys after which half of them are forgotten
  unsigned resets = 0;       // bits reset for each that is set
};

// A key has `filters` bits, each set with chance fill + (1 − fill)e^{−d/scale} after d keys.
double bits_caught(unsigned filters, double fill, double scale, double distance);
// The inverse in the distance: after how many keys a share of `fnr` is no longer judged duplicate.
// Infinite if so many never are.
double bits_distance(unsigned filters, double fill, double scale, double fnr);
// How far back such a filter remembers: on average, and with the rest.
double bits_mean_distance(unsigned filters, double fill, double scale);
ForgettingPlan bits_memory(unsigned filters, double fill, double scale);

// Chance that a repeat is caught on a stream that draws each record uniformly from `universe` keys:
// the distance to the last occurrence is then exponential with that mean. Integrated over the
// logarithm of the distance, as caught may fall anywhere from far below the mean to far above.
template <class Caught>
double caught_on_uniform(const Caught& caught, double universe) {
  constexpr double kStep = 1.0 / 64;
  double sum = 0;
  for (double log_time = -30; log_time < 4; log_time += kStep) {
    const double time = std::exp(log_time);
    sum += std::exp(-time) * time * caught(time * universe);
  }
  return sum * kStep;
}

// On such a stream a bit or cell is written as often as the keys that have it come. The mean of
// alive(others) over the number of other keys that share it, which is Poisson; for many keys, alive
// at the mean is close enough.
template <class Alive>
double over_sharing_keys(double mean, const Alive& alive) {
  if (mean > 300) return alive(mean);
  const auto until = static_cast<int>(mean + 9 * std::sqrt(mean) + 12);
  double chance = std::exp(-mean), sum = 0;
  for (int others = 0; others <= until; ++others) {
    sum += chance * alive(others);
    chance *= mean / (others + 1);
  }
  return sum;
}

}  // namespace sluice::model
