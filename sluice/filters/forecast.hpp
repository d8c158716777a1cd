// What a filter will be, before it is made: its size, errors and costs when it holds what it is
// planned for. Each filter's parameters tell it without a table; plan/ compares them.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/base/memory_resource.hpp"
#include "sluice/filters/settings.hpp"

namespace sluice {

struct Forecast {
  // Keys it is planned for. Window filters: keys per window. Filters that forget at random: how
  // many later keys a key survives, on average.
  std::uint64_t keys = 0;
  // Upper limit of FilterStats::bytes, up to that many keys, in a resource that counts what is asked
  // for (the default one); bytes_in() tells it for others. It lies in this many tables and some small
  // blocks.
  std::uint64_t bytes = 0;
  std::uint64_t tables = 1;
  std::uint64_t paged_bytes = 0;  // the same where tables are of pages, if that is more
  double fpr = 0;  // chance that a key never seen is judged duplicate, when it is full
  // Standard deviation of fpr between filters with the same parameters: chance fills small tables
  // unevenly.
  double fpr_spread = 0;
  // Chance that a repeat is let through when it comes after the requested number of other keys.
  // Only for filters that forget at random.
  double fnr = 0;
  // Cache lines that observing a new key touches, on average; sequential lines of a sweep do not
  // count.
  double lines = 0;
  std::optional<unsigned> generations = {};  // window filters only
  double slack = 0, npws = 0;                // window filters; shares of the window
  Settings settings = {};                    // all parameters, as made
};

// The same limit in a resource with these costs.
std::uint64_t bytes_in(const Forecast& forecast, const BlockCosts& costs) noexcept;

}  // namespace sluice
