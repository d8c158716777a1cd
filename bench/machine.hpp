// The machine that the figures were measured on, as far as it matters. No host names or paths.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice::bench {

// What, and its value: "processor", "Intel(R) Xeon(R) Processor".
std::vector<std::pair<std::string, std::string>> machine();

}  // namespace sluice::bench
