#include "repro/guo/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/error.hpp"

namespace sluice::repro::guo {
namespace {

constexpr double kMostBits = 1e7, kMostKeys = 1e5;

}  // namespace

model::DynamicShape shape_of(const Context& context) {
  const model::DynamicShape shape{static_cast<double>(context.whole("m")), context.whole("k"),
                                  static_cast<double>(context.whole("c"))};
  if (shape.bits < 64 || std::fmod(shape.bits, 64) != 0 || shape.bits > kMostBits)
    throw BadParameters(fmt::format("--set m={:.0f}: give a multiple of 64, to 10 M", shape.bits));
  if (shape.probes < 1 || shape.probes > 24)
    throw BadParameters(fmt::format("--set k={}: give 1 to 24", shape.probes));
  if (shape.capacity < 1 || shape.capacity > kMostKeys)
    throw BadParameters(fmt::format("--set c={:.0f}: give 1 to 100000", shape.capacity));
  if (!(model::filter_fpr(shape, shape.capacity) < 0.999))
    throw BadParameters(
        fmt::format("--set: {:.0f} keys with k = {} set all of {:.0f} bits; give a larger m or a "
                    "smaller c",
                    shape.capacity, shape.probes, shape.bits));
  return shape;
}

unsigned rounds_of(const Context& context) {
  const unsigned rounds = context.whole("rounds");
  if (rounds == 0) throw BadParameters("--set rounds=0: give 1 or more");
  return rounds;
}

Dynamic dynamic_of(const model::DynamicShape& shape, bool forget) {
  using Ask = Dynamic::Ask;
  return Dynamic::make({.bits = static_cast<std::uint64_t>(shape.bits),
                        .probes = shape.probes,
                        .capacity = static_cast<std::uint64_t>(shape.capacity),
                        .target_fpr = model::filter_fpr(shape, shape.capacity),
                        .forget = forget,
                        .ask = forget ? Ask::always : Ask::by_rule});
}

Bloom standard_of(double bits, unsigned probes, double keys) {
  return Bloom::make({.bits = static_cast<std::uint64_t>(bits),
                      .probes = probes,
                      .capacity = static_cast<std::uint64_t>(std::max(keys, 1.0)),
                      .target_fpr = 0.01});
}

Tolerance of_formula(double expected, unsigned rounds) {
  constexpr double kAsked = 2000, kSpread = 0.15;
  const double p = std::clamp(expected, 1e-6, 1.0);
  const double variance = ((1 - p) / (p * kAsked) + kSpread * kSpread) / rounds;
  return {std::max(0.05, 3 * std::sqrt(variance)), true};
}

Digest next_key(SplitMix64& random) {
  const std::uint64_t lo = random.next();
  return {lo, random.next()};
}

}  // namespace sluice::repro::guo
