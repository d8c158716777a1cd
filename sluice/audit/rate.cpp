#include "sluice/audit/rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/quantity.hpp"

namespace sluice {
namespace {

Rate::Estimate estimate_of(const Rate& rate) noexcept {
  if (rate.estimate) return *rate.estimate;
  return {.share = rate.errors / rate.trials, .independent = rate.trials};
}

// `side` is -1 for the lower end and 1 for the upper.
double wilson(const Rate::Estimate& of, double side) noexcept {
  const double z2 = of.quantile * of.quantile / of.independent;
  if (!std::isfinite(z2)) return side < 0 ? 0 : 1;  // as good as no trial
  const double spread = of.quantile * std::sqrt(of.share * (1 - of.share) / of.independent +
                                                z2 / (4 * of.independent));
  return std::clamp((of.share + z2 / 2 + side * spread) / (1 + z2), 0.0, 1.0);
}

// A quantile of the gamma distribution with this mean and variance, by the cube of a normal one (Wilson and
// Hilferty 1931). From a shape of 1 on within 1 % at the upper end; the lower end is too low for few hits.
double gamma_quantile(double mean, double variance, double side) noexcept {
  if (!(variance > 0)) return mean;
  const double ninth = variance / (9 * mean * mean);
  const double root = 1 - ninth + side * kNormal95 * std::sqrt(ninth);
  return root > 0 ? mean * root * root * root : 0;
}

}  // namespace

// Where most are hits, it is the misses that are few.
Interval interval95(double share, double variance, double one_more) noexcept {
  if (share > 0.5) {
    const Interval misses = interval95(1 - share, variance, one_more);
    return {.low = 1 - misses.high, .high = 1 - misses.low};
  }
  return {.low = std::clamp(gamma_quantile(share, variance, -1), 0.0, share),
          .high = std::clamp(gamma_quantile(share + one_more, variance + one_more * one_more, 1),
                             share, 1.0)};
}

double student95(double freedom) noexcept {
  constexpr double z = kNormal95, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  const double n = std::max(1.0, freedom);
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

double Rate::low() const noexcept {
  if (estimate && estimate->ends) return estimate->ends->low;
  return errors > 0 ? wilson(estimate_of(*this), -1) : 0;
}

double Rate::high() const noexcept {
  if (!(trials > 0)) return 1;
  const Estimate of = estimate_of(*this);
  if (of.ends) return of.ends->high;
  return of.share < 1 ? wilson(of, 1) : 1;
}

std::optional<double> Rate::value() const noexcept {
  if (!(errors > 0)) return std::nullopt;
  return estimate_of(*this).share;
}

std::string describe(const Rate& rate) {
  if (!(rate.trials > 0)) return "unknown";
  if (!rate.value()) return fmt::format("< {}", format_probability(rate.high()));
  return fmt::format("{} ({} to {})", format_probability(*rate.value()),
                     format_probability(rate.low()), format_probability(rate.high()));
}

}  // namespace sluice
