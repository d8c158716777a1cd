// Least-cost verdicts for a filter that runs: a Window over cohort or timing, by count or by time,
// or a Bloom filter without a window.
//
// The filter judges first. Each key that it takes for a duplicate is then weighed: the trace that
// the filter found (and how likely another key would leave such a trace), the prior of the key, and
// the cost of the two errors. A key that is let through is written like any other. Only the filter
// has state to save: its snapshot looks like that of a run without inference, and learnt priors and
// rates are learnt again after a load.
//
// Errors   With costs given, duplicates may pass (inferred.hpp).
// Cost     For each key that the filter takes for a duplicate: a look at its stages and one
// exponential.
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
  // With these costs the verdict is always the filter's own.
  static constexpr Costs kFilterAlone{.lost = 0, .duplicate = 1};

  // What is known about the keys of a batch. A span of one element applies to all keys.
  struct Known {
    std::span<const Prior> priors = {};  // may be empty
    std::span<const Costs> costs = {};
  };

  // Since it was made.
  struct Stats {
    std::uint64_t inferred = 0;       // keys with a prior that the filter took for duplicates
    std::uint64_t passed = 0;         // of these, judged distinct
    std::uint64_t without_prior = 0;  // the same without a prior: held back
    // By the posteriors: the expected cost of the verdicts on the inferred keys, and of the
    // filter's own verdicts on them.
    double cost = 0;
    double filter_cost = 0;
    double lost = 0;        // of those held back, how many are expected to be lost
    double duplicates = 0;  // of those passed, how many are expected to be duplicates
  };

  // Why `filter` cannot be used for inference, naming filters that can; nothing if it can.
  static std::optional<std::string> refusal(const AnyFilter& filter);

  // `table` is asked for keys without a prior of their own; it may be null. With `learn`, priors
  // are learnt from the stream and no others are used. `filter` and `table` must outlive this.
  // Throws BadParameters.
  Inference(AnyFilter& filter, const PriorTable* table, bool learn);

  // As the filter's observe. posteriors[i] is the chance that the key was in the window (or set).
  // It is empty if the filter has a trace of the key but no prior is known, or if the record was
  // late.
  std::size_t observe(std::span<const Digest> digests, const Known& known,
                      std::span<Verdict> verdicts, std::span<std::optional<double>> posteriors);
  // For a window with event time: as Window::judge.
  [[nodiscard]] std::size_t judge(std::span<const Digest> digests,
                                  std::span<const Nanoseconds> times, const Known& known,
                                  std::span<Verdict> verdicts, std::span<bool> late,
                                  std::span<std::optional<double>> posteriors);

  const Stats& stats() const noexcept { return stats_; }
  std::uint64_t bytes() const noexcept { return learnt_ ? learnt_->bytes() : 0; }  // allocated
  bool learns() const noexcept { return learnt_.has_value(); }
  // Whether learnt priors are not used because they recently raised the cost.
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
    std::size_t settled = 0;  // how many from the front are accounted for
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
  Pace pace_;  // for the key being judged; sight_ is the filter's evidence about it
  std::optional<model::AgeEvidence> sight_;
  Stats stats_;

  // Recent counts: arrivals, deliveries and ticks; and, by the posteriors, how many keys came that
  // were outside the window, and how many of these were let through.
  double arrivals_ = 0, delivered_ = 0, ticks_ = 0, outside_ = 0, outside_passed_ = 0;
  double until_measured_ = 0;  // ticks
  double writes_a_tick_ = 0;   // factor for the chance of a key; 0: not known
  double keys_a_tick_ = 0;
  Nanoseconds start_ = 0, now_ = 0;  // of a time window
  bool started_ = false;
};

}  // namespace sluice
