// Batches: the filter judges some keys ahead, and only its duplicates are looked at again.
#include <algorithm>
#include <cassert>
#include <type_traits>

#include "sluice/infer/inferred.hpp"

namespace sluice {
namespace {

// Of a span that is for each, or of one element that is for all.
template <class T>
const T& one_of(std::span<const T> all, std::size_t i) {
  return all[all.size() == 1 ? 0 : i];
}

// Of the same, what is left from `done` on.
template <class T>
std::span<const T> rest_of(std::span<const T> all, std::size_t done) {
  return all.size() == 1 ? all : all.subspan(done);
}

}  // namespace

template <class F>
void InferredWindow<F>::account_distinct(std::uint64_t keys) noexcept {
  stats_.arrivals += keys;
  stats_.delivered += keys;
  for (double* recent : {&arrivals_, &outside_, &outside_passed_})
    *recent += static_cast<double>(keys);
}

// The generation ends only after all that were judged ahead have been looked at.
template <class F>
template <class Look>
void InferredWindow<F>::observe_ahead(std::span<const Digest> digests,
                                      std::span<Judgement> judgements, const Look& look) {
  assert(digests.size() == judgements.size());
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
    const std::span<Judgement> some = judgements.subspan(done, count);
    look(done, gather(next.first(count), verdicts.data(), some), some);
    advance(0);
    done += count;
  }
}

// The filter's duplicates, gathered in the scratch; the others are judged.
template <class F>
std::size_t InferredWindow<F>::gather(std::span<const Digest> digests, const Verdict* verdicts,
                                      std::span<Judgement> judgements) noexcept {
  std::size_t found = 0;
  // Without an unpredictable branch.
  for (std::size_t i = 0; i < digests.size(); ++i) {
    scratch_->at[found] = static_cast<std::uint16_t>(i);
    scratch_->duplicates[found] = digests[i];
    found += verdicts[i] == Verdict::duplicate;
    judgements[i] = {Verdict::distinct, 0.0};
  }
  account_distinct(digests.size() - found);
  passed_marks_ = 0;
  return found;
}

// Passed keys stand at the front of `duplicates`, where those were that are judged.
template <class F>
void InferredWindow<F>::pass(const Digest& digest, std::size_t& passed) noexcept {
  ++position_;
  ticks_ += 1;
  passed_marks_ |= std::uint64_t{1} << (digest.lo % 64);
  scratch_->duplicates[passed++] = digest;
}

// Ages of keys that come again are known without asking, so that all can be written together.
template <class F>
void InferredWindow<F>::write_passed(std::size_t passed) {
  std::array<Verdict, kAhead> unread;
  const std::span<const Digest> keys = std::span(scratch_->duplicates).first(passed);
  std::uint64_t budget = passed;
  const std::size_t written =
      filter_.admit(keys, std::span(unread).first(passed), budget, Anchor::refreshed);
  for (const Digest& digest : keys.subspan(written)) write_now(digest);
}

template <class F>
bool InferredWindow<F>::was_passed(const Digest& digest, std::size_t passed) const noexcept {
  if ((passed_marks_ >> (digest.lo % 64) & 1) == 0) return false;
  const auto first = scratch_->duplicates.begin();
  const auto last = first + static_cast<std::ptrdiff_t>(passed);
  return std::find(first, last, digest) != last;
}

