#include "sluice/plan/slack_cost.hpp"

#include <algorithm>
#include <cmath>

namespace sluice {

// At the end of a generation npws says how much of the past window is remembered: half a generation more
// than on average. A repeat in that time is lost; with `refreshed` it restarts the window, and so may be
// followed by another.
SlackCost slack_cost(const Plan& plan, const WindowSpec& interval) {
  if (interval.kind == WindowSpec::Kind::landmark || interval.size == 0)
    throw BadParameters("`repeat_every` takes a number of records or a time: 100k or 10m");
  if (!plan.window || plan.window->kind != interval.kind)
    throw BadParameters(
        "`repeat_every` and `window` must both be numbers of records, or both times");
  const double generations =
      std::max(1u, Window::forecast(plan.window_params(), true).generations.value_or(1));
  const double kept = std::max(0.0, plan.npws - 0.5 / generations);
  const double ratio = static_cast<double>(interval.size) / static_cast<double>(plan.window->size);
  return {.lost = plan.anchor == Anchor::refreshed ? std::expm1(kept / ratio) : kept / ratio,
          .periodic = ratio >= 1 && ratio < 1 + plan.slack};
}

}  // namespace sluice
