// When a request cannot be met: the nearest ones that can, each relaxing one field as little as
// possible.
#pragma once

#include "sluice/plan/sizing.hpp"

namespace sluice::planning {

std::vector<NearRequest> nearest_to(const PlanRequest& request, WindowForecasts& windows);
// "no filter can do `window` 1M `fpr` 1e-06 `memory` 3MiB; the nearest requests that can be met: …".
std::string why_none(const PlanRequest& request, const std::vector<NearRequest>& nearest);

// 9.5MiB: as a person writes it, no less than `bytes`, and nearly as little.
std::string size_of_at_least(std::uint64_t bytes);

// " (the process itself takes 13 MiB)", or nothing if it is all for the filter.
std::string taken_beside(const PlanRequest& request);

}  // namespace sluice::planning