// A cohort's duplicates by their ages, each with a prior of its own. Posteriors are those of the
// tick at which the batch begins.
template <class F>
template <class PriorOf>
void InferredWindow<F>::look_by_age(std::size_t found, std::span<Judgement> judgements,
                                    const PriorOf& prior_of, std::span<const Costs> costs) {
  auto& [at, duplicates, evidence, ages, priors, tails, by_age] = *scratch_;
  filter_.ages_of(std::span(duplicates).first(found), std::span(ages).first(found));
  by_age.prepare(filter_, reader_, pace());
  // One step for all at a time: the steps of many keys overlap, those of one key would wait.
  for (std::size_t i = 0; i < found; ++i) priors[i] = prior_of(duplicates[i], at[i]);
  posteriors_.tails(std::span(priors).first(found), static_cast<double>(position_), writes_a_tick_,
                    tails);
  std::size_t passed = 0;
  for (std::size_t i = 0; i < found; ++i) {
    const Digest digest = duplicates[i];
    if (was_passed(digest, passed)) ages[i] = 0;
    Judgement& judgement = judgements[at[i]];
    judgement = priors[i].known()
                    ? weigh(by_age.within(by_age.place(ages[i]), tails[i]), one_of(costs, at[i]))
                    : Judgement{Verdict::duplicate, std::nullopt};
    account(judgement);
    if (judgement.verdict == Verdict::distinct) pass(digest, passed);
  }
  write_passed(passed);
}

// The same with one prior and one pair of costs for all.
template <class F>
void InferredWindow<F>::look_by_age(std::size_t found, std::span<Judgement> judgements,
                                    const Prior& prior, const Costs& costs) {
  auto& [at, duplicates, evidence, ages, priors, tails, by_age] = *scratch_;
  filter_.ages_of(std::span(duplicates).first(found), std::span(ages).first(found));
  by_age.prepare(filter_, reader_, pace());
  const auto position = static_cast<double>(position_);
  by_age.judge_all(prior, costs,
                   prior.known() ? posteriors_.tail(prior, position, writes_a_tick_) : 0);
  std::array<std::uint16_t, AgePosteriors::kMostAges> keys{};
  std::size_t passed = 0;
  for (std::size_t i = 0; i < found; ++i) {
    const Digest digest = duplicates[i];
    if (was_passed(digest, passed)) ages[i] = 0;
    const std::size_t age = by_age.place(ages[i]);
    ++keys[age];
    judgements[at[i]] = by_age.judgement(age);
    if (by_age.judgement(age).verdict == Verdict::distinct) pass(digest, passed);
  }
  account_by_age(keys, costs);
  write_passed(passed);
}

template <class F>
void InferredWindow<F>::account_by_age(std::span<const std::uint16_t> keys,
                                       const Costs& costs) noexcept {
  const AgePosteriors& by_age = scratch_->by_age;
  for (std::size_t age = 0; age < by_age.places(); ++age) {
    if (keys[age] == 0) continue;
    const double count = keys[age];
    const auto& [verdict, posterior] = by_age.judgement(age);
    const bool delivered = verdict == Verdict::distinct;
    stats_.arrivals += keys[age];
    stats_.delivered += delivered ? keys[age] : 0;
    arrivals_ += count;
    if (!posterior) continue;
    const double outside = count * (1 - *posterior), held_back = costs.lost * outside;
    stats_.inferred += keys[age];
    stats_.passed += delivered ? keys[age] : 0;
    stats_.filter_cost += held_back;
    stats_.cost += delivered ? costs.duplicate * *posterior * count : held_back;
    outside_ += outside;
    outside_passed_ += delivered ? outside : 0;
  }
}

// Each of the filter's duplicates, by the filter's evidence about it.
template <class F>
template <class PriorOf>
void InferredWindow<F>::look_again(std::size_t found, std::span<Judgement> judgements,
                                   const PriorOf& prior_of, std::span<const Costs> costs) {
  auto& [at, duplicates, evidence, ages, priors, tails, by_age] = *scratch_;
  reader_.read(filter_, std::span(duplicates).first(found), pace(),
               std::span(evidence).first(found));
  std::size_t passed = 0;
  for (std::size_t i = 0; i < found; ++i) {
    const Digest digest = duplicates[i];
    if (was_passed(digest, passed)) evidence[i] = *reader_.read(filter_, digest, pace());
    Judgement& judgement = judgements[at[i]];
    judgement = judge(std::optional(evidence[i]), prior_of(digest, at[i]), one_of(costs, at[i]));
    account(judgement);
    if (judgement.verdict == Verdict::duplicate) continue;
    write_now(digest);
    pass(digest, passed);
  }
}

