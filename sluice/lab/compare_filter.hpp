// The filters of a comparison: at equal memory, each as good as it can be in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/filters/any_filter.hpp"
#include "sluice/window/spec.hpp"

namespace sluice {

// What all filters of a comparison have in common.
struct CompareWish {
  Wish wish = {};
  std::optional<WindowSpec> window = {};
  // Of a window of time: how many keys to plan for; without it, it grows as they come.
  std::optional<std::uint64_t> window_keys = {};
  std::optional<std::uint64_t> memory = {};  // bytes
};

// The filter that `name_and_settings` says, within a window if it is a window filter and there is
// one. With `memory`, one of a fixed size has at most that many bytes, all counted, and as near to
// them as its layout permits, unless its settings say another size. A window is then planned for
// the least error that its filter can have in them, unless the settings say which. A window of time
// may grow beyond when more keys come than were planned for. Throws BadParameters.
AnyFilter make_compared(std::string_view name_and_settings, const CompareWish& wish);

// Whether --memory decides about its size.
bool memory_decides(std::string_view name_and_settings, const CompareWish& wish);

}  // namespace sluice
