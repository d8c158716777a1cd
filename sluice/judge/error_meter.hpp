// Error meter: how many distinct events a filter has lost, by its own prediction, and for how long
// it erred more often than it was asked to.
//
// A filter's predicted error changes with its fill. The judge asks for it every so many keys, counted
// from the first, so that the sums are the same however a stream is cut into batches.
//
// Cost     One look, at most some microseconds, for a sixteenth of the filter's keys (64 to 16,384).
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/filters/contract.hpp"

namespace sluice {

class ErrorMeter {
 public:
  explicit ErrorMeter(const FilterStats& stats) noexcept { look(stats); }

  // Keys that can be judged before the next look(). Never 0 between two calls of the judge.
  std::uint64_t until_look() const noexcept { return next_look_ - distinct_ - others_; }
  // So many were judged, no more than until_look(): let through as new, and others. What came too
  // late to be asked for is neither.
  void count(std::uint64_t distinct, std::uint64_t duplicates, std::uint64_t late) noexcept {
    distinct_ += distinct;
    duplicates_ += duplicates;
    others_ += duplicates + late;
  }
  void look(const FilterStats& stats) noexcept;

  // Whether the predicted error was above the target at any look.
  bool was_over() const noexcept { return over_target_ > 0; }
  // The three that follow: up to now, when the filter's statistics are these.
  double expected_lost(const FilterStats& stats) const noexcept;
  // Keys judged while the predicted error was above the target.
  std::uint64_t over_target(const FilterStats& stats) const noexcept;
  // The highest predicted error.
  double worst_fpr(const FilterStats& stats) const noexcept;

 private:
  struct Losses {
    void add(double fpr, std::uint64_t distinct, std::uint64_t duplicates) noexcept;

    double few = 0, most = 0;  // while fewer or more than half of the new keys were lost
    double held_back = 0;      // of the second
  };
  // With what was judged since the last look.
  Losses losses(const FilterStats& stats) const noexcept;

  std::uint64_t distinct_ = 0, duplicates_ = 0, others_ = 0;  // since the last look
  std::uint64_t next_look_ = 0;
  double predicted_fpr_ = 0;  // at the last look
  Losses losses_;
  std::uint64_t over_target_ = 0;
  double worst_fpr_ = 0;
};

// Lost events for each one that was let through, when new ones are lost at this rate. Where all are
// lost there is nothing to count them by: a million to one stands for more.
double loss_odds(double fpr) noexcept;

}  // namespace sluice
