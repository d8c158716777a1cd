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
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "sluice/infer/age_reader.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

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
