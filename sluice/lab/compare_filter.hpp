// The filters of a comparison: each gets the same memory, and the best parameters for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/filters/any_filter.hpp"
#include "sluice/window/spec.hpp"

namespace sluice {

// What all filters of a comparison share.
struct CompareWish {
  Wish wish = {};
  std::optional<WindowSpec> window = {};
  // For a time window: keys to plan for; without it, the window grows.
  std::optional<std::uint64_t> window_keys = {};
  std::optional<std::uint64_t> memory = {};  // bytes
};

// Makes the filter of `name_and_settings`; a window filter gets the window, if there is one. With
// `memory`, a filter of fixed size has at most that many bytes in all, and as close to it as its
// layout permits, unless its settings give another size. A window is then planned for the smallest
// error that its filter can have in that memory, unless the settings give one. A time window may
// grow beyond it if more keys come than planned. Throws BadParameters.
AnyFilter make_compared(std::string_view name_and_settings, const CompareWish& wish);

// Whether --memory decides its size.
bool memory_decides(std::string_view name_and_settings, const CompareWish& wish);

}  // namespace sluice
