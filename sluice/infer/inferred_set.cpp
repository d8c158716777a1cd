#include "sluice/infer/inferred_set.hpp"

#include "sluice/model/posterior.hpp"

namespace sluice {

template <class F>
InferredSet<F>::InferredSet(F filter, std::uint64_t arrivals)
    : filter_(std::move(filter)), arrivals_(arrivals) {
  weigh();
}

// The error rises slowly: once for every 64th part more arrivals is enough.
template <class F>
void InferredSet<F>::weigh() {
  fpr_ = filter_.stats().predicted_fpr;
  next_weigh_ = arrivals_ + arrivals_ / 64 + 64;
}

template <class F>
double InferredSet<F>::posterior_of(const Prior& prior) const noexcept {
  if (prior.kind == Prior::Kind::arrival)
    return model::classic_posterior(prior.chance, static_cast<double>(arrivals_), fpr_);
  return prior.chance / (prior.chance + (1 - prior.chance) * fpr_);
}

template <class F>
std::optional<double> InferredSet<F>::posterior(const Digest& digest,
                                                const Prior& prior) const noexcept {
  if (!filter_.may_contain(digest)) return 0.0;
  if (!prior.known()) return std::nullopt;
  return posterior_of(prior);
}

template <class F>
Judgement InferredSet<F>::observe(const Digest& digest, const Prior& prior, const Costs& costs) {
  Judgement judgement{filter_.observe(digest), std::nullopt};
  if (judgement.verdict == Verdict::distinct) {
    judgement.posterior = 0;
  } else if (prior.known()) {
    const double posterior = posterior_of(prior);
    judgement = {least_cost(posterior, costs), posterior};
  }
  if (++arrivals_ >= next_weigh_) weigh();
  return judgement;
}

template class InferredSet<Bloom>;
template class InferredSet<BlockedBloom>;

}  // namespace sluice
