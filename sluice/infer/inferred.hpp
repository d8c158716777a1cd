// Filters as types whose verdicts are those of least cost: a count window (InferredWindow) and a
// set (InferredSet). For filters chosen by name at run time: inference.hpp.
#pragma once

#include <array>
#include <memory>

#include "sluice/filters/bloom/blocked_bloom.hpp"
#include "sluice/filters/bloom/bloom.hpp"
#include "sluice/infer/learnt_priors.hpp"
#include "sluice/infer/posteriors.hpp"
#include "sluice/infer/priors.hpp"

namespace sluice {

// A count window whose verdicts are those of least cost: a window filter and its pace. The filter's
// evidence about a key is weighed against the key's prior.
//
// Source   Dautrich & Ravishankar 2013 for the anchor `refreshed`, where every arrival is inserted;
//          for `delivered` the same with the age of a renewal process (docs/inference.md).
// Errors   With costs given there may be false negatives: a key whose trace is probably another
//          key's is let through if that is the cheaper error. A key that the filter judges distinct
//          is always let through, and without a prior the verdict is the filter's own.
// Cost     observe: a look at the filter, one exponential, and a write if the key is written.
template <class F>
class InferredWindow {
 public:
  struct Params {
    std::uint64_t window = 0;  // w, in ticks
    std::uint64_t block = 0;   // B: ticks per generation; 0: window / the filter's generations
    Anchor anchor = Anchor::delivered;
    std::optional<model::DistinctKeys> distinct = {};  // D(j), if it is known
    bool printed = false;  // posteriors of timing filters as printed (evidence.hpp)
  };

  // Since it was made.
  struct Stats {
    std::uint64_t arrivals = 0;
    std::uint64_t delivered = 0;  // verdicts `distinct`
    std::uint64_t inferred = 0;   // keys with a prior that the filter took for duplicates
    std::uint64_t passed = 0;     // of these, judged distinct
    // By the posteriors: the expected cost of the verdicts on these, and of the filter's own.
    double cost = 0;
    double filter_cost = 0;
  };

  struct Age {
    double mean;  // E[age], in ticks
    double mode;  // the most likely age; the lowest if there are several
  };

  // Throws BadParameters.
  InferredWindow(F filter, const Params& params);

  // Asks and remembers. Throws BadParameters when the filter is full.
  Judgement observe(const Digest& digest, const Prior& prior, const Costs& costs);
  // The same with a prior learnt from the stream.
  Judgement observe(const Digest& digest, LearntPriors& priors, const Costs& costs);
  // Batches, in order. A span of one prior or of one pair of costs applies to all keys. With
  // `delivered` the filter judges some keys ahead and only its duplicates are weighed afterwards;
  // by then up to an eighth of a block of later keys may be written. This is faster and as
  // accurate.
  void observe(std::span<const Digest> digests, std::span<const Prior> priors,
               std::span<const Costs> costs, std::span<Judgement> judgements);
  void observe(std::span<const Digest> digests, const PriorTable& priors,
               std::span<const Costs> costs, std::span<Judgement> judgements);
  void observe(std::span<const Digest> digests, LearntPriors& priors, std::span<const Costs> costs,
               std::span<Judgement> judgements);
  // Asks only: the chance that the key is younger than `ticks`, at most the window. Nothing where
  // it takes a prior and none is known.
  std::optional<double> within(const Digest& digest, const Prior& prior, std::uint64_t ticks);
  std::optional<double> posterior(const Digest& digest, const Prior& prior) {
    return within(digest, prior, params_.window);
  }
  std::optional<Age> age(const Digest& digest, const Prior& prior) const;

  const F& filter() const noexcept { return filter_; }
  const Stats& stats() const noexcept { return stats_; }
  Pace pace() const noexcept;

 private:
  static constexpr std::size_t kAhead = 256;  // keys judged before any of them is weighed
  struct Scratch {
    std::array<std::uint16_t, kAhead> at;  // which of the batch they are
    std::array<Digest, kAhead> duplicates;
    std::array<model::AgeEvidence, kAhead> evidence;
    std::array<std::uint8_t, kAhead> ages;
    std::array<Prior, kAhead> priors;
    std::array<double, kAhead> tails;
    AgePosteriors by_age;  // of a cohort
  };

