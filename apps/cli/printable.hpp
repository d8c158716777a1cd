// Text that others chose (file names, keys, headers, labels), made safe to show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::cli {

// How many bytes the UTF-8 character takes that `text` begins with; 0 when it is none.
std::size_t utf8_length(std::string_view text);
// Its number, of all the bytes of one.
std::uint32_t utf8_code(std::string_view character);

// Of one UTF-8 character: control characters, also those of Latin-1 (U+0080 to U+009F), the ends of lines and
// paragraphs, and those that change the direction of the text after them.
bool is_control(std::string_view character);

// One line that leaves a terminal alone: control characters and bytes that are no UTF-8 are written
// as \n, \t or \x1b.
std::string printable(std::string_view text);

}  // namespace sluice::cli
