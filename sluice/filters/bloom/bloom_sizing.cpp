#include "sluice/filters/bloom/bloom_sizing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/model/bloom.hpp"

namespace sluice {

unsigned best_bloom_probes(double fpr) {
  return static_cast<unsigned>(
      std::clamp(std::round(-std::log2(fpr)), 1.0, double{model::kMostProbes}));
}

BloomSize bloom_size(std::string_view filter, const BloomWish& wish, std::uint64_t step,
                     std::uint64_t most) {
  BloomSize size;
  size.probes = static_cast<unsigned>(wish.probes.value_or(best_bloom_probes(wish.fpr)));
  const std::uint64_t keys = wish.keys.value_or(wish.standard_keys);
  if (wish.places) {
    size.places = std::max<std::uint64_t>(*wish.places / step, 1) * step;
    const double places = static_cast<double>(size.places);
    if (wish.keys && !wish.probes)
      size.probes = model::bloom_probes(places, static_cast<double>(keys));
    // Even a hopeless table holds a key.
    size.capacity = wish.keys ? keys
                              : static_cast<std::uint64_t>(std::max(
                                    1.0, model::bloom_keys(places, size.probes, wish.fpr)));
    return size;
  }
  const double steps = model::bloom_bits(size.probes, static_cast<double>(keys), wish.fpr) /
                       static_cast<double>(step);
  // Before it becomes a whole number that could wrap.
  if (!(steps <= static_cast<double>(most / step)))
    throw BadParameters(
        fmt::format("filter '{}' would need more than 64 TiB for that many keys at that error: "
                    "lower `keys`, or raise `fpr`",
                    filter));
  size.places = static_cast<std::uint64_t>(std::ceil(steps)) * step;
  size.capacity = keys;
  return size;
}

}  // namespace sluice
