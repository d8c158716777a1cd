#include "sluice/audit/rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/quantity.hpp"

namespace sluice {
namespace {

// The normal distribution's two-sided 95 %.
constexpr double kZ = 1.959963984540054;

// `side` is -1 for the lower end and 1 for the upper.
double wilson(const Rate& rate, double side) noexcept {
  const double share = rate.errors / rate.trials;
  const double z2 = kZ * kZ / rate.trials;
  const double spread = kZ * std::sqrt(share * (1 - share) / rate.trials + z2 / (4 * rate.trials));
  return std::clamp((share + z2 / 2 + side * spread) / (1 + z2), 0.0, 1.0);
}

}  // namespace

double Rate::low() const noexcept {
  return errors > 0 ? wilson(*this, -1) : 0;
}

double Rate::high() const noexcept {
  return trials > 0 && errors < trials ? wilson(*this, 1) : 1;
}

std::optional<double> Rate::value() const noexcept {
  if (!(errors > 0)) return std::nullopt;
  return errors / trials;
}

std::string describe(const Rate& rate) {
  if (!(rate.trials > 0)) return "unknown";
  if (!rate.value()) return fmt::format("< {}", format_probability(rate.high()));
  return fmt::format("{} ({} to {})", format_probability(*rate.value()),
                     format_probability(rate.low()), format_probability(rate.high()));
}

}  // namespace sluice
