// Into how many generations a window is cut.
#pragma once

#include <optional>

#include "sluice/window/spec.hpp"

namespace sluice {

// About the fewest generations with which a key is kept at most `share` of the window too long, by
// a filter that keeps keys up to one generation too long. Nothing when they would be more than a
// million: kTooFine says so.
std::optional<unsigned> generations_for(const WindowSpec& window, double share);
inline constexpr const char* kTooFine =
    "`slack` and `npws` cannot be that small: give 1.7 % or more";

}  // namespace sluice
