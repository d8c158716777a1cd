// Priors learnt from the stream itself, in bounded memory.
//
// A verdict needs the chance that the key of an arrival is in the window. It is measured, not
// modelled:
//
//   sketch   8-bit counters, two per key, each halved once per window, say how often a key came
//            recently. Arrivals are classed by the power of two of that number.
//   shadow   for a sample of the key space, an exact table of when each key was last written. For
//            each class, the share of sampled arrivals whose key was in the window is the prior of
//            all arrivals of that class. When the shadow is full, the sample is halved.
//
// A prior that is too high costs nothing: the verdict is then the filter's own. One that is too low
// lets duplicates through. So the prior is the greater of two estimates: one over the last
// thousands of sampled arrivals, with two standard errors added, and one over the last hundred,
// which notices a change of the stream quickly. A class with too few arrivals has a prior near 1,
// so that only a key whose trace is itself too old for the window is let through. The shadow knows
// the truth, so it also adds up what the verdicts on sampled arrivals would have cost with and
// without priors: while they cost more with priors, no priors are used.
//
// Source   Ours; Dautrich & Ravishankar 2013 take priors as known.
// Cost     a key: two counters, and for a sampled one a look at the shadow; no allocation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sluice/filters/window_contract.hpp"
#include "sluice/infer/priors.hpp"

namespace sluice {

class LearntPriors {
 public:
  struct Params {
    std::uint64_t window = 0;  // in ticks
    Anchor anchor = Anchor::delivered;
    std::size_t bytes = 64 << 10;  // 4 KiB or more; half of it for the shadow
    bool by_time = false;          // arrive() advances the ticks, not each key written
  };

  // Throws BadParameters.
  explicit LearntPriors(const Params& params);

  // The prior of an arrival; unknown while priors raise the cost.
  Prior of(const Digest& digest) const noexcept;
  // The same even while they raise the cost: for learn().
  Prior estimate(const Digest& digest) const noexcept;

  // Reports the outcome of an arrival: whether it was delivered, and what the verdict would have
  // been without a prior and with estimate().
  struct Outcome {
    bool delivered = false;
    Verdict filter = Verdict::distinct;
    Verdict inferred = Verdict::distinct;
    Costs costs = {};
  };
  void learn(const Digest& digest, const Outcome& outcome) noexcept;
  // For ticks by time: it is now `tick`. A step back is ignored.
  void arrive(std::uint64_t tick) noexcept;

  std::size_t bytes() const noexcept;
  // The sample is one key in this many.
  std::uint64_t sample() const noexcept { return sample_mask_ + 1; }
  // Whether priors are not used because they recently raised the cost.
  bool withheld() const noexcept { return withheld_; }

 private:
  static constexpr unsigned kClasses = 9;  // 0, 1, 2–3, …, 128 and more

  // The share over two spans of time.
  struct Share {
    double asked = 0, in_window = 0;
    double asked_lately = 0, in_window_lately = 0;
    double chance = 0;  // the estimate; 0: too few arrivals
    void add(bool inside) noexcept;
  };
  struct Shadow {
    std::uint64_t key = 0;  // 0: empty
    std::uint64_t tick = 0;
  };

  static std::uint64_t mix(const Digest& digest) noexcept;
  unsigned class_of(std::uint64_t mixed) const noexcept;
  void count(std::uint64_t mixed) noexcept;
  void fade(std::uint64_t ticks) noexcept;
  bool alive(const Shadow& shadow) const noexcept { return tick_ - shadow.tick < params_.window; }
  Shadow* find(std::uint64_t key) noexcept;
  void write(std::uint64_t key) noexcept;
  void thin() noexcept;
  void account(const Outcome& outcome, bool in_window) noexcept;

  Params params_;
  std::array<Share, kClasses> shares_{};
  std::vector<std::uint8_t> counters_;  // a power of two
  std::vector<Shadow> shadow_, spare_;  // a power of two each
  std::size_t shadows_ = 0;             // entries in use
  std::uint64_t sample_mask_ = 0;
  std::uint64_t tick_ = 0;
  std::uint64_t halving_due_ = 0;               // counters to be halved, times the window
  std::size_t hand_ = 0;                        // the next of them
  double filter_cost_ = 0, inferred_cost_ = 0;  // recent
  bool withheld_ = false;
};

}  // namespace sluice
