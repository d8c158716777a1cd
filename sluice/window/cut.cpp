#include "sluice/window/cut.hpp"

#include <algorithm>
#include <cmath>

namespace sluice {

std::optional<unsigned> generations_for(const WindowSpec& window, double share) {
  constexpr double kMostGenerations = 1e6;
  double generations = std::ceil(1 / share);
  if (!(generations <= kMostGenerations)) return std::nullopt;
  if (window.by_time()) return static_cast<unsigned>(generations);
  // A generation of a count window is a whole number of keys: rounding up makes a small window
  // longer, so that it may take a finer cut.
  const auto size = static_cast<double>(window.size);
  const auto late = [&] {
    const double keys = std::ceil(size / generations);
    return (std::ceil(size / keys) + 1) * keys / size - 1;
  };
  constexpr double kRounding = 1e-9;
  // Nearly always one of the first few will do, and twice as many always do.
  for (int tries = 0; generations < size && late() > share + kRounding; ++tries)
    generations = std::min(size, generations + (tries < 64 ? 1 : std::ceil(generations / 256)));
  return static_cast<unsigned>(generations);
}

}  // namespace sluice
