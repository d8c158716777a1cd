// The chance that a key is in a set, given that the filter says so (Dautrich & Ravishankar 2013,
// Theorem 1): for Bloom and BlockedBloom.
#pragma once

#include <cstdint>

#include "sluice/infer/prior.hpp"
#include "sluice/model/posterior.hpp"

namespace sluice {

class SetPosterior {
 public:
  // `arrivals`: events that the filter has seen.
  explicit SetPosterior(std::uint64_t arrivals) noexcept : arrivals_(arrivals) {}

  // The error rises slowly: it is asked for once for every 64th part more arrivals.
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
  double fpr_ = 0;                // of late
  std::uint64_t next_weigh_ = 0;  // arrivals at which it is asked for again
};

}  // namespace sluice
