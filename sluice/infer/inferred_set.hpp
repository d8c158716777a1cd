// A filter without a window whose verdicts are those of least cost: the classical Bloom filter and
// the blocked one (Dautrich & Ravishankar 2013, Theorem 1).
//
// A key is in the set if it ever came. Where only delivered events are inserted that is the same,
// as a key held back for another's bits has all its own set. With costs given a key that is likely
// to be new is let through though the filter takes it for a duplicate, so there may be false
// negatives; without a prior the verdict is the filter's own.
#pragma once

#include "sluice/filters/bloom/blocked_bloom.hpp"
#include "sluice/filters/bloom/bloom.hpp"
#include "sluice/infer/costs.hpp"
#include "sluice/infer/set_posterior.hpp"

namespace sluice {

template <class F>
class InferredSet {
 public:
  // `arrivals` is how many events a filter has seen that is not new.
  explicit InferredSet(F filter, std::uint64_t arrivals = 0);

  Judgement observe(const Digest& digest, const Prior& prior, const Costs& costs);
  // Asks only. Nothing where it takes a prior and none is known.
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
