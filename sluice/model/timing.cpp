#include "sluice/model/timing.hpp"

#include <algorithm>
#include <cmath>

#include "sluice/model/bloom.hpp"

namespace sluice::model {
namespace {

std::uint64_t ceil_divide(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0);
}

}  // namespace

unsigned timing_bits(unsigned probes) {
  return std::max(probes, 3u);
}

std::uint64_t timing_timers(std::uint64_t window, double bits_a_key, unsigned timer_bits) {
  return static_cast<std::uint64_t>(static_cast<double>(window) * bits_a_key / timer_bits);
}

std::uint64_t timing_padding(std::uint64_t timers, unsigned probes, std::uint64_t block) {
  // In two steps, as k·B may not fit: ⌈⌈m/k⌉/B⌉ = ⌈m/(kB)⌉.
  const std::uint64_t rounds = ceil_divide(ceil_divide(timers, probes), block);
  return rounds == 0 ? 0 : rounds - 1;
}

TimingShape timing_shape(std::uint64_t window, std::uint64_t timers, unsigned probes,
                         unsigned bits) {
  const std::uint64_t numbers = std::uint64_t{1} << bits;
  const auto shape_of = [&](std::uint64_t block) {
    return TimingShape{block, ceil_divide(window, block), timing_padding(timers, probes, block)};
  };
  const auto fits = [&](const TimingShape& shape) {
    return shape.generations + 3 + shape.padding <= numbers;
  };
  // Generations and padding fall as blocks grow.
  std::uint64_t least = 1, most = window;
  while (least < most) {
    const std::uint64_t middle = least + (most - least) / 2;
    if (fits(shape_of(middle)))
      most = middle;
    else
      least = middle + 1;
  }
  TimingShape shape = shape_of(least);
  if (!fits(shape)) shape.padding = numbers - 3 - shape.generations;
  return shape;
}

double timing_fpr(double timers, unsigned probes, double live) {
  return bloom_fpr(timers, probes, live);
}

double timing_mean_fpr(double timers, unsigned probes, double block, unsigned generations) {
  // Smooth in the fill: Simpson's rule over a few intervals is exact to many digits.
  constexpr int kIntervals = 16;
  double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double weight = i == 0 || i == kIntervals ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * timing_fpr(timers, probes, block * (generations + double(i) / kIntervals));
  }
  return sum / (3 * kIntervals);
}

double timing_timers_for(unsigned probes, double live, double fpr) {
  return bloom_bits(probes, live, fpr);
}

}  // namespace sluice::model
