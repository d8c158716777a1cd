#include "sluice/filters/bloom/bloom_family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <variant>

#include "sluice/base/error.hpp"
#include "sluice/filters/bloom/blocked_bloom.hpp"
#include "sluice/filters/bloom/bloom.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/offered.hpp"
#include "sluice/model/small_bloom.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kFewestBytes = 64;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;

// A blocked filter is preferred until it takes this many times the bits of a classical one: between
// 10⁻⁷ (1.5) and 10⁻⁸ (1.7), where memory begins to outweigh one cache line instead of twenty.
constexpr double kBlockedAtMost = 1.6;

constexpr std::string_view kLayouts[] = {"blocked", "classic"};

constexpr ParameterInfo kBloomParameters[] = {
    {"layout", "where a key's bits lie: in one cache line, or anywhere", "blocked or classic",
     "blocked; classic for an fpr below about 1e-8"},
    {"bytes", "size of the table", "64 to 64TiB", "what keys and fpr need"},
    {"probes", "bits per key", "blocked: 8 or 16; classic: 1 to 64", "the best for the size"},
    {"keys", "distinct keys it is planned for", "1 to 2^44", "`keys`; 8M, or what bytes hold"},
    {"fpr", "the error it is planned for", "above 0, below 1", "`fpr`"},
};

// The capacity that follows from a given table size; at least one key.
std::uint64_t capacity_of(double keys) {
  return static_cast<std::uint64_t>(std::clamp(keys, 1.0, static_cast<double>(kMostBloomKeys)));
}

// A size from the model, checked before it becomes an integer that could wrap.
std::uint64_t whole_size(double size, double most) {
  if (!(size <= most))
    throw BadParameters(
        "filter 'bloom' would need more than 64 TiB for that many keys at that error: lower "
        "`keys`, or raise `fpr`");
  return static_cast<std::uint64_t>(std::ceil(size));
}

struct Asked {
  double fpr;
  std::optional<std::uint64_t> keys;
  std::optional<std::uint64_t> bytes;
  std::optional<std::uint64_t> probes;
  double planned_keys() const { return static_cast<double>(keys.value_or(kStandardCapacity)); }
};

// How many keys a block holds at an error, with the better number of probes.
struct Load {
  unsigned probes;
  double keys;
};
// From this error on eight probes hold more keys, below it sixteen: where model::blocked_bloom_keys
// is the same of both. The test compares them.
constexpr double kEightProbesFrom = 1.6455986846435e-4;
constexpr unsigned blocked_probes(double fpr) {
  return fpr >= kEightProbesFrom ? 8 : 16;
}
Load blocked_load(double fpr) {
  const unsigned probes = blocked_probes(fpr);
  return {probes, model::blocked_bloom_keys(1, probes, fpr)};
}

unsigned best_blocked_probes(const Asked& wish) {
  if (wish.probes) return static_cast<unsigned>(*wish.probes);
  if (wish.bytes && wish.keys) {
    const double blocks = static_cast<double>(*wish.bytes) / 64;
    const double keys = static_cast<double>(*wish.keys);
    return model::blocked_bloom_fpr(blocks, 8, keys) <= model::blocked_bloom_fpr(blocks, 16, keys)
               ? 8
               : 16;
  }
  return blocked_probes(wish.fpr);
}

BlockedBloom::Params blocked_for(const Asked& wish) {
  BlockedBloom::Params params;
  params.target_fpr = wish.fpr;
  params.probes = best_blocked_probes(wish);
  if (params.probes != 8 && params.probes != 16)
    throw BadParameters(fmt::format(
        "parameter 'probes' of filter 'bloom' is {}: with layout=blocked it takes 8 or 16",
        params.probes));
  params.blocks =
      wish.bytes
          ? std::max<std::uint64_t>(*wish.bytes / 64, 1)
          : whole_size(model::blocked_bloom_blocks(params.probes, wish.planned_keys(), wish.fpr),
                       static_cast<double>(kMostBytes / 64));
  const double blocks = static_cast<double>(params.blocks);
  params.capacity = wish.bytes && !wish.keys
                        ? capacity_of(model::blocked_bloom_keys(blocks, params.probes, wish.fpr))
                        : wish.keys.value_or(kStandardCapacity);
  return params;
}

