#include "sluice/infer/inferred_set.hpp"

namespace sluice {

template <class F>
InferredSet<F>::InferredSet(F filter, std::uint64_t arrivals)
    : filter_(std::move(filter)), posteriors_(arrivals) {
  posteriors_.weigh(filter_);
}

template <class F>
std::optional<double> InferredSet<F>::posterior(const Digest& digest,
                                                const Prior& prior) const noexcept {
  if (!filter_.may_contain(digest)) return 0.0;
  if (!prior.known()) return std::nullopt;
  return posteriors_.of(prior);
}

template <class F>
Judgement InferredSet<F>::observe(const Digest& digest, const Prior& prior, const Costs& costs) {
  Judgement judgement{filter_.observe(digest), std::nullopt};
  if (judgement.verdict == Verdict::distinct) {
    judgement.posterior = 0;
  } else if (prior.known()) {
    const double posterior = posteriors_.of(prior);
    judgement = {least_cost(posterior, costs), posterior};
  }
  posteriors_.arrive();
  posteriors_.weigh(filter_);
  return judgement;
}

template class InferredSet<Bloom>;
template class InferredSet<BlockedBloom>;

}  // namespace sluice
