// Text that others chose (file names, keys, headers, labels), made safe to show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::cli {

// How many bytes the UTF-8 character takes that `text` begins with; 0 when it is none.
std::size_t utf8_length(std::string_view text);

// One line that leaves a terminal alone: control characters and bytes that are no UTF-8 are written
// as \n, \t or \x1b.
std::string printable(std::string_view text);

}  // namespace sluice::cli
