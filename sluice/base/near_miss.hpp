// The name that a mistyped one was meant to be.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

// The name that takes the fewest edits (a letter added, left out or changed, two letters swapped;
// capitals cost nothing), if these are at most a third of its letters. The first of equally near
// ones.
std::optional<std::string_view> near_miss(std::string_view typed,
                                          std::span<const std::string> names);

}  // namespace sluice
