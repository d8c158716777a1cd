#include "sluice/infer/costs.hpp"

#include <fmt/format.h>

#include "sluice/base/error.hpp"

namespace sluice {

void Costs::check() const {
  const auto refuse = [](const char* name, double cost) {
    if (!(cost >= 0 && cost <= kMostCost))
      throw BadParameters(
          fmt::format("the cost of {} is {}: it must be from 0 to {:g}", name, cost, kMostCost));
  };
  refuse("a lost event", lost);
  refuse("a passed duplicate", duplicate);
  if (lost == 0 && duplicate == 0)
    throw BadParameters("both errors cost nothing: give one of them a cost above 0");
}

}  // namespace sluice
