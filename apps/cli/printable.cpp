#include "printable.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace sluice::cli {

// Of Latin-1 (U+0080 to U+009F), which some terminals obey, the ends of lines and paragraphs (U+2028,
// U+2029), and those that change the direction of the text after them: U+061C, U+200E, U+200F, U+202A to U+202E,
// U+2066 to U+2069.
bool is_control(std::string_view character) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(character[at]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2)
    return (byte(0) == 0xc2 && byte(1) < 0xa0) || (byte(0) == 0xd8 && byte(1) == 0x9c);
  if (character.size() != 3 || byte(0) != 0xe2) return false;
  return (byte(1) == 0x80 &&
          (byte(2) == 0x8e || byte(2) == 0x8f || (byte(2) >= 0xa8 && byte(2) <= 0xae))) ||
         (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
}

namespace {

std::string escaped(char byte) {
  if (byte == '\n') return "\\n";
  if (byte == '\r') return "\\r";
  if (byte == '\t') return "\\t";
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
}

}  // namespace

std::uint32_t utf8_code(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  std::uint32_t code = first & (0x7fu >> character.size());
  for (const char byte : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(byte) & 0x3fu);
  return code;
}

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2   ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (const char byte : text.substr(1, length - 1))
    if ((static_cast<unsigned char>(byte) & 0xc0) != 0x80) return 0;
  const std::uint32_t code = utf8_code(text.substr(0, length));
  // An overlong form, half of a surrogate pair, or beyond Unicode.
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool sound = code >= kLeast[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return sound ? length : 0;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || is_control(character))
      for (const char byte : character) out += escaped(byte);
    else
      out += character;
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace sluice::cli
