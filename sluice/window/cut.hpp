// Into how many generations a window is cut.
#pragma once

#include "sluice/window/spec.hpp"

namespace sluice {

// About the fewest generations with which a key is kept at most `share` of the window too long, by
// a filter that keeps keys up to one generation too long. Throws BadParameters when they would be
// more than a million.
unsigned generations_for(const WindowSpec& window, double share);

}  // namespace sluice
