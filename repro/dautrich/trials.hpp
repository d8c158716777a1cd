// A trial: what the errors of a filter cost over a stream, by its own verdicts and by those of
// least cost.
#pragma once

#include <functional>

#include "repro/dautrich/streams.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/timing/timing.hpp"
#include "sluice/infer/priors.hpp"

namespace sluice::repro::dautrich {

// Eq. 28: posteriors in 20 bins, against the share in each that is in the window.
class Calibration {
 public:
  void add(double posterior, bool in_window);
  double error() const;

 private:
  static constexpr std::size_t kBins = 20;
  std::uint64_t asked_[kBins] = {}, true_[kBins] = {};
};

struct Outcome {
  double standard = 0, inferred = 0, prior_only = 0;  // penalties
  std::uint64_t errors = 0;                           // of the inferential filter
  double posterior_error = 0;
};

// Penalties of each query, uniform in [1, most).
class Penalties {
 public:
  Penalties(std::uint64_t seed, double most) : random_(seed), span_(most - 1) {}
  Costs next() { return {1 + span_ * random_.next_unit(), 1 + span_ * random_.next_unit()}; }

 private:
  SplitMix64 random_;
  double span_;
};

// The filter of §5.1.2 for `bits` bits per item of the window, with k probes.
Timing::Params timing_of(std::uint64_t window, double bits, unsigned probes);

struct Trial {
  const Stream& stream;
  const Truth& truth;
  std::uint64_t window;
  double bits;
  std::uint64_t seed;  // of the penalties
  double most = 10;    // of the penalties
};
// `printed`: posteriors as in the paper; otherwise with our count of keys (docs/inference.md).
// `asked`: how many of the queries, or all of them.
Outcome run_trial(const Trial& trial, unsigned probes, bool printed, std::uint64_t asked);

// The best number of probes for each of the two, of 1 to `most`. Costs fall with it and then rise:
// on a quarter of the queries, or on all where errors are few, it is tried from `from` on until
// both have risen; or, with `all`, every number on all queries.
struct Best {
  unsigned standard_probes = 0, inferred_probes = 0;
  double standard = 0;
  Outcome inferred;  // of the trial with the best inferred costs
};
struct Probes {
  unsigned from = 1, most = 30;
  bool all = false;
};
Best best_of(const Trial& trial, const Probes& probes);

}  // namespace sluice::repro::dautrich
