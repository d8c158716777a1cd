// The posterior of a key at the price of about one exponential.
//
// Equal to model::posterior_within. What depends on the prior alone is kept for the priors used
// last: streams with one prior for all keys, or with priors from a table, ask for the same again
// and again.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sluice/infer/age_reader.hpp"
#include "sluice/infer/prior.hpp"

namespace sluice {

class PosteriorCache {
 public:
  // `generations` as of the filter: for how long a delivered key is held back.
  PosteriorCache(double window, double block, double generations, Anchor anchor) noexcept;

  // The chance that the key is younger than `ticks`, at most the window. `writes_a_tick` turns
  // chances of arrivals into those of ticks that write; it is 1 where ticks are arrivals. The prior
  // is known.
  double within(const Prior& prior, const model::AgeEvidence& evidence, double position,
                double ticks, double writes_a_tick) noexcept;

  // With `delivered`: the weight of all ages that the filter no longer holds, where each that it
  // holds weighs 1.
  double tail(const Prior& prior, double position, double writes_a_tick) noexcept;
  // The same for many, each likely to be another's; of an unknown one it is nothing to be used.
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

}  // namespace sluice
