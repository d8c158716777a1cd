// What the slack of a planned window costs: records held back although their key is older than the window.
#pragma once

#include "sluice/plan/plan.hpp"

namespace sluice {

struct SlackCost {
  // Records held back past the window for each that is let through, if a key comes again at random
  // moments (a Poisson process).
  double lost = 0;
  // Whether keys that come again after exactly that interval are held back past the window too, until
  // their generation has left: up to every second record.
  bool periodic = false;
};

// `interval`: the mean time, or number of records let through, from one record of a key to the next; it
// must be of the plan's kind of window, a count or a time that slides. Throws BadParameters.
SlackCost slack_cost(const Plan& plan, const WindowSpec& interval);

}  // namespace sluice
