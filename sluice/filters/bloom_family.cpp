#include "sluice/filters/bloom_family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/filters/blocked_bloom.hpp"
#include "sluice/filters/bloom.hpp"
#include "sluice/model/bloom.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 44;

// A blocked filter is preferred until it takes this many times the bits of a classical one: between
// 10⁻⁷ (1.5) and 10⁻⁸ (1.7), where memory begins to outweigh one cache line instead of twenty.
constexpr double kBlockedAtMost = 1.6;

constexpr std::string_view kLayouts[] = {"blocked", "classic"};

constexpr ParameterInfo kBloomParameters[] = {
    {"layout", "where a key's bits lie: in one cache line, or anywhere", "blocked or classic",
     "blocked, from an fpr of about 1e-8 down classic"},
    {"bytes", "size of the table", "64 to 64TiB", "what keys and fpr need"},
    {"probes", "bits a key", "blocked: 8 or 16; classic: 1 to 64", "the best for the size"},
    {"keys", "distinct keys it is planned for", "1 to 2^44", "--expect; 8M, or what bytes hold"},
    {"fpr", "the error it is planned for", "above 0, below 1", "--fpr"},
};

// A capacity that a table of a given size turned out to have; even a hopeless one holds a key.
std::uint64_t capacity_of(double keys) {
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(keys), 1);
}

// A size that the model asks for, before it becomes a whole number that could wrap.
std::uint64_t whole_size(double size, double most) {
  if (!(size <= most))
    throw BadParameters(
        "filter 'bloom' would need more than 64 TiB for that many keys at that error: lower "
        "--expect, "
        "or raise --fpr");
  return static_cast<std::uint64_t>(std::ceil(size));
}

struct BloomWish {
  double fpr;
  std::optional<std::uint64_t> keys;
  std::optional<std::uint64_t> bytes;
  std::optional<std::uint64_t> probes;
  double planned_keys() const { return static_cast<double>(keys.value_or(kStandardCapacity)); }
};

unsigned best_blocked_probes(const BloomWish& wish) {
  if (wish.probes) return static_cast<unsigned>(*wish.probes);
  if (wish.bytes && wish.keys) {
    const double blocks = static_cast<double>(*wish.bytes) / 64;
    const double keys = static_cast<double>(*wish.keys);
    return model::blocked_bloom_fpr(blocks, 8, keys) <= model::blocked_bloom_fpr(blocks, 16, keys)
               ? 8
               : 16;
  }
  return model::blocked_bloom_blocks(8, 1e6, wish.fpr) <=
                 model::blocked_bloom_blocks(16, 1e6, wish.fpr)
             ? 8
             : 16;
}

AnyFilter make_blocked(const BloomWish& wish) {
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
  return AnyFilter(BlockedBloom::make(params));
}

// At the optimum every probe halves the error.
unsigned best_classic_probes(double fpr) {
  return static_cast<unsigned>(
      std::clamp(std::round(-std::log2(fpr)), 1.0, double{model::kMostProbes}));
}

AnyFilter make_classic(const BloomWish& wish) {
  Bloom::Params params;
  params.target_fpr = wish.fpr;
  params.probes = static_cast<unsigned>(wish.probes.value_or(best_classic_probes(wish.fpr)));
  if (wish.bytes) {
    params.bits = std::max<std::uint64_t>(*wish.bytes / 8, 1) * 64;
    const double bits = static_cast<double>(params.bits);
    if (wish.keys && !wish.probes) params.probes = model::bloom_probes(bits, wish.planned_keys());
    params.capacity =
        wish.keys ? *wish.keys : capacity_of(model::bloom_keys(bits, params.probes, wish.fpr));
  } else {
    const double bits = model::bloom_bits(params.probes, wish.planned_keys(), wish.fpr);
    params.bits = whole_size(bits / 64, static_cast<double>(kMostBytes / 8)) * 64;
    params.capacity = wish.keys.value_or(kStandardCapacity);
  }
  return AnyFilter(Bloom::make(params));
}

}  // namespace

std::span<const ParameterInfo> bloom_parameters() {
  return kBloomParameters;
}

AnyFilter make_bloom(const Wish& wish, const Settings& settings) {
  const SettingsReader reader("bloom", settings, kBloomParameters);
  BloomWish asked{.fpr = reader.probability("fpr").value_or(wish.fpr),
                  .keys = wish.keys,
                  .bytes = reader.size("bytes", 64, kMostBytes),
                  .probes = reader.count("probes", 1, model::kMostProbes)};
  if (const auto keys = reader.count("keys", 1, kMostKeys)) asked.keys = keys;
  const auto layout = reader.choice("layout", kLayouts);
  if (layout) return *layout == "classic" ? make_classic(asked) : make_blocked(asked);
  const double classic = model::bloom_bits(best_classic_probes(asked.fpr), 1e6, asked.fpr);
  const double blocked = 512 * std::min(model::blocked_bloom_blocks(8, 1e6, asked.fpr),
                                        model::blocked_bloom_blocks(16, 1e6, asked.fpr));
  return blocked <= kBlockedAtMost * classic ? make_blocked(asked) : make_classic(asked);
}

}  // namespace sluice
