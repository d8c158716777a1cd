#include "sluice/filters/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/filters/apbf/apbbf.hpp"
#include "sluice/filters/apbf/apbf.hpp"
#include "sluice/filters/bloom/blocked_bloom.hpp"
#include "sluice/filters/bloom/bloom.hpp"
#include "sluice/filters/bloom/bloom_family.hpp"
#include "sluice/filters/cohort/cohort.hpp"
#include "sluice/filters/counting.hpp"
#include "sluice/filters/dynamic/dynamic.hpp"
#include "sluice/filters/exact/exact.hpp"
#include "sluice/filters/exact/exact_window.hpp"
#include "sluice/filters/growing/growing.hpp"
#include "sluice/filters/none.hpp"
#include "sluice/filters/reservoir.hpp"
#include "sluice/filters/sharded/sharded.hpp"
#include "sluice/filters/stable.hpp"
#include "sluice/filters/timing/timer.hpp"
#include "sluice/filters/timing/timing.hpp"

namespace sluice {
namespace {

template <Filter F>
AnyFilter make_from(const Wish& wish, const Settings& settings, MemoryResource& memory) {
  return AnyFilter(F::make(F::Params::from(wish, settings), memory));
}

template <Filter F>
Forecast forecast_of(const Wish& wish, const Settings& settings) {
  const auto params = F::Params::from(wish, settings);
  if constexpr (requires { params.brief_forecast(); }) {
    return wish.brief ? params.brief_forecast() : params.forecast();
  } else if constexpr (requires { params.forecast(); }) {
    return params.forecast();
  } else if constexpr (std::same_as<F, Dynamic>) {
    return params.forecast(wish.keys.value_or(std::max(params.capacity, kStandardCapacity)));
  } else {
    if (wish.keys) return params.forecast(static_cast<double>(*wish.keys));
    // Asked for no distance, tell of the one that it remembers in the mean.
    return params.forecast(static_cast<double>(params.forecast(1).keys));
  }
}

Forecast forecast_none(const Wish&, const Settings& settings) {
  SettingsReader("none", settings, {});
  return {.fnr = 1};
}

AnyFilter make_none(const Wish&, const Settings& settings, MemoryResource& memory) {
  SettingsReader("none", settings, {});
  return AnyFilter(None::make({}, memory));
}

// What a snapshot's kind means: one row a filter class.
struct KindInfo {
  FilterKind kind;
  std::uint16_t version;
  std::string_view name;
  AnyFilter (*decode)(Decoder& header, Decoder& payload, MemoryResource& memory);
};

template <Filter F>
constexpr KindInfo kind_info(std::string_view name) {
  return {F::kKind, F::kVersion, name,
          [](Decoder& header, Decoder& payload, MemoryResource& memory) {
            return AnyFilter(F::decode(header, payload, memory));
          }};
}

constexpr KindInfo kKinds[] = {
    kind_info<Exact>("exact"),         kind_info<Bloom>("bloom"),
    kind_info<BlockedBloom>("bloom"),  kind_info<Counting>("counting"),
    kind_info<Dynamic>("dynamic"),     kind_info<Stable>("stable"),
    kind_info<Reservoir>("reservoir"), kind_info<Growing>("growing"),
    kind_info<Cohort>("cohort"),       kind_info<ExactWindow>("exact-window"),
    kind_info<Timing>("timing"),       kind_info<Timer>("timer"),
    kind_info<Apbf>("apbf"),           kind_info<Apbbf>("apbbf"),
    kind_info<Sharded>("sharded"),     kind_info<ShardedWindow>("sharded"),
    kind_info<None>("none"),
};

const KindInfo* find_kind(FilterKind kind) noexcept {
  const auto* found = std::ranges::find(kKinds, kind, &KindInfo::kind);
  return found == std::end(kKinds) ? nullptr : found;
}

}  // namespace

std::span<const FilterInfo> catalogue() {
  static const FilterInfo kFilters[] = {
      {"bloom",
       "a set of a known number of keys in bits: small, fast, and wrong at most at the rate asked "
       "for",
       bloom_parameters(), make_bloom, forecast_bloom},
      {"counting",
       "a set of a known number of keys in small counters: as bloom, and keys can be taken back",
       Counting::Params::known(), make_from<Counting>, forecast_of<Counting>},
      {"dynamic",
       "a set of any number of keys in a series of Bloom filters: grows, and forgets and merges if "
       "asked to",
       Dynamic::Params::known(), make_from<Dynamic>, forecast_of<Dynamic>},
      {"growing",
       "a set of any number of keys in fingerprints, table and all growing bucket by bucket: holds "
       "the rate asked for at every size",
       Growing::Params::known(), make_from<Growing>, forecast_of<Growing>},
      {"exact", "every key's digest: never wrong, and grows with the keys", Exact::Params::known(),
       make_from<Exact>, forecast_of<Exact>},
      {"cohort",
       "a sliding window of fingerprints stamped with generations: the default for windows",
       Cohort::Params::known(), make_from<Cohort>, forecast_of<Cohort>},
      {"exact-window", "every key's digest for as long as its window lasts: never wrong, any rate",
       ExactWindow::Params::known(), make_from<ExactWindow>, forecast_of<ExactWindow>},
      {"timing", "a sliding window of timestamps of few bits: for questions about age",
       Timing::Params::known(), make_from<Timing>, forecast_of<Timing>},
      {"timer",
       "a sliding window of delivery times: for slices over several sites, and late events",
       Timer::Params::known(), make_from<Timer>, forecast_of<Timer>},
      {"apbf", "a sliding window in plain bits, slice by slice: where a window is split over sites",
       ApbfParams::known(), make_from<Apbf>, forecast_of<Apbf>},
      {"apbbf",
       "a sliding window in blocks of bits: the fastest, in one cache line, where an error of 1 % "
       "will do",
       ApbbfParams::known(), make_from<Apbbf>, forecast_of<Apbbf>},
      {"reservoir",
       "an endless stream in fixed memory, forgetting at random: where repeats are far apart and "
       "one let through costs little",
       Reservoir::Params::known(), make_from<Reservoir>, forecast_of<Reservoir>},
      {"stable", "the same by another rule: the baseline that `reservoir` is compared with",
       Stable::Params::known(), make_from<Stable>, forecast_of<Stable>},
      {"sharded",
       "several filters of one kind, each for its share of the keys and on a thread of its own: "
       "where one thread cannot keep up",
       sharded_parameters(), make_sharded, forecast_sharded},
      {"none", "lets everything through: the baseline of benchmarks", {}, make_none, forecast_none},
  };
  return kFilters;
}

const FilterInfo& filter_named(std::string_view name) {
  const auto found = std::ranges::find(catalogue(), name, &FilterInfo::name);
  if (found != catalogue().end()) return *found;
  std::string names;
  for (const FilterInfo& info : catalogue())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  throw BadParameters(fmt::format("there is no filter '{}': there are {}", name, names));
}

namespace {

std::pair<const FilterInfo*, Settings> parsed(std::string_view name_and_settings) {
  const std::size_t comma = std::min(name_and_settings.find(','), name_and_settings.size());
  const FilterInfo& info = filter_named(name_and_settings.substr(0, comma));
  if (comma + 1 == name_and_settings.size())
    throw BadParameters(
        fmt::format("filter '{}': nothing follows the comma; parameters are written name=value,…",
                    name_and_settings));
  name_and_settings.remove_prefix(std::min(comma + 1, name_and_settings.size()));
  return {&info, Settings::parse(name_and_settings)};
}

}  // namespace

AnyFilter make_filter(std::string_view name_and_settings, const Wish& wish,
                      MemoryResource& memory) {
  const auto [info, settings] = parsed(name_and_settings);
  return info->make(wish, settings, memory);
}

Forecast forecast_filter(std::string_view name_and_settings, const Wish& wish) {
  const auto [info, settings] = parsed(name_and_settings);
  return info->forecast(wish, settings);
}

std::string_view name_of(FilterKind kind) noexcept {
  const KindInfo* info = find_kind(kind);
  if (kind == FilterKind::window) return "window";
  return info == nullptr ? "unknown" : info->name;
}

AnyFilter decode_filter(std::uint16_t kind, std::uint16_t version, Decoder& header,
                        Decoder& payload, MemoryResource& memory) {
  const KindInfo* info = find_kind(static_cast<FilterKind>(kind));
  if (info == nullptr)
    throw CorruptSnapshot(fmt::format(
        "this build knows no filter of kind {}: was it written by a newer sluice?", kind));
  if (version != info->version)
    throw CorruptSnapshot(fmt::format(
        "filter '{}' is of version {}, and this build reads version {}: was it written by "
        "a newer sluice?",
        info->name, version, info->version));
  return info->decode(header, payload, memory);
}

}  // namespace sluice