Bloom::Params classic_for(const Asked& wish) {
  BloomWish asked{.fpr = wish.fpr,
                  .keys = wish.keys,
                  .probes = wish.probes,
                  .standard_keys = kStandardCapacity};
  if (wish.bytes) asked.places = *wish.bytes * 8;
  const BloomSize size = bloom_size("bloom", asked, 64, kMostBytes * 8);
  // A filter can be made again from its settings, so it is no smaller than may be asked for.
  return {.bits = std::max(size.places, kFewestBytes * 8),
          .probes = size.probes,
          .capacity = size.capacity,
          .target_fpr = wish.fpr};
}

using BloomParams = std::variant<Bloom::Params, BlockedBloom::Params>;

BloomParams params_for(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("bloom", settings, kBloomParameters);
  Asked asked{.fpr = reader.probability("fpr").value_or(wish.fpr),
              .keys = wish.keys,
              .bytes = reader.size("bytes", kFewestBytes, kMostBytes),
              .probes = reader.count("probes", 1, model::kMostProbes)};
  if (const auto keys = reader.count("keys", 1, kMostBloomKeys)) asked.keys = keys;
  const auto layout = reader.choice("layout", kLayouts);
  if (layout == "classic") return classic_for(asked);
  if (layout == "blocked") return blocked_for(asked);
  const double classic = model::bloom_bits(best_bloom_probes(asked.fpr), 1e6, asked.fpr);
  const double blocked = 512 * 1e6 / blocked_load(asked.fpr).keys;
  if (blocked <= kBlockedAtMost * classic) return blocked_for(asked);
  return classic_for(asked);
}

}  // namespace

std::span<const ParameterInfo> bloom_parameters() {
  return kBloomParameters;
}

AnyFilter make_bloom(const Wish& wish, const Settings& settings, MemoryResource& memory) {
  return std::visit(
      [&](const auto& params) {
        using Params = std::decay_t<decltype(params)>;
        if constexpr (std::is_same_v<Params, Bloom::Params>)
          return AnyFilter(Bloom::make(params, memory));
        else
          return AnyFilter(BlockedBloom::make(params, memory));
      },
      params_for(wish, settings));
}

Forecast forecast_bloom(const Wish& wish, const Settings& settings) {
  return std::visit(
      [](const auto& params) {
        using Params = std::decay_t<decltype(params)>;
        if constexpr (std::is_same_v<Params, Bloom::Params>)
          return in_holder<Bloom>(params.forecast());
        else
          return in_holder<BlockedBloom>(params.forecast());
      },
      params_for(wish, settings));
}

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
    size.capacity =
        wish.keys ? keys : capacity_of(model::bloom_keys(places, size.probes, wish.fpr));
    return size;
  }
  const double steps = model::bloom_bits(size.probes, static_cast<double>(keys), wish.fpr) /
                       static_cast<double>(step);
  // Checked before it becomes an integer that could wrap.
  if (!(steps <= static_cast<double>(most / step)))
    throw BadParameters(
        fmt::format("filter '{}' would need more than 64 TiB for that many keys at that error: "
                    "lower `keys`, or raise `fpr`",
                    filter));
  size.places = static_cast<std::uint64_t>(std::ceil(steps)) * step;
  size.capacity = keys;
  while (size.places <= kFewPlaces && classic_fpr(size.places, size.probes, keys) > wish.fpr)
    size.places += step;
  return size;
}

namespace {

double classic_fpr_at(std::uint64_t places, unsigned probes, double keys) {
  const auto bits = static_cast<double>(places);
  return places <= kFewPlaces ? model::SmallBloom(bits, probes).fpr(keys)
                              : model::bloom_fpr(bits, probes, keys);
}

}  // namespace

double classic_fpr(std::uint64_t places, unsigned probes, std::uint64_t keys) {
  return classic_fpr_at(places, probes, static_cast<double>(keys));
}

double classic_fpr_of_taken(std::uint64_t places, unsigned probes, std::uint64_t taken,
                            std::uint64_t most) {
  const double offered = model::offered_keys(static_cast<double>(taken), [&](double keys) {
    return model::bloom_fpr(static_cast<double>(places), probes, keys);
  });
  return classic_fpr_at(places, probes, std::min(offered, static_cast<double>(most)));
}

}  // namespace sluice
