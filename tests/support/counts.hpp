// How much a test does: SLUICE_COUNTS is `short` under ./dev test and `full` under ./dev soak.
#pragma once

#include <cstdlib>
#include <string_view>

namespace sluice::testing_support {

inline bool full_counts() {
  const char* counts = std::getenv("SLUICE_COUNTS");
  return counts != nullptr && std::string_view(counts) == "full";
}

// Under the address or the thread sanitizer. GCC says so with macros, Clang with features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// How many of something this run of the tests does.
template <class Count>
Count count_of(Count brief, Count full) {
  return full_counts() ? full : brief;
}

// And where a sanitizer takes too long for that: it looks for bad accesses and races on a path, so fewer
// rounds of the same path are enough for it. It must still be every path. With full counts it does what
// the optimized build does with short ones.
template <class Count>
Count count_of(Count sanitized, Count brief, Count full) {
  return kSanitized ? count_of(sanitized, brief) : count_of(brief, full);
}

}  // namespace sluice::testing_support
