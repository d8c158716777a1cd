// How much a test does: SLUICE_COUNTS is `short` under ./dev test and `full` under ./dev soak.
#pragma once

#include <cstdlib>
#include <string_view>

namespace sluice::testing_support {

inline bool full_counts() {
  const char* counts = std::getenv("SLUICE_COUNTS");
  return counts != nullptr && std::string_view(counts) == "full";
}

// How many of something this run of the tests does.
template <class Count>
Count count_of(Count brief, Count full) {
  return full_counts() ? full : brief;
}

}  // namespace sluice::testing_support
