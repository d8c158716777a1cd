#include "sluice/infer/age_posteriors.hpp"

#include <algorithm>
#include <cassert>

namespace sluice {

void AgePosteriors::prepare(const Cohort& filter, const CohortReader& reader,
                            const Pace& pace) noexcept {
  ages_ = filter.generations() + 1;
  assert(ages_ < kMostAges);
  // As CohortReader::of_age, in few steps: this is done for every hundred keys or so. A generation
  // begins `from` ticks ago, and what is not of the window is surely outside.
  for (unsigned age = 0; age < ages_; ++age) {
    const double from = age == 0 ? 0 : (age - 1) * pace.block + pace.position;
    const double length = age == 0 ? pace.position : pace.block;
    const bool possible = from < pace.window && length > 0;
    inside_[age] = possible ? std::min(length, pace.window - from) : 0;
    length_[age] = possible ? length : 1;
    beyond_[age] = possible ? reader.touched(filter, age) : 0;
  }
  inside_[ages_] = beyond_[ages_] = 0;
  length_[ages_] = 1;
}

void AgePosteriors::judge_all(const Prior& prior, const Costs& costs, double tail) noexcept {
  for (std::size_t age = 0; age <= ages_; ++age) {
    if (!prior.known()) {
      judgements_[age] = {Verdict::duplicate, std::nullopt};
      continue;
    }
    const double posterior = within(age, tail);
    judgements_[age] = {least_cost(posterior, costs), posterior};
  }
}

}  // namespace sluice