  double posterior_of(const model::AgeEvidence& evidence, const Prior& prior) noexcept;
  Judgement judge(const std::optional<model::AgeEvidence>& evidence, const Prior& prior,
                  const Costs& costs) noexcept;
  inline Judgement weigh(double posterior, const Costs& costs) noexcept;
  Judgement judge(const std::optional<model::AgeEvidence>& evidence, LearntPriors& priors,
                  const Digest& digest, const Costs& costs) noexcept;
  template <class Judge>
  Judgement observe_one(const Digest& digest, const Judge& judge);
  template <class Look>
  void observe_ahead(std::span<const Digest> digests, std::span<Judgement> judgements,
                     const Look& look);
  inline std::size_t gather(std::span<const Digest> digests, const Verdict* verdicts,
                            std::span<Judgement> judgements) noexcept;
  template <class PriorOf>
  void look_again(std::size_t found, std::span<Judgement> judgements, const PriorOf& prior_of,
                  std::span<const Costs> costs);
  template <class PriorOf>
  void look_by_age(std::size_t found, std::span<Judgement> judgements, const PriorOf& prior_of,
                   std::span<const Costs> costs);
  inline void look_by_age(std::size_t found, std::span<Judgement> judgements, const Prior& prior,
                          const Costs& costs);
  inline void account_by_age(std::span<const std::uint16_t> keys, const Costs& costs) noexcept;
  inline void account(const Judgement& judgement) noexcept;
  inline void account_distinct(std::uint64_t keys) noexcept;
  [[noreturn]] static void refuse_full();
  void write_now(const Digest& digest);
  inline void pass(const Digest& digest, std::size_t& passed) noexcept;
  inline void write_passed(std::size_t passed);
  inline bool was_passed(const Digest& digest, std::size_t passed) const noexcept;
  void advance(std::uint64_t ticks);

  F filter_;
  Params params_;
  typename AgeReaderOf<F>::Type reader_;
  PosteriorCache posteriors_;
  std::uint64_t position_ = 0;
  Stats stats_;
  // Recent counts, with `delivered`: arrivals and ticks; and, by the posteriors, how many keys came
  // that were outside the window, and how many of these were let through.
  double arrivals_ = 0, ticks_ = 0, outside_ = 0, outside_passed_ = 0;
  // Factor for the chance of a key: arrivals per tick. Of the arrivals outside the window only
  // those let through count, since only these restart the key's age.
  double writes_a_tick_ = 1;
  // Kept between calls: on the stack it would be cleared each time.
  std::unique_ptr<Scratch> scratch_;
  std::uint64_t passed_marks_ = 0;  // one bit for each key passed in a batch; most are not passed
};

template <class F>
Judgement InferredWindow<F>::weigh(double posterior, const Costs& costs) noexcept {
  const Verdict verdict = least_cost(posterior, costs);
  const double held_back = costs.lost * (1 - posterior);
  ++stats_.inferred;
  stats_.passed += verdict == Verdict::distinct;
  stats_.filter_cost += held_back;
  stats_.cost += verdict == Verdict::distinct ? costs.duplicate * posterior : held_back;
  return {verdict, posterior};
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

extern template class InferredWindow<Timing>;
extern template class InferredWindow<Cohort>;

// A filter without a window whose verdicts are those of least cost: the classical Bloom filter and
// the blocked one (Dautrich & Ravishankar 2013, Theorem 1).
//
// A key is in the set if it ever came. This also holds if only delivered events are inserted: a key
// that is held back because of other keys' bits has all its own bits set. With costs given, a key
// that is probably new is let through although the filter takes it for a duplicate, so there may be
// false negatives. Without a prior the verdict is the filter's own.
template <class F>
class InferredSet {
 public:
  // `arrivals`: how many events the filter has seen, if it is not new.
  explicit InferredSet(F filter, std::uint64_t arrivals = 0);

  Judgement observe(const Digest& digest, const Prior& prior, const Costs& costs);
  // Asks only. Empty if this takes a prior and none is known.
  std::optional<double> posterior(const Digest& digest, const Prior& prior) const noexcept;

  const F& filter() const noexcept { return filter_; }
  std::uint64_t arrivals() const noexcept { return posteriors_.arrivals(); }

 private:
  F filter_;
  SetPosterior posteriors_;
};

extern template class InferredSet<Bloom>;
extern template class InferredSet<BlockedBloom>;

}  // namespace sluice
