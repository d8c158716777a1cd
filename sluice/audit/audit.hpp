// An audit of a running filter: how often it is wrong, measured.
//
// The audit remembers a sample of the keys exactly, each with the time of its last delivery, and
// compares the filter's verdicts on them with the truth. A key is in the sample if its digest falls
// into a fixed part of the hash space.
//
//   distinct    no event of this key was delivered before, or none within the window. Judged
//               duplicate, it is a false positive: lost. Later events of its key are not counted
//               until one is delivered or the lost event has left the window.
//   duplicate   one was delivered within the window. Judged distinct, it is a false negative.
//
// For a key past the window but within its slack either verdict is right, and neither is counted.
// With the anchor `refreshed` a key's window starts at its last arrival instead. What the audit
// cannot know is not counted: keys whose time was not believed, and, if the filter was not empty
// when the audit began, keys that the audit sees for the first time (until a window has passed).
//
// The rates are those of all keys in this run, and the intervals say how far a sample of the keys may
// be from them (key_sums.hpp). A sample cannot see errors much rarer than one in its own size.
// Ghosts can (ghosts.hpp). The audit asks the filter for some of them between batches, and for as
// many more as the caller has time for.
//
// Cost     about three instructions per key; 48 bytes and some free room for each key of the sample.
//          Its memory comes from the filter's resource. When it is used up, or the resource gives
//          no more, keys that have left the window are dropped; then half of the sample is dropped
//          and the counts so far get half the weight, so that the rates still describe the whole
//          run. If halving does not help, the keys are not digests, or were chosen by somebody who
//          knows the secret: the sample is dropped, and the keys so far are unknown from then on
//          (Report::knows_all).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "sluice/audit/ghosts.hpp"
#include "sluice/audit/key_sums.hpp"
#include "sluice/audit/rate.hpp"
#include "sluice/audit/shadow.hpp"
#include "sluice/base/fates.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/kernels/sample.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

class Audit {
 public:
  static constexpr std::uint64_t kMostSample = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kLeastBytes = 4096;
  // Times and ages lie between this and -this, as those of a window: no difference overflows.
  static constexpr std::int64_t kFarthest = (std::int64_t{1} << 62) - 1;

  struct Params {
    std::uint64_t sample = 1024;                        // one key in this many
    std::uint64_t most_bytes = std::uint64_t{1} << 20;  // for the sample
    std::uint64_t seed = 0;                             // of the ghosts
    bool fresh = true;                                  // the filter has seen nothing yet
  };

  struct Report {
    std::uint64_t sample = 0;      // one key in this many, at present
    unsigned doublings = 0;        // how often the sample was halved to fit
    std::uint64_t keys = 0;        // remembered exactly
    std::uint64_t bytes = 0;       // of those keys
    Rate positives;                // false positives among distinct events
    Rate negatives;                // false negatives among duplicates
    Rate ghosts;                   // ghosts found, on average over the distinct events of the run
    Rate ghosts_now;               // ghosts found at the last probe
    double undecided = 0;          // sampled events whose truth is unknown
    std::uint64_t most_bytes = 0;  // limit for the sample
    bool knows_all = true;         // false: the filter may hold keys from before the audit
  };

  // `filter` must outlive this. Throws BadParameters and NoMemory.
  Audit(const Params& params, const AnyFilter& filter);

  // Takes the verdicts that the filter has just given. The spans have equal length, in the order of
  // judging; `times` and `late` are as in Window::judge, and empty if records have no time of their
  // own. Where the resource has no memory for a larger sample, half of it is dropped: nothing fails.
  void observe(std::span<const Digest> digests, std::span<const Verdict> verdicts,
               std::span<const Nanoseconds> times = {}, std::span<const bool> late = {});

  // The key was taken back: its next event is distinct. `found`: whether the filter held it. If it
  // did not, nothing is known about the key from now on.
  void forget(const Digest& digest, bool found);

  // Writes down, or is told, where there is no memory for a larger sample, in the calls that follow; null: neither.
  // It must outlive them.
  void set_fates(Fates* fates) noexcept { fates_ = fates; }

