#include "sluice/infer/age_posteriors.hpp"

#include <algorithm>
#include <cassert>

namespace sluice {

void AgePosteriors::prepare(const Cohort& filter, const CohortReader& reader,
                            const Pace& pace) noexcept {
  ages_ = filter.generations() + 1;
  assert(ages_ < kMostAges);
  for (std::size_t age = 0; age <= ages_; ++age) {
    inside_[age] = beyond_[age] = 0;
    length_[age] = 1;
    if (age == ages_) break;
    const model::AgeEvidence seen = reader.of_age(filter, static_cast<unsigned>(age), pace);
    // Expired, or younger than anything can be.
    if (seen.from >= pace.window || seen.to <= seen.from) continue;
    inside_[age] = std::min(seen.to, pace.window) - seen.from;
    length_[age] = seen.to - seen.from;
    beyond_[age] = seen.beyond;
  }
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
