// What a person probably meant who typed a word that does not exist.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::cli {

// The word that `typed` begins, or that a few slips of the fingers away is: a letter too many, too
// few or wrong, or two exchanged. Nothing if none is near, or if it begins several.
std::optional<std::string> probably_meant(std::string_view typed,
                                          std::span<const std::string> words);

}  // namespace sluice::cli