  // Asks for `count` ghosts, or fewer: it stops after Ghosts::kEnoughFound. observe() asks for some
  // now and then.
  void ask_ghosts(std::uint64_t count);

  Report report() const;

  // Writes the counts and the keys of the sample: at most 48 bytes per key, and 400 more. This can
  // be decoded whatever happened before, even if the audit came from bytes that somebody forged.
  void encode(Encoder& to) const;
  // Continues the encoded audit, which must have been of the same filter in the same state. `from`
  // must end with it. Throws CorruptSnapshot, NoMemory, and BadParameters when its sample is larger
  // than this audit's limit; this audit is then unchanged.
  void decode(Decoder& from);

  std::uint64_t bytes() const noexcept { return shadow_.bytes(); }  // taken from the resource

  // Whether a key is in a sample of one in `sample` (kernels/sample.hpp).
  static bool in_sample(const Digest& digest, std::uint64_t sample) noexcept {
    return kernels::sample_word(digest) <= threshold_of(sample);
  }

 private:
  enum class Truth : std::uint8_t { distinct, duplicate, either };
  struct Verdicts {
    std::int64_t distinct = 0, duplicate = 0;
  };

  // A sample of one in 2n is part of the sample of one in n.
  static std::uint64_t threshold_of(std::uint64_t sample) noexcept {
    return std::numeric_limits<std::uint64_t>::max() / sample;
  }

  bool sampled(const Digest& digest) const noexcept {
    return kernels::sample_word(digest) <= threshold_;
  }
  std::size_t next_sampled(std::span<const Digest> digests, std::size_t from) const noexcept {
    return kernels::next_sampled(digests, from, threshold_);
  }
  Verdicts observe_counted(std::span<const Digest> digests, std::span<const Verdict> verdicts);
  Verdicts observe_arrived(std::span<const Digest> digests, std::span<const Verdict> verdicts);
  Verdicts observe_timed(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                         std::span<const Nanoseconds> times, std::span<const bool> late);
  EventClock::Reading read(const Digest& digest, Nanoseconds& time);
  std::int64_t read_all(std::span<const Digest> digests, std::span<const Nanoseconds> times);
  void judge(const Digest& digest, Verdict verdict, std::int64_t time, std::int64_t now);
  Truth truth_of(const Shadow::Entry* entry, std::int64_t now) const noexcept;
  KeyCounts count(Truth truth, Verdict verdict) noexcept;
  Shadow::Entry* remember(const Digest& digest, std::int64_t time, std::int64_t now, bool lost);
  void settle(const Verdicts& verdicts);
  void make_room(std::int64_t now);
  bool grow() noexcept;
  void decode_shadow(Decoder& from);
  template <class Alive>
  std::optional<unsigned> halvings_for(std::size_t most, const Alive& alive) const;
  void halve();
  bool inside(std::int64_t last, std::int64_t now) const noexcept;
  bool outside(std::int64_t last, std::int64_t now) const noexcept;
  std::int64_t age_past(double slack) const noexcept;
  void look_at_slack();
  void lose_track(std::int64_t now);
  void lose_track_of(const Digest& digest);
  void start_afresh();
  bool knows_all(std::int64_t now) const noexcept { return knows_all_ || outside(start_, now); }

  Params params_;
  const AnyFilter& filter_;
  const Window* window_;  // the filter, if it is a window
  bool refreshed_ = false;
  bool passes_duplicates_;  // the filter may take a duplicate for distinct
  bool knows_all_;          // a key that is not in the shadow is known to be distinct
  std::uint64_t threshold_;
  std::int64_t size_ = 0;         // of the window
  std::int64_t outside_age_ = 0;  // the age at which a key is surely forgotten
  EventClock clock_;              // as the window's, one batch behind
  std::int64_t start_ = 0;        // when the audit began
  std::int64_t now_ = 0;          // deliveries, arrivals or nanoseconds
  Shadow shadow_;
  KeySums dropped_;  // keys that are no longer in the shadow
  Totals totals_;
  bool counts_totals_ = true;  // all keys were known when this batch began
  KeyCounts sampled_;          // of all keys of the sample, in this batch
  Report counts_;
  Ghosts ghosts_;
  Fates* fates_ = nullptr;
};

}  // namespace sluice
