#include "sluice/infer/inferred.hpp"

#include <limits>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

template <class F>
typename InferredWindow<F>::Params completed(const F& filter,
                                             typename InferredWindow<F>::Params params) {
  const std::uint64_t generations = filter.generations();
  if (params.window == 0 || generations == 0)
    throw BadParameters("inference takes a window of 1 or more, in 1 generation or more");
  if (params.block == 0) params.block = (params.window + generations - 1) / generations;
  if (params.block > params.window || params.block * generations < params.window)
    throw BadParameters(
        "the generations of the filter do not cover the window: take a longer block, or more of "
        "them");
  return params;
}

}  // namespace

template <class F>
InferredWindow<F>::InferredWindow(F filter, const Params& params)
    : filter_(std::move(filter)),
      params_(completed(filter_, params)),
      reader_(filter_, pace(), params_.anchor, params_.distinct, params_.printed),
      posteriors_(static_cast<double>(params_.window), static_cast<double>(params_.block),
                  filter_.generations(), params_.anchor),
      scratch_(std::make_unique<Scratch>()) {}

template <class F>
Pace InferredWindow<F>::pace() const noexcept {
  return {static_cast<double>(params_.window), static_cast<double>(params_.block),
          static_cast<double>(position_)};
}

template <class F>
void InferredWindow<F>::advance(std::uint64_t ticks) {
  ticks_ += static_cast<double>(ticks);
  position_ += ticks;
  if (position_ < params_.block) return;
  filter_.rotate();
  // Keys passed beyond the end belong to the next generation: the filter has no room for more.
  position_ -= params_.block;
  if (params_.anchor == Anchor::refreshed) return;
  if (outside_ > 0) writes_a_tick_ = arrivals_ / ticks_ * (outside_passed_ / outside_);
  if (ticks_ < static_cast<double>(params_.window)) return;
  for (double* recent : {&arrivals_, &ticks_, &outside_, &outside_passed_}) *recent /= 2;
}

template <class F>
void InferredWindow<F>::refuse_full() {
  throw BadParameters("the filter is full before its generation ends: plan it for more keys");
}

// Regardless of the filter's verdict.
template <class F>
void InferredWindow<F>::write_now(const Digest& digest) {
  Verdict unread;
  std::uint64_t budget = 1;
  if (filter_.admit(std::span(&digest, 1), std::span(&unread, 1), budget, Anchor::refreshed) == 1)
    return;
  // A batch may stop when it is full: what has a trace needs no more room.
  if (!filter_.admit_aged(digest, 0, Anchor::refreshed)) refuse_full();
}

template <class F>
double InferredWindow<F>::posterior_of(const model::AgeEvidence& evidence,
                                       const Prior& prior) noexcept {
  return posteriors_.within(prior, evidence, static_cast<double>(position_),
                            static_cast<double>(params_.window), writes_a_tick_);
}

template <class F>
Judgement InferredWindow<F>::judge(const std::optional<model::AgeEvidence>& evidence,
                                   const Prior& prior, const Costs& costs) noexcept {
  if (!evidence) return {Verdict::distinct, 0.0};
  if (!prior.known()) return {Verdict::duplicate, std::nullopt};
  return weigh(posterior_of(*evidence, prior), costs);
}

// With a prior that is learnt from what comes of it.
template <class F>
Judgement InferredWindow<F>::judge(const std::optional<model::AgeEvidence>& evidence,
                                   LearntPriors& priors, const Digest& digest,
                                   const Costs& costs) noexcept {
  const Prior prior = evidence ? priors.of(digest) : Prior{};
  const Judgement judgement = judge(evidence, prior, costs);
  LearntPriors::Outcome outcome{.delivered = judgement.verdict == Verdict::distinct,
                                .filter = static_cast<Verdict>(evidence.has_value()),
                                .inferred = judgement.verdict,
                                .costs = costs};
  // While priors are not used, what they would have said must still be recorded.
  if (evidence && !prior.known())
    if (const Prior estimate = priors.estimate(digest); estimate.known())
      outcome.inferred = least_cost(posterior_of(*evidence, estimate), costs);
  priors.learn(digest, outcome);
  return judgement;
}

template <class F>
template <class Judge>
Judgement InferredWindow<F>::observe_one(const Digest& digest, const Judge& judge) {
  const Judgement judgement = judge(reader_.read(filter_, digest, pace()));
  account(judgement);
  if (judgement.verdict == Verdict::distinct || params_.anchor == Anchor::refreshed) {
    write_now(digest);
    advance(1);
  }
  return judgement;
}

template <class F>
Judgement InferredWindow<F>::observe(const Digest& digest, const Prior& prior, const Costs& costs) {
  return observe_one(digest, [&](const auto& evidence) { return judge(evidence, prior, costs); });
}

template <class F>
Judgement InferredWindow<F>::observe(const Digest& digest, LearntPriors& priors,
                                     const Costs& costs) {
  return observe_one(digest,
                     [&](const auto& evidence) { return judge(evidence, priors, digest, costs); });
}

template <class F>
std::optional<double> InferredWindow<F>::within(const Digest& digest, const Prior& prior,
                                                std::uint64_t ticks) {
  if (ticks > params_.window)
    throw BadParameters("a filter remembers its window and no more: ask for at most that");
  const auto evidence = reader_.read(filter_, digest, pace());
  if (!evidence || ticks == 0) return 0.0;
  if (!prior.known()) return std::nullopt;
  return posteriors_.within(prior, *evidence, static_cast<double>(position_),
                            static_cast<double>(ticks), writes_a_tick_);
}

// Without a trace the key is at least as old as the filter remembers.
template <class F>
std::optional<typename InferredWindow<F>::Age> InferredWindow<F>::age(const Digest& digest,
                                                                      const Prior& prior) const {
  if (!prior.known()) return std::nullopt;
  const auto position = static_cast<double>(position_);
  const model::AgePrior ages = posteriors_.age_prior(prior, position, writes_a_tick_);
  const auto read = reader_.read(filter_, digest, pace());
  const model::AgeEvidence evidence = read.value_or(model::AgeEvidence{
      .from = static_cast<double>(params_.block) * filter_.generations() + position,
      .to = std::numeric_limits<double>::infinity()});
  return Age{model::posterior_mean(ages, evidence), model::posterior_mode(ages, evidence)};
}

template class InferredWindow<Timing>;
template class InferredWindow<Cohort>;

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
