// Least-cost verdicts (Dautrich & Ravishankar 2013, §2.6).
#pragma once

#include <optional>

#include "sluice/base/verdict.hpp"

namespace sluice {

// Sums of costs stay numbers.
inline constexpr double kMostCost = 1e12;

// What the two errors cost, in any one unit: from 0 to kMostCost.
struct Costs {
  double lost = 1;       // a distinct event held back
  double duplicate = 1;  // a duplicate let through

  // Throws BadParameters.
  void check() const;
};

// To hold back is wrong with chance 1 − posterior, to let through with chance posterior: the
// cheaper of the two, `duplicate` where they cost the same.
inline Verdict least_cost(double posterior, const Costs& costs) noexcept {
  return costs.lost * (1 - posterior) <= costs.duplicate * posterior ? Verdict::duplicate
                                                                     : Verdict::distinct;
}

struct Judgement {
  Verdict verdict = Verdict::distinct;
  // The chance that the key is in the window; nothing where the filter knows a trace of it and no
  // prior was given.
  std::optional<double> posterior = {};
};

}  // namespace sluice
