// When a request cannot be met: the nearest ones that can, each relaxing one field as little as
// possible.
#pragma once

#include "sluice/plan/sizing.hpp"

namespace sluice::planning {

std::vector<NearRequest> nearest_to(const PlanRequest& request, WindowForecasts& windows);
// "`window` 1M at `fpr` 1e-06 does not fit into `memory` 9MiB; the nearest requests that can be met: …".
std::string why_none(const PlanRequest& request, const std::vector<NearRequest>& nearest);

// " (the process itself takes 12 MiB)", or nothing if it is all for the filter.
std::string taken_beside(const PlanRequest& request);

}  // namespace sluice::planning
