// From priors and evidence to posteriors: the chance that a key is in the window, or in the set.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sluice/infer/evidence.hpp"
#include "sluice/infer/priors.hpp"
#include "sluice/model/posterior.hpp"

namespace sluice {

// The posterior of a key, for the cost of about one exponential.
//
// Equal to model::posterior_within. The terms that depend on the prior alone are cached for the
// priors used last: streams with one prior for all keys, or with priors from a table, use the same
// ones repeatedly.
class PosteriorCache {
 public:
  // `generations` of the filter: for how long a delivered key is held back.
  PosteriorCache(double window, double block, double generations, Anchor anchor) noexcept;

  // The chance that the key is younger than `ticks`, at most the window. `writes_a_tick` converts
  // the chance per arrival to the chance per tick that writes; it is 1 if ticks are arrivals. The
  // prior must be known.
  double within(const Prior& prior, const model::AgeEvidence& evidence, double position,
                double ticks, double writes_a_tick) noexcept;

  // With `delivered`: the total weight of the ages that the filter no longer holds, if each age
  // that it holds has weight 1.
  double tail(const Prior& prior, double position, double writes_a_tick) noexcept;
  // The same for many priors, most of them different; the result for an unknown prior must not be
  // used.
  void tails(std::span<const Prior> priors, double position, double writes_a_tick,
             std::span<double> tails) const noexcept;

  // The prior over ages behind it.
  model::AgePrior age_prior(const Prior& prior, double position,
                            double writes_a_tick) const noexcept;

 private:
  struct Powers {
    Prior prior = {};
    double writes_a_tick = 0;
    double log = 0;    // ln(1 − p)
    double block = 0;  // (1 − p)^B; with `delivered`, B / (1 − (1 − p)^B)
  };
  const Powers& powers_of(const Prior& prior, double writes_a_tick) noexcept;
  double chance_a_tick(const Prior& prior, double writes_a_tick) const noexcept;

  double window_, block_, generations_;
  Anchor anchor_;
  std::array<Powers, 256> powers_{};
};

// Posteriors by the age of a cohort's slot, for a batch of keys: with the anchor `delivered` a slot
// tells only its age, and there are few ages. So a key costs one division, and with one prior and
// one pair of costs for all keys only a lookup in a table of verdicts.
class AgePosteriors {
 public:
  static constexpr std::size_t kMostAges = 66;  // of 64 generations, the present one, and none

  // Prepares for the filter as it is now.
  void prepare(const Cohort& filter, const CohortReader& reader, const Pace& pace) noexcept;

  // A key that is not remembered is outside the window.
  std::size_t place(std::uint8_t age) const noexcept {
    return age < ages_ ? std::size_t{age} : ages_;
  }
  // `tail` is the weight of ages that the filter no longer holds (PosteriorCache::tail).
  double within(std::size_t place, double tail) const noexcept {
    return inside_[place] / (length_[place] + beyond_[place] * tail);
  }

  // With one prior and one pair of costs for all keys.
  void judge_all(const Prior& prior, const Costs& costs, double tail) noexcept;
  const Judgement& judgement(std::size_t place) const noexcept { return judgements_[place]; }
  std::size_t places() const noexcept { return ages_ + 1; }

 private:
  std::size_t ages_ = 0;
  std::array<double, kMostAges> inside_{}, length_{}, beyond_{};
  std::array<Judgement, kMostAges> judgements_{};
};

// The chance that a key is in a set, given that the filter says so (Dautrich & Ravishankar 2013,
// Theorem 1): for Bloom and BlockedBloom.
class SetPosterior {
 public:
  // `arrivals`: events that the filter has seen so far.
  explicit SetPosterior(std::uint64_t arrivals) noexcept : arrivals_(arrivals) {}

  // The error rises slowly: it is computed again when arrivals have grown by 1/64.
  template <class F>
  void weigh(const F& filter) {
    if (arrivals_ < next_weigh_) return;
    fpr_ = filter.stats().predicted_fpr;
    next_weigh_ = arrivals_ + arrivals_ / 64 + 64;
  }
  void arrive() noexcept { ++arrivals_; }
  std::uint64_t until_weighed() const noexcept { return next_weigh_ - arrivals_; }

  // The prior is known.
  double of(const Prior& prior) const noexcept {
    if (prior.kind == Prior::Kind::arrival)
      return model::classic_posterior(prior.chance, static_cast<double>(arrivals_), fpr_);
    return prior.chance / (prior.chance + (1 - prior.chance) * fpr_);
  }

  std::uint64_t arrivals() const noexcept { return arrivals_; }

 private:
  std::uint64_t arrivals_;
  double fpr_ = 0;                // at the last look
  std::uint64_t next_weigh_ = 0;  // arrivals at which it is computed again
};

}  // namespace sluice