// What is written would be seen by the keys that follow: with `refreshed`, one by one.
template <class F>
void InferredWindow<F>::observe(std::span<const Digest> digests, std::span<const Prior> priors,
                                std::span<const Costs> costs, std::span<Judgement> judgements) {
  if (params_.anchor == Anchor::refreshed) {
    for (std::size_t i = 0; i < digests.size(); ++i)
      judgements[i] = observe(digests[i], one_of(priors, i), one_of(costs, i));
    return;
  }
  observe_ahead(digests, judgements, [&](std::size_t done, std::size_t found, auto some) {
    const auto prior_of = [&](const Digest&, std::size_t i) { return one_of(priors, done + i); };
    const std::span<const Costs> theirs = rest_of(costs, done);
    if constexpr (!std::is_same_v<F, Cohort>)
      look_again(found, some, prior_of, theirs);
    else if (priors.size() == 1 && costs.size() == 1)
      look_by_age(found, some, priors[0], costs[0]);
    else
      look_by_age(found, some, prior_of, theirs);
  });
}

template <class F>
void InferredWindow<F>::observe(std::span<const Digest> digests, const PriorTable& priors,
                                std::span<const Costs> costs, std::span<Judgement> judgements) {
  if (params_.anchor == Anchor::refreshed) {
    for (std::size_t i = 0; i < digests.size(); ++i)
      judgements[i] = observe(digests[i], priors.of(digests[i]), one_of(costs, i));
    return;
  }
  observe_ahead(digests, judgements, [&](std::size_t done, std::size_t found, auto some) {
    for (std::size_t i = 0; i < found; ++i)
      __builtin_prefetch(priors.near(scratch_->duplicates[i]));
    const auto prior_of = [&](const Digest& digest, std::size_t) { return priors.of(digest); };
    if constexpr (std::is_same_v<F, Cohort>)
      look_by_age(found, some, prior_of, rest_of(costs, done));
    else
      look_again(found, some, prior_of, rest_of(costs, done));
  });
}

template <class F>
void InferredWindow<F>::observe(std::span<const Digest> digests, LearntPriors& priors,
                                std::span<const Costs> costs, std::span<Judgement> judgements) {
  // In order: what is learnt of one arrival is known to the next.
  for (std::size_t i = 0; i < digests.size(); ++i)
    judgements[i] = observe(digests[i], priors, one_of(costs, i));
}

// Also of what is inlined where the compiler inlines: elsewhere it would be missing.
#define SLUICE_INSTANTIATE(F)                                                               \
  template void InferredWindow<F>::observe(std::span<const Digest>, std::span<const Prior>, \
                                           std::span<const Costs>, std::span<Judgement>);   \
  template void InferredWindow<F>::observe(std::span<const Digest>, const PriorTable&,      \
                                           std::span<const Costs>, std::span<Judgement>);   \
  template void InferredWindow<F>::observe(std::span<const Digest>, LearntPriors&,          \
                                           std::span<const Costs>, std::span<Judgement>);   \
  template void InferredWindow<F>::account_distinct(std::uint64_t) noexcept;                \
  template std::size_t InferredWindow<F>::gather(std::span<const Digest>, const Verdict*,   \
                                                 std::span<Judgement>) noexcept;            \
  template void InferredWindow<F>::pass(const Digest&, std::size_t&) noexcept;              \
  template void InferredWindow<F>::write_passed(std::size_t);                               \
  template bool InferredWindow<F>::was_passed(const Digest&, std::size_t) const noexcept;
SLUICE_INSTANTIATE(Timing)
SLUICE_INSTANTIATE(Cohort)
#undef SLUICE_INSTANTIATE
template void InferredWindow<Cohort>::look_by_age(std::size_t, std::span<Judgement>, const Prior&,
                                                  const Costs&);
template void InferredWindow<Cohort>::account_by_age(std::span<const std::uint16_t>,
                                                     const Costs&) noexcept;

}  // namespace sluice
