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

}  // namespace

double student95(double freedom) noexcept {
  constexpr double z = kNormal95, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  const double n = std::max(1.0, freedom);
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

double Rate::low() const noexcept {
  return errors > 0 ? wilson(estimate_of(*this), -1) : 0;
}

double Rate::high() const noexcept {
  if (!(trials > 0)) return 1;
  const Estimate of = estimate_of(*this);
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
