// Text of fixed-width characters (Python's str, NumPy's U) as UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::python {

inline constexpr std::size_t kMostUtf8 = 4;  // bytes of a character

// Surrogates are halves of characters, which UTF-8 cannot write.
constexpr bool is_character(std::uint32_t code) noexcept {
  return code < 0xD800 || (code > 0xDFFF && code <= 0x10FFFF);
}

// `code` must be a character. Returns where it ends.
inline char* put_utf8(std::uint32_t code, char* to) noexcept {
  const auto tail = [code](unsigned shift) {
    return static_cast<char>(0x80 | ((code >> shift) & 0x3F));
  };
  if (code < 0x80) {
    *to++ = static_cast<char>(code);
  } else if (code < 0x800) {
    *to++ = static_cast<char>(0xC0 | (code >> 6));
    *to++ = tail(0);
  } else if (code < 0x10000) {
    *to++ = static_cast<char>(0xE0 | (code >> 12));
    *to++ = tail(6);
    *to++ = tail(0);
  } else {
    *to++ = static_cast<char>(0xF0 | (code >> 18));
    *to++ = tail(12);
    *to++ = tail(6);
    *to++ = tail(0);
  }
  return to;
}

}  // namespace sluice::python
