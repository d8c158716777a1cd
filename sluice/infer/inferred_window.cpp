#include "sluice/infer/inferred_window.hpp"

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
      reader_(filter_, pace(), params_.anchor, params_.distinct),
      posteriors_(static_cast<double>(params_.window), static_cast<double>(params_.block),
                  filter_.generations(), params_.anchor) {}

template <class F>
Pace InferredWindow<F>::pace() const noexcept {
  return {static_cast<double>(params_.window), static_cast<double>(params_.block),
          static_cast<double>(position_)};
}

template <class F>
void InferredWindow<F>::tick() {
  if (params_.anchor == Anchor::delivered) ++recent_ticks_;
  if (++position_ < params_.block) return;
  reader_.before_rotate(filter_);
  filter_.rotate();
  position_ = 0;
  if (params_.anchor == Anchor::refreshed) return;
  arrivals_a_tick_ = static_cast<double>(recent_arrivals_) / static_cast<double>(recent_ticks_);
  if (recent_ticks_ >= params_.window) {
    recent_arrivals_ /= 2;
    recent_ticks_ /= 2;
  }
}

// Whatever the filter thinks of it, the key is written now.
template <class F>
void InferredWindow<F>::write(const Digest& digest) {
  Verdict unread;
  std::uint64_t budget = 1;
  if (filter_.admit(std::span(&digest, 1), std::span(&unread, 1), budget, Anchor::refreshed) == 0)
    throw BadParameters("the filter is full before its generation ends: plan it for more keys");
  tick();
}

template <class F>
Judgement InferredWindow<F>::observe(const Digest& digest, const Prior& prior, const Costs& costs) {
  ++stats_.arrivals;
  ++recent_arrivals_;
  Judgement judgement{Verdict::distinct, 0.0};
  if (const auto evidence = reader_.read(filter_, digest, pace())) {
    if (prior.known()) {
      const double posterior =
          posteriors_.within(prior, *evidence, static_cast<double>(position_),
                             static_cast<double>(params_.window), arrivals_a_tick_);
      judgement = {least_cost(posterior, costs), posterior};
      const double held_back = costs.lost * (1 - posterior);
      ++stats_.inferred;
      stats_.filter_cost += held_back;
      stats_.passed += judgement.verdict == Verdict::distinct;
      stats_.cost +=
          judgement.verdict == Verdict::distinct ? costs.duplicate * posterior : held_back;
    } else {
      judgement = {Verdict::duplicate, std::nullopt};
    }
  }
  const bool delivered = judgement.verdict == Verdict::distinct;
  stats_.delivered += delivered;
  if (delivered || params_.anchor == Anchor::refreshed) write(digest);
  return judgement;
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
                            static_cast<double>(ticks), arrivals_a_tick_);
}

// Without a trace the key is at least as old as the filter remembers.
template <class F>
std::optional<typename InferredWindow<F>::Age> InferredWindow<F>::age(const Digest& digest,
                                                                      const Prior& prior) const {
  if (!prior.known()) return std::nullopt;
  const auto position = static_cast<double>(position_);
  const model::AgePrior ages = posteriors_.age_prior(prior, position, arrivals_a_tick_);
  const auto read = reader_.read(filter_, digest, pace());
  const model::AgeEvidence evidence = read.value_or(model::AgeEvidence{
      .from = static_cast<double>(params_.block) * filter_.generations() + position,
      .to = std::numeric_limits<double>::infinity()});
  return Age{model::posterior_mean(ages, evidence), model::posterior_mode(ages, evidence)};
}

template class InferredWindow<Timing>;
template class InferredWindow<Cohort>;

}  // namespace sluice
