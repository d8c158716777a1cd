// Into how many generations a window is cut.
#pragma once

#include "sluice/window/spec.hpp"

namespace sluice {

// About the fewest with which a filter that keeps keys for one generation too long keeps none longer than
// `share` of the window too long. Throws BadParameters when they would be more than a million.
unsigned generations_for(const WindowSpec& window, double share);

}  // namespace sluice
