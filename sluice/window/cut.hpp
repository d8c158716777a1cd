// Into how many generations a window is cut.
#pragma once

#include <optional>

#include "sluice/window/spec.hpp"

namespace sluice {

// About the fewest with which a filter that keeps keys for one generation too long keeps none longer than
// `share` of the window too long. None when they would be more than a million: kTooFine.
std::optional<unsigned> generations_for(const WindowSpec& window, double share);
inline constexpr const char* kTooFine =
    "`slack` and `npws` cannot be that small: give 1.7 % or more";

}  // namespace sluice
