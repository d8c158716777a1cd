// What filters that forget at random have in common: how far back they remember, in keys.
//
// `caught(d)` is the chance that a key is judged duplicate when it repeats after d other keys. It
// falls from 1 to the false-positive rate, with which even a key never seen is caught. What is left
// when that is taken out, (caught − fpr) / (1 − fpr), is the chance that the filter still remembers
// the key: a distribution of distances, with a mean and a median.
#pragma once

#include <cmath>

namespace sluice::model {

struct ForgettingPlan {
  unsigned filters = 0;      // probes a key
  double fpr = 0;            // the lasting error, on keys that are all new
  double mean_distance = 0;  // keys after which one is forgotten, on average
  double half_distance = 0;  // keys after which half of them are forgotten
};

// The distances behind `caught`, which has all but settled at `settled` keys. Simpson's rule: the
// functions here are sums of exponentials, and these steps give six digits.
template <class Caught>
void measure_forgetting(const Caught& caught, double settled, ForgettingPlan& plan) {
  constexpr int kSteps = 8192;
  const auto remembered = [&](double distance) {
    return (caught(distance) - plan.fpr) / (1 - plan.fpr);
  };
  double sum = remembered(0) + remembered(settled);
  for (int step = 1; step < kSteps; ++step)
    sum += (step % 2 == 1 ? 4 : 2) * remembered(settled * step / kSteps);
  plan.mean_distance = sum * settled / kSteps / 3;
  double low = 0, high = settled;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (remembered(middle) > 0.5 ? low : high) = middle;
  }
  plan.half_distance = high;
}

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

}  // namespace sluice::model
