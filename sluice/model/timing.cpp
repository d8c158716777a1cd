#include "sluice/model/timing.hpp"

#include <algorithm>
#include <cmath>

#include "sluice/model/bloom.hpp"

namespace sluice::model {
namespace {

std::uint64_t ceil_divide(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0);
}

// Sizes are a little more than they have to be, so that the error is no more than asked for.
constexpr double kRounding = 1e-10;
constexpr double kMostTouched = 1 - 1e-9;

}  // namespace

unsigned timing_bits(unsigned probes) {
  return std::max(probes, 3u);
}

std::uint64_t timing_timers(std::uint64_t window, double bits_per_key, unsigned timer_bits) {
  return static_cast<std::uint64_t>(static_cast<double>(window) * bits_per_key / timer_bits);
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

double window_live_share(double touched, unsigned probes, double live) {
  double share = -std::expm1(live * std::log1p(-touched));
  for (int round = 0; round < 100; ++round) {
    const double all = std::pow(share, probes);
    if (all > 0.999) return share;
    const double written = 1 - all;
    const double while_live = touched * (1 - all / share) / written;
    const double expired = touched / written;
    const double untouched = std::exp(live * std::log1p(-while_live));
    const double time_expired = untouched / expired;
    // One probe: a live timer means a duplicate, which is not written, so it lives its time once.
    const double time_live = while_live > 0 ? (1 - untouched) / while_live : live;
    const double next = time_live / (time_live + time_expired);
    if (std::abs(next - share) < 1e-14) return next;
    share = next;
  }
  return share;
}

double timing_window_fpr(double timers, unsigned probes, double live) {
  if (live <= 0) return 0;
  const double touched = -std::expm1(probes * std::log1p(-1 / std::max(timers, 1.000001)));
  return std::pow(window_live_share(touched, probes, live), probes);
}

// window_live_share is a fixed point: with the share given, all but `touched` is known, and the
// equation can be solved for it.
double window_touched(double share, unsigned probes, double live) {
  const double all = std::pow(share, probes), written = 1 - all;
  // How often a timer is written while it is live, and after: as multiples of `touched`.
  const double while_live = (1 - all / share) / written, expired = 1 / written;
  if (!(while_live > 0)) return share / ((1 - share) * live * expired);
  const double untouched = (1 - share) * expired / ((1 - share) * expired + share * while_live);
  return -std::expm1(std::log(untouched) / live) / while_live;
}

double timing_timers_for(unsigned probes, double live, double fpr) {
  const double touched = window_touched(std::pow(fpr, 1.0 / probes), probes, live);
  return -(1 + kRounding) / std::expm1(std::log1p(-std::min(touched, kMostTouched)) / probes);
}

}  // namespace sluice::model
