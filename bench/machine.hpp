// What the figures were measured on, as far as it matters to them. Neither names nor places of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice::bench {

// What, and its value: "processor", "Intel(R) Xeon(R) Processor".
std::vector<std::pair<std::string, std::string>> machine();

}  // namespace sluice::bench
