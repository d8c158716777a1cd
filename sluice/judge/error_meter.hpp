// Error meter: how many distinct events a filter has lost, by its own prediction, and for how long
// it erred more often than it was asked to.
//
// A filter's predicted error changes with its fill. The judge asks for it after fixed numbers of
// keys, counted from the first key, so that the sums do not depend on how a stream is cut into
// batches.
//
// Cost     One look per sixteenth of the filter's keys (64 to 16,384 keys), and at first up to 45 more: after
//          4 keys, and after each quarter more; while neither its keys nor its error change, as of a window
//          that is full, one per 1,024 to 16,384. A look takes a few microseconds, and half a millisecond
//          for apbbf in columns or lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sluice/filters/contract.hpp"

namespace sluice {

class ErrorMeter {
 public:
  explicit ErrorMeter(const FilterStats& stats) noexcept { look(stats); }

  // Keys that can be judged before the next look(). Never 0 between two calls of the judge.
  std::uint64_t until_look() const noexcept { return next_look_ - distinct_ - others_; }
  // Counts keys that were judged, at most until_look(): those that the filter took for new, and
  // others. Late records do not count. `first` is how many came for the first time, if that is known:
  // a filter that forgets takes others for new, too.
  void count(std::uint64_t distinct, std::uint64_t duplicates, std::uint64_t late,
             std::optional<double> first = {}) noexcept {
    distinct_ += distinct;
    duplicates_ += duplicates;
    others_ += duplicates + late;
    knows_first_ = first.has_value();
    first_ += first.value_or(0);
  }
  void look(const FilterStats& stats) noexcept;

  // Whether the predicted error was above the target at any look.
  bool was_over() const noexcept { return over_target_ > 0; }
  // The next three: up to now, given the filter's present statistics.
  double expected_lost(const FilterStats& stats) const noexcept;
  // Keys judged while the predicted error was above the target.
  std::uint64_t over_target(const FilterStats& stats) const noexcept;
  // The highest predicted error.
  double worst_fpr(const FilterStats& stats) const noexcept;

 private:
  struct Losses {
    void add(double fpr, std::uint64_t distinct, std::uint64_t duplicates) noexcept;

    double few = 0, most = 0;          // while fewer or more than half of the new keys were lost
    double held_back = 0;              // of the second
    double new_keys = 0, records = 0;  // of the first
  };
  // Includes the keys judged since the last look.
  Losses losses(const FilterStats& stats) const noexcept;

  std::uint64_t distinct_ = 0, duplicates_ = 0, others_ = 0;  // since the last look
  double first_ = 0;                                          // of these, if knows_first_
  bool knows_first_ = false;
  std::uint64_t next_look_ = 0;
  double predicted_fpr_ = 0;     // at the last look
  std::uint64_t keys_held_ = 0;  // at the last look
  Losses losses_;
  std::uint64_t over_target_ = 0;
  double worst_fpr_ = 0;
  std::uint64_t records_ = 0;  // up to the last look
};

// Lost events per event let through, if new keys are lost at this rate; at most a million.
double loss_odds(double fpr) noexcept;

}  // namespace sluice
