// One row of the catalogue: all that the planner, the snapshots and the tests know about a filter
// by name. Adding a filter is adding a row (HACKING.md): everything else goes through the rows.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/base/checked.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice {

// How to read a snapshot of this kind; `generations` as for decode_filter().
struct KindInfo {
  FilterKind kind;
  std::uint16_t version;
  AnyFilter (*decode)(Decoder& header, Decoder& payload, MemoryResource& memory,
                      std::optional<unsigned> generations);
};

// What the planner tries a filter for: a set of a known number of keys, one of any number, a
// window, or an endless stream in given memory.
enum class Role { set, growing_set, window, forgetting };

// A filter and layout. The first of a role is the default, and is chosen if it is feasible.
struct PlanFamily {
  Role role;
  std::string_view text;
  bool many_shapes = false;  // its slack depends on its shape: the planner tries several
  bool by_parts = false;     // each part of the window has room of its own: keys must come evenly

  bool forgets() const { return role == Role::forgetting; }  // at random: it has false negatives
};

// A snapshot whose bytes are pinned in tests/golden/FILE.snapshot, and a fuzz seed: one for each
// kind, layout and version, of a few hundred bytes or a few thousand. FILE ends with the version.
struct GoldenSample {
  std::string_view file;
  std::string_view filter;
  bool highway = false;  // keys hashed by HighwayHash instead of XXH3
};

// A case whose cost bench/guard.tsv records.
struct GuardSample {
  std::string_view name;
  std::string_view filter;
  double fpr;
  bool every_level = false;  // has kernels of its own for each instruction set
  bool uneven = false;       // has other work beside its keys: generations end, a table grows
  bool grows = false;        // is measured from empty on
};

// What the planner asks of a filter that forgets at random, as it would be made for a wish with keys.
struct ForgettingInfo {
  // With `fnr` of repeats after `distance` others; a brief one without settings.
  Forecast (*forecast)(const Wish& wish, double distance);
  // After how many others a share of `fnr` of repeats is let through.
  double (*distance)(const Wish& wish, double fnr);
};

struct FilterRow {
  std::span<const KindInfo> kinds;
  std::span<const PlanFamily> families = {};
  const ForgettingInfo* forgetting = nullptr;  // with a family of Role::forgetting
  // For tests/conformance: each size and layout, in cache and out of it, with room for 20,000 keys.
  std::span<const std::string_view> conformance = {};
  // Window filters, each planned for 2000 keys per window or more; and filters that may lose keys
  // on purpose.
  std::span<const std::string_view> windows = {}, forgetful_windows = {};
  // For tests of memory: each layout in more than 1 MiB, with room for 400,000 keys in a generation.
  std::span<const std::string_view> large = {};
  std::span<const GoldenSample> golden = {};
  std::span<const GuardSample> guard = {};
};

// Whether it is made for windows, as far as its name tells, without planning it: of those of shards only
// their own settings tell. Throws BadParameters when there is no such filter.
bool may_age(std::string_view name_and_settings);

// --- For the sources that hold the rows

std::vector<FilterInfo> set_rows();
std::vector<FilterInfo> window_rows();

template <Filter... F>
inline constexpr KindInfo kKinds[] = {
    {F::kKind, F::kVersion,
     [](Decoder& header, Decoder& payload, MemoryResource& memory,
        [[maybe_unused]] std::optional<unsigned> generations) {
       if constexpr (requires { F::decode(header, payload, memory, generations); })
         return AnyFilter(F::decode(header, payload, memory, generations));
       else
         return AnyFilter(F::decode(header, payload, memory));
     }}...};

template <Filter F>
AnyFilter make_from(const Wish& wish, const Settings& settings, MemoryResource& memory) {
  return AnyFilter(F::make(F::Params::from(wish, settings), memory));
}

// For a filter in its holder: the most that AnyFilter::bytes() will return.
template <Filter F>
Forecast in_holder(Forecast forecast) {
  forecast.bytes = checked_add(forecast.bytes, AnyFilter::holder_bytes<F>(), "a filter");
  return forecast;
}

template <Filter F>
Forecast forecast_of(const Wish& wish, const Settings& settings) {
  const auto params = F::Params::from(wish, settings);
  if constexpr (requires { params.brief_forecast(); }) {
    return in_holder<F>(wish.brief ? params.brief_forecast() : params.forecast());
  } else if constexpr (requires { params.forecast(); }) {
    return in_holder<F>(params.forecast());
  } else {
    if (wish.keys) return in_holder<F>(params.forecast(static_cast<double>(*wish.keys)));
    // If no distance is asked for, report the one that it remembers on average.
    return in_holder<F>(params.forecast(static_cast<double>(params.forecast(1).keys)));
  }
}

template <Filter F>
inline constexpr ForgettingInfo kForgetting = {
    .forecast =
        [](const Wish& wish, double distance) {
          const auto params = F::Params::from(wish, {});
          return in_holder<F>(wish.brief ? params.brief_forecast(distance)
                                         : params.forecast(distance));
        },
    .distance = [](const Wish& wish,
                   double fnr) { return F::Params::from(wish, {}).distance_of(fnr); }};

}  // namespace sluice
