// What filters tell about the age of a key: readers for the filters that know ages, and the
// evidence of a running Window over all its stages.
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

// What a window filter tells about a key's age, as a likelihood over ages (model::AgeEvidence).
//
//   timing   the age λ of the key's oldest timers, and how many they are (Dautrich & Ravishankar
//            2013, Lemmas 1 and 2)
//   cohort   the age of the slot with the key's fingerprint, and the chance that it is another
//            key's
//
// Filters know nothing about this. The caller says how far the present generation is.

// The clock of a window, in ticks: arrivals with the anchor `refreshed`, otherwise deliveries; of a
// time window, any unit.
struct Pace {
  double window = 0;    // w
  double block = 0;     // B: a generation
  double position = 0;  // b: ticks since the last rotation
};

// For a Timing filter.
//
// Timers that look λ blocks old may belong to another key that came in that block. The paper counts
// all D(B) keys of a block; but those that have come again since have newer timers. Only the keys
// that last came in that block are left, D(λB + b) − D((λ − 1)B + b) of them. Counting only these
// reduces the error of eq. 28 from .04 to .01 (docs/inference.md). `printed` selects the paper's
// formula.
class TimingReader {
 public:
  // `distinct` is D(j) of the stream. Without it, and always with the anchor `delivered`, the
  // filter's own counts are used.
  TimingReader(const Timing& filter, const Pace& pace, Anchor anchor,
               std::optional<model::DistinctKeys> distinct = {}, bool printed = false);

  // Empty: the filter has no trace, so the key is not in the window.
  std::optional<model::AgeEvidence> read(const Timing& filter, const Digest& digest,
                                         const Pace& pace) const noexcept;
  // The same for many keys of which the filter has a trace.
  void read(const Timing& filter, std::span<const Digest> digests, const Pace& pace,
            std::span<model::AgeEvidence> evidence) const noexcept;

 private:
  double touched(const Timing& filter, const StampedWindow::Trace& trace, const Pace& pace) const;
  double keys_of(const Timing& filter, unsigned age, const Pace& pace) const;

  std::optional<model::DistinctKeys> distinct_;
  double log_untouched_;  // ln of the chance that a key does not touch a timer
  bool printed_;
  double block_keys_ = 0;  // distinct keys per block for which touched_ was computed
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
  // The chance that other keys have left such a slot `age` generations ago.
  double touched(const Cohort& filter, unsigned age) const noexcept {
    return match_ * static_cast<double>(filter.keys_aged(age));
  }
  // The evidence of a slot that was written `age` generations ago.
  model::AgeEvidence of_age(const Cohort& filter, unsigned age, const Pace& pace) const noexcept;

 private:
  Anchor anchor_;
  double match_;  // chance that a given other live key looks like this one
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

// What a running Window tells about a key's age: the combined evidence of its stages.
//
// A key's trace is in the stage that was the newest when the key came. If only one stage has a
// trace, that is the evidence. With traces in two stages, each may be the key's own or another
// key's:
//
//   delivered   the key has the younger age (and the older trace is another key's), or the older
//               age (and the younger trace is another key's), or it is outside (and both are)
//   refreshed   the last writing counts, so only the younger trace is used
//
// Only stages that know ages can be used: cohort and timing.
class WindowEvidence {
 public:
  // Whether its filter tells ages. A landmark window has no generations to distinguish.
  static bool can_read(const Window& window);

  // `window` must outlive this, and can_read(window) must hold.
  explicit WindowEvidence(const Window& window);

  // How far the window's present generation is. In a time window several records may have the same
  // time, and then more of the generation has passed than the clock says: the time in which that
  // many keys are usually written. `keys_a_tick` is how many are written per tick; 0: not known.
  // With `refreshed` the clock decides. `time` is the record's time.
  Pace pace(Nanoseconds time, double keys_a_tick);

  // Empty: no stage has a trace.
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

// The combined evidence of two traces, `a` first; `hold` is how long a key is held.
model::AgeEvidence both(const model::AgeEvidence& a, const model::AgeEvidence& b, Anchor anchor,
                        double hold);

}  // namespace sluice
