#include "sluice/infer/inferred_window.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

[[noreturn]] void refuse_full() {
  throw BadParameters("the filter is full before its generation ends: plan it for more keys");
}

// Of a span that is for each, or of one element that is for all.
template <class T>
const T& one_of(std::span<const T> all, std::size_t i) {
  return all[all.size() == 1 ? 0 : i];
}

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
  // What was passed beyond the end belongs to the next: the filter has room for so many and no
  // more.
  position_ -= params_.block;
  if (params_.anchor == Anchor::refreshed) return;
  if (outside_ > 0) writes_a_tick_ = arrivals_ / ticks_ * (outside_passed_ / outside_);
  if (ticks_ < static_cast<double>(params_.window)) return;
  for (double* recent : {&arrivals_, &ticks_, &outside_, &outside_passed_}) *recent /= 2;
}

// Whatever the filter thinks of it.
template <class F>
void InferredWindow<F>::write_now(const Digest& digest) {
  Verdict unread;
  std::uint64_t budget = 1;
  if (filter_.admit(std::span(&digest, 1), std::span(&unread, 1), budget, Anchor::refreshed) == 0)
    refuse_full();
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
  const double posterior = posterior_of(*evidence, prior);
  const Verdict verdict = least_cost(posterior, costs);
  const double held_back = costs.lost * (1 - posterior);
  ++stats_.inferred;
  stats_.passed += verdict == Verdict::distinct;
  stats_.filter_cost += held_back;
  stats_.cost += verdict == Verdict::distinct ? costs.duplicate * posterior : held_back;
  return {verdict, posterior};
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
  // While priors are withheld, what they would have said is still to be known.
  if (evidence && !prior.known())
    if (const Prior estimate = priors.estimate(digest); estimate.known())
      outcome.inferred = least_cost(posterior_of(*evidence, estimate), costs);
  priors.learn(digest, outcome);
  return judgement;
}

template <class F>
void InferredWindow<F>::account(const Judgement& judgement) noexcept {
  const bool delivered = judgement.verdict == Verdict::distinct;
  const double outside = judgement.posterior ? 1 - *judgement.posterior : 0;
  ++stats_.arrivals;
  stats_.delivered += delivered;
  arrivals_ += 1;
  outside_ += outside;
  outside_passed_ += delivered ? outside : 0;
}

template <class F>
void InferredWindow<F>::account_distinct(std::uint64_t keys) noexcept {
  stats_.arrivals += keys;
  stats_.delivered += keys;
  for (double* recent : {&arrivals_, &outside_, &outside_passed_})
    *recent += static_cast<double>(keys);
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
template <class Judge>
void InferredWindow<F>::observe_all(std::span<const Digest> digests,
                                    std::span<Judgement> judgements, const Judge& judge) {
  assert(digests.size() == judgements.size());
  if (params_.anchor == Anchor::delivered) return observe_ahead(digests, judgements, judge);
  // What is written would be seen by the keys that follow: one by one.
  for (std::size_t i = 0; i < digests.size(); ++i)
    judgements[i] =
        observe_one(digests[i], [&](const auto& evidence) { return judge(evidence, i); });
}

// The generation ends only after all that were judged ahead have been looked at.
template <class F>
template <class Judge>
void InferredWindow<F>::observe_ahead(std::span<const Digest> digests,
                                      std::span<Judgement> judgements, const Judge& judge) {
  std::array<Verdict, kAhead> verdicts;
  const std::size_t most = std::clamp<std::uint64_t>(params_.block / 8, 1, kAhead);
  for (std::size_t done = 0; done < digests.size();) {
    const std::uint64_t left = params_.block - position_;
    std::uint64_t budget = left;
    const std::span<const Digest> next =
        digests.subspan(done, std::min(most, digests.size() - done));
    const std::size_t count =
        filter_.admit(next, std::span(verdicts).first(next.size()), budget, Anchor::delivered);
    if (count < next.size() && budget > 0) refuse_full();
    position_ += left - budget;
    ticks_ += static_cast<double>(left - budget);
    look_again(next.first(count), verdicts.data(), judgements.subspan(done, count),
               [&](const auto& evidence, std::size_t i) { return judge(evidence, done + i); });
    advance(0);
    done += count;
  }
}

template <class F>
template <class Judge>
void InferredWindow<F>::look_again(std::span<const Digest> digests, const Verdict* verdicts,
                                   std::span<Judgement> judgements, const Judge& judge) {
  auto& [at, duplicates, evidence] = *scratch_;
  std::size_t found = 0;
  // Without a branch that nobody could foretell.
  for (std::size_t i = 0; i < digests.size(); ++i) {
    at[found] = static_cast<std::uint16_t>(i);
    duplicates[found] = digests[i];
    found += verdicts[i] == Verdict::duplicate;
    judgements[i] = {Verdict::distinct, 0.0};
  }
  account_distinct(digests.size() - found);
  reader_.read(filter_, std::span(duplicates).first(found), pace(),
               std::span(evidence).first(found));
  std::size_t passed = 0;  // gathered at the front of `duplicates`, which is no longer needed
  for (std::size_t i = 0; i < found; ++i) {
    const Digest digest = duplicates[i];
    const auto written = duplicates.begin() + static_cast<std::ptrdiff_t>(passed);
    if (passed > 0 && std::find(duplicates.begin(), written, digest) != written)
      evidence[i] = *reader_.read(filter_, digest, pace());
    Judgement& judgement = judgements[at[i]];
    judgement = judge(std::optional(evidence[i]), at[i]);
    account(judgement);
    if (judgement.verdict == Verdict::duplicate) continue;
    write_now(digest);
    ++position_;
    ticks_ += 1;
    duplicates[passed++] = digest;
  }
}

template <class F>
void InferredWindow<F>::observe(std::span<const Digest> digests, std::span<const Prior> priors,
                                std::span<const Costs> costs, std::span<Judgement> judgements) {
  observe_all(digests, judgements, [&](const auto& evidence, std::size_t i) {
    return judge(evidence, one_of(priors, i), one_of(costs, i));
  });
}

template <class F>
void InferredWindow<F>::observe(std::span<const Digest> digests, const PriorTable& priors,
                                std::span<const Costs> costs, std::span<Judgement> judgements) {
  observe_all(digests, judgements, [&](const auto& evidence, std::size_t i) {
    return judge(evidence, evidence ? priors.of(digests[i]) : Prior{}, one_of(costs, i));
  });
}

template <class F>
void InferredWindow<F>::observe(std::span<const Digest> digests, LearntPriors& priors,
                                std::span<const Costs> costs, std::span<Judgement> judgements) {
  // In order: what is learnt of one arrival is known to the next.
  for (std::size_t i = 0; i < digests.size(); ++i)
    judgements[i] = observe(digests[i], priors, one_of(costs, i));
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

}  // namespace sluice
