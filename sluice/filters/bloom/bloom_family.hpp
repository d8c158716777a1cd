// The name `bloom`: which layout, how many bytes and probes for what a person asked for.
#pragma once

#include "sluice/filters/any_filter.hpp"
#include "sluice/filters/forecast.hpp"

namespace sluice {

std::span<const ParameterInfo> bloom_parameters();

// Classical or blocked, sized from keys and fpr, or from bytes. Throws BadParameters.
AnyFilter make_bloom(const Wish& wish, const Settings& settings, MemoryResource& memory);
Forecast forecast_bloom(const Wish& wish, const Settings& settings);

}  // namespace sluice
