// Sizes that cannot wrap around: arithmetic on what a person or a file asked for.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/error.hpp"

namespace sluice {

// `what` names the size in the error, e.g. "the table of filter 'bloom'".
inline std::uint64_t checked_multiply(std::uint64_t a, std::uint64_t b, const char* what) {
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    throw BadParameters(std::string(what) + " would not fit in 64 bits: ask for less");
  return result;
}

inline std::uint64_t checked_add(std::uint64_t a, std::uint64_t b, const char* what) {
  std::uint64_t result = 0;
  if (__builtin_add_overflow(a, b, &result))
    throw BadParameters(std::string(what) + " would not fit in 64 bits: ask for less");
  return result;
}

}  // namespace sluice
