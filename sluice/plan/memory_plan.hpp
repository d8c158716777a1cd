// What to remember when memory is all that is known: `--memory 64MiB` and nothing else.
//
// An endless stream does not fit, so something must be forgotten. Two ways compete at the error
// asked for: the longest recent past that fits, remembered for sure (cohort), or every key for a
// random while (reservoir). They are compared by the distance, in keys, at which a repeat is still
// recognised: for cohort the window, for reservoir the mean. Where repeats lie far apart, the
// share of them that is caught is in proportion to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice {

struct MemoryPlan {
  std::uint64_t memory = 0;             // the budget, for the whole process
  std::string filter;                   // name and settings, for make_filter
  std::optional<std::uint64_t> window;  // remembers the last so many keys; none: forgets at random
  std::uint64_t bytes = 0;              // the filter's part of it
  double window_keys = 0;               // what cohort would remember, for sure
  double random_keys = 0;               // how far reservoir would remember, in the mean
  std::string reason;                   // which was chosen and why, in a sentence
};

// What the process takes beside its filter: code and libraries, buffers for records, and the
// chunks in which state is saved. The same on every run, or a state file would not be found to
// agree.
inline constexpr std::uint64_t kProcessBytes = std::uint64_t{8} << 20;
inline constexpr std::uint64_t kLeastMemory = kProcessBytes + (std::uint64_t{1} << 20);
inline constexpr std::uint64_t kMostMemory = std::uint64_t{32} << 40;

// `memory` is for the whole process. Throws BadParameters when it is less than kLeastMemory or more
// than kMostMemory.
MemoryPlan plan_for_memory(std::uint64_t memory, double fpr);

}  // namespace sluice
