// Texts without their case: ASCII, and Unicode's simple folding (case_folding_table.hpp) of what is
// valid UTF-8. Other bytes stay as they are. Simple folding takes one character to one: ẞ becomes ß,
// but neither becomes ss, and Turkish dotless i has no rule of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

// Folding makes two bytes three at most.
constexpr std::size_t most_folded_bytes(std::size_t size) noexcept {
  return size + size / 2;
}

// Whether folding may change the text: it has capitals of ASCII, or bytes beyond ASCII.
bool may_fold(std::string_view text) noexcept;
bool is_ascii(std::string_view text) noexcept;

// Writes the folded text to a place with room for most_folded_bytes; returns where it ends.
char* fold_case(std::string_view text, char* to) noexcept;

std::uint32_t folded(std::uint32_t code) noexcept;

}  // namespace sluice
