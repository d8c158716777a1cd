// What filters show of the age of a key: the readers of the filters that know ages, and a running
// Window's evidence over all its stages.
#pragma once

#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "sluice/filters/cohort/cohort.hpp"
#include "sluice/filters/timing/timing.hpp"
#include "sluice/model/distinct_keys.hpp"
#include "sluice/model/posterior.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

// What a window filter shows of a key's age, as a likelihood over ages (model::AgeEvidence).
//
//   timing   the age λ of the key's oldest timers, and how many they are (Dautrich & Ravishankar
//            2013, Lemmas 1 and 2)
//   cohort   the age of the slot with the key's fingerprint, against the chance that it is
//            another's
//
// Filters know nothing of this. Whoever drives the filter says where in a generation it stands.

// The clock of a window, in ticks: arrivals with the anchor `refreshed`, otherwise deliveries; of a
// time window, any unit.
struct Pace {
  double window = 0;    // w
  double block = 0;     // B: a generation
  double position = 0;  // b: ticks since the last rotation
};

// For a Timing filter.
//
// Timers that look as old as λ blocks may be another's, one that came in that block. The paper
// takes all D(B) keys of a block for such; but those that came again since have newer timers. What
// is left are the keys that came last in that block, D(λB + b) − D((λ − 1)B + b) of them: that
// takes the error of eq. 28 from .04 to .01 (docs/inference.md). `printed` is the paper's way.
class TimingReader {
 public:
  // `distinct` is D(j) of the stream. Without it, and always with the anchor `delivered`, the
  // filter's own counts are used.
  TimingReader(const Timing& filter, const Pace& pace, Anchor anchor,
               std::optional<model::DistinctKeys> distinct = {}, bool printed = false);

  // Nothing: the filter has no trace, the key is not in the window.
  std::optional<model::AgeEvidence> read(const Timing& filter, const Digest& digest,
                                         const Pace& pace) const noexcept;
  // The same for many that the filter has a trace of.
  void read(const Timing& filter, std::span<const Digest> digests, const Pace& pace,
            std::span<model::AgeEvidence> evidence) const noexcept;

 private:
  double touched(const Timing& filter, const StampedWindow::Trace& trace, const Pace& pace) const;
  double keys_of(const Timing& filter, unsigned age, const Pace& pace) const;

  std::optional<model::DistinctKeys> distinct_;
  double log_untouched_;  // ln of the chance that one key leaves a timer alone
  bool printed_;
  double block_keys_ = 0;  // distinct keys of a block that the cache below is for
  std::array<double, StampedWindow::kMostProbes + 1> touched_{};  // F(c, 0, B) by c
};

// For a Cohort filter.
class CohortReader {
 public:
  CohortReader(const Cohort& filter, const Pace& pace, Anchor anchor,
               std::optional<model::DistinctKeys> distinct = {}, bool printed = false);
  std::optional<model::AgeEvidence> read(const Cohort& filter, const Digest& digest,
                                         const Pace& pace) const noexcept;
  void read(const Cohort& filter, std::span<const Digest> digests, const Pace& pace,
            std::span<model::AgeEvidence> evidence) const noexcept;
  // The chance that others have left such a slot so many generations ago.
  double touched(const Cohort& filter, unsigned age) const noexcept {
    return match_ * static_cast<double>(filter.keys_aged(age));
  }
  // Of a slot that was written so many generations ago.
  model::AgeEvidence of_age(const Cohort& filter, unsigned age, const Pace& pace) const noexcept;

 private:
  Anchor anchor_;
  double match_;  // chance that one live key elsewhere looks like this one
};

template <class F>
struct AgeReaderOf;
template <>
struct AgeReaderOf<Timing> {
  using Type = TimingReader;
};
template <>
struct AgeReaderOf<Cohort> {
  using Type = CohortReader;
};

// What a running Window shows of a key's age: the evidence of its stages together.
//
// A key's trace is in the stage that took the keys when it came. Where only one stage has a trace,
// that is the evidence. With traces in two, the younger is the key's own or another's, and so is
// the older:
//
//   delivered   the key is as young as the one (and the other is a stranger's), as old as the other
//               (and the one is a stranger's), or outside (and both are)
//   refreshed   what was written last counts, and the younger trace is all that is looked at
//
// Only stages that know ages show any: cohort and timing.
class WindowEvidence {
 public:
  // Whether its filter shows ages. A landmark window has no generations to tell apart.
  static bool can_read(const Window& window);

  // `window` must outlive this, and can be read.
  explicit WindowEvidence(const Window& window);

  // Where the window stands. By time, records of one moment come together, and what has passed of a
  // generation is then more than the clock says: as long as it takes for so many keys as were
  // written. `keys_a_tick` is how many that usually are; 0: not known. With `refreshed`, the
  // clock's. `time` is the record's.
  Pace pace(Nanoseconds time, double keys_a_tick);

  // Nothing: no stage has a trace.
  std::optional<model::AgeEvidence> read(const Digest& digest, const Pace& pace);

 private:
  template <class F>
  struct Stage {
    const F* filter;
    typename AgeReaderOf<F>::Type reader;
  };
  using AnyStage = std::variant<Stage<Cohort>, Stage<Timing>>;

  void look_up_stages();

  const Window& window_;
  std::uint64_t changes_ = 0;
  std::vector<AnyStage> stages_;  // newest first
};

// The evidence of two traces, of which `a` is looked at first; `hold` is how long a key is held.
model::AgeEvidence both(const model::AgeEvidence& a, const model::AgeEvidence& b, Anchor anchor,
                        double hold);

}  // namespace sluice
