// What a filter will be, before it is made: its size, errors and costs when it holds what it is
// planned for. Each filter's parameters tell it without a table; plan/ compares them.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/filters/settings.hpp"

namespace sluice {

struct Forecast {
  // Keys it is planned for: of a window filter those of a window, of one that forgets at random
  // the distance after which a key is forgotten, in the mean.
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;  // what FilterStats::bytes says at most, until it holds more keys
  double fpr = 0;           // chance that a key never seen is judged duplicate, when it is full
  // Its standard deviation from one filter to the next of the same parameters: chance fills small
  // tables unevenly.
  double fpr_spread = 0;
  // Chance that a key is let through when it repeats after as many others as were asked for. Only
  // of filters that forget at random.
  double fnr = 0;
  // Cache lines that observe of a new key touches, on average; lines next to each other, as a sweep
  // reads them, do not count.
  double lines = 0;
  std::optional<unsigned> generations = {};  // of window filters
  double slack = 0, npws = 0;                // the same; as shares of the window
  Settings settings = {};                    // all parameters, as made
};

}  // namespace sluice
