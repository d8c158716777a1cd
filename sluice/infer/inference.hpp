// Least-cost verdicts for a filter that runs: a Window over cohort or timing, by count or by time,
// or a Bloom filter without a window.
//
// The filter judges; what it takes for a duplicate is weighed, key by key: what it shows of the key
// (and how likely a stranger would leave that), what was known of the key before, and what the two
// errors cost. A key that is let through is written as any other. What is remembered is the
// filter's alone: its snapshot is that of a run without inference. What is learnt of priors and
// rates is learnt anew.
//
// Errors   See inferred.hpp: least cost replaces the promise of no false negatives.
// Cost     Of what the filter takes for a duplicate: a look at its stages and one exponential.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sluice/filters/any_filter.hpp"
#include "sluice/infer/evidence.hpp"
#include "sluice/infer/learnt_priors.hpp"
#include "sluice/infer/posteriors.hpp"
#include "sluice/infer/priors.hpp"

namespace sluice {

class Inference {
 public:
  // The verdict is the filter's own, whatever the posterior.
  static constexpr Costs kFilterAlone{.lost = 0, .duplicate = 1};

  // What is known of the keys of a batch. A span of one is for all.
  struct Known {
    std::span<const Prior> priors = {};  // may be empty
    std::span<const Costs> costs = {};
  };

  // Since it was made.
  struct Stats {
    std::uint64_t inferred = 0;       // duplicates of the filter's that had a prior
    std::uint64_t passed = 0;         // of these, judged distinct
    std::uint64_t without_prior = 0;  // duplicates of the filter's that had none: held back
    // By the posteriors: what the verdicts on those inferred are expected to cost, and what the
    // filter's own would.
    double cost = 0;
    double filter_cost = 0;
    double lost = 0;        // of those held back, how many are expected to be lost
    double duplicates = 0;  // of those passed, how many are expected to be duplicates
  };

  // Nothing, or why `filter` cannot be inferred from, naming those that can.
  static std::optional<std::string> refusal(const AnyFilter& filter);

  // `table` is asked for keys without a prior of their own; it may be null. With `learn` priors are
  // learnt from the stream, and no others are used. Both must outlive this. Throws BadParameters.
  Inference(AnyFilter& filter, const PriorTable* table, bool learn);

  // As the verbs of the filter; posteriors[i] is the chance that the key was in the window (or
  // set), and nothing where a trace of it was found and no prior is known, or the record was late.
  std::size_t observe(std::span<const Digest> digests, const Known& known,
                      std::span<Verdict> verdicts, std::span<std::optional<double>> posteriors);
  // Of a window with event time.
  [[nodiscard]] std::size_t judge(std::span<const Digest> digests,
                                  std::span<const Nanoseconds> times, const Known& known,
                                  std::span<Verdict> verdicts, std::span<bool> late,
                                  std::span<std::optional<double>> posteriors);

  const Stats& stats() const noexcept { return stats_; }
  std::uint64_t bytes() const noexcept { return learnt_ ? learnt_->bytes() : 0; }  // allocated
  bool learns() const noexcept { return learnt_.has_value(); }
  // Whether learnt priors are withheld because they did harm of late.
  bool withheld() const noexcept { return learnt_ && learnt_->withheld(); }

 private:
  // The keys that are being judged.
  struct AtHand {
    std::span<const Digest> digests;
    std::span<const Nanoseconds> times;  // empty: now
    Known known;
    std::span<Verdict> verdicts;
    std::span<const bool> late;  // may be empty
    std::span<std::optional<double>> posteriors;
    std::size_t settled = 0;  // so many from the front are accounted for
  };

  void begin(const AtHand& batch);
  std::size_t observe_set();
  Verdict weigh(std::size_t i);
  Verdict weigh_known(std::size_t i, const Prior& prior);
  double posterior_of(const Prior& prior);
  Prior given_prior(std::size_t i) const;
  const Costs& costs_of(std::size_t i) const;
  void settle_until(std::size_t i);
  void settle(std::size_t i, Verdict filter, Verdict inferred);
  Nanoseconds time_of(std::size_t i) const;
  void measure(std::size_t i, bool delivered);
  void measure_now();
  double time_passed(Nanoseconds time);

  AnyFilter& filter_;
  Window* window_;
  const PriorTable* table_;
  std::optional<LearntPriors> learnt_;
  SetPosterior set_;
  std::optional<WindowEvidence> evidence_;
  std::optional<PosteriorCache> posteriors_;
  AtHand batch_;
  Pace pace_;  // of the key at hand, and what is shown of it
  std::optional<model::AgeEvidence> sight_;
  Stats stats_;

  // Of late: arrivals, deliveries and ticks; by the posteriors, how many keys came that were
  // outside the window, and how many of these were let through.
  double arrivals_ = 0, delivered_ = 0, ticks_ = 0, outside_ = 0, outside_passed_ = 0;
  double until_measured_ = 0;  // ticks
  double writes_a_tick_ = 0;   // what a key's chance is multiplied with; 0: not known
  double keys_a_tick_ = 0;
  Nanoseconds start_ = 0, now_ = 0;  // of a time window
  bool started_ = false;
};

}  // namespace sluice
