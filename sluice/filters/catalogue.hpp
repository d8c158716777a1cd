// Every filter by name: the one place that knows them all.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "sluice/filters/any_filter.hpp"
#include "sluice/filters/forecast.hpp"

namespace sluice {

struct FilterRow;

struct FilterInfo {
  std::string_view name;
  std::string_view summary;  // what it is and when to choose it, in a sentence
  std::span<const ParameterInfo> parameters;
  AnyFilter (*make)(const Wish& wish, const Settings& settings, MemoryResource& memory);
  // Describes what make would make, without making it. Its `bytes` are those of the filter, without
  // the holder (any_filter.hpp). Throws BadParameters as make does, except for a few parameters
  // that only make refuses; never throws NoMemory.
  Forecast (*forecast)(const Wish& wish, const Settings& settings);
  const FilterRow* row;  // what the planner and the tests know of it: catalogue_row.hpp
};

// All filters, in the order in which to show them.
std::span<const FilterInfo> catalogue();

// Throws BadParameters, listing the existing names, when there is no such filter.
const FilterInfo& filter_named(std::string_view name);

// Throws BadParameters for a wish that no filter can meet. FilterInfo's functions rely on it.
void check_wish(const Wish& wish);

// "bloom,layout=classic,probes=12": a name, then settings. Throws BadParameters and NoMemory.
AnyFilter make_filter(std::string_view name_and_settings, const Wish& wish,
                      MemoryResource& memory = default_memory());

Forecast forecast_filter(std::string_view name_and_settings, const Wish& wish);

// The name under which the catalogue makes filters of this kind.
std::string_view name_of(FilterKind kind) noexcept;

// Rebuilds a filter from what encode_header and encode_payload wrote. Throws CorruptSnapshot for a
// kind or version that this build does not know, and for fields that no filter could have written.
// `generations`: what it must have, if that is known: a filter with another number may be refused
// before it takes memory for them.
AnyFilter decode_filter(std::uint16_t kind, std::uint16_t version, Decoder& header,
                        Decoder& payload, MemoryResource& memory = default_memory(),
                        std::optional<unsigned> generations = {});

}  // namespace sluice
