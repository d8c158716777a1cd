// An audit of a running filter: how often it is wrong, measured.
//
// Keys whose digest falls into a sample of the hash space are also remembered exactly, with the
// time of their last delivery by the filter, and its verdicts on them are compared with the truth:
//
//   distinct    no event of this key was delivered before, or none within the window. Judged
//               duplicate, it is a false positive: lost. What follows of its key is not counted
//               until it is delivered or the lost event has left the window.
//   duplicate   one was delivered within the window. Judged distinct, it is a false negative.
//
// Past the window but within its slack either verdict is right and none is counted. With the anchor
// `refreshed` a key's window starts at its last arrival instead. What the audit cannot know is not
// counted: of a filter that was not empty, keys that it first sees (until a window has passed);
// keys whose time was not believed.
//
// A sample cannot see errors much rarer than one in its own size. Ghosts can: random digests that
// were never inserted, asked between batches, and as many more as the caller has time for.
//
// Cost     about two instructions per key; 24 bytes and some room for each key of the
//          sample. When the memory given is used up, half of the sample is dropped, and what was
//          counted so far has half the weight: rates stay those of the whole run.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "sluice/audit/rate.hpp"
#include "sluice/audit/shadow.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/kernels/sample.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

class Audit {
 public:
  static constexpr std::uint64_t kMostSample = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kLeastBytes = 4096;
  // Ghosts asked, and after how many records. More would not leave the audit within 3 % of the
  // instructions of a run (docs/audit.md).
  static constexpr std::size_t kGhosts = 128;
  static constexpr std::uint64_t kGhostsEvery = 8192;
  // By so many that were taken for keys a rate is known to 2 %, and more ghosts tell little.
  static constexpr double kEnoughErrors = 10'000;

  struct Params {
    std::uint64_t sample = 1024;                        // one key in so many
    std::uint64_t most_bytes = std::uint64_t{1} << 20;  // for the sample
    std::uint64_t seed = 0;                             // of the ghosts
    bool fresh = true;                                  // the filter has seen nothing yet
  };

  struct Report {
    std::uint64_t sample = 0;      // one key in so many, at present
    unsigned doublings = 0;        // how often it had to be halved to fit
    std::uint64_t keys = 0;        // remembered exactly
    std::uint64_t bytes = 0;       // for those
    Rate positives;                // false positives among distinct events
    Rate negatives;                // false negatives among duplicates
    Rate ghosts;                   // ghosts that the filter takes for keys
    double undecided = 0;          // sampled events that nothing can be said of
    std::uint64_t most_bytes = 0;  // that the sample may take
    bool knows_all = true;         // false: the filter may hold keys from before the audit
  };

  // `filter` must outlive this. Throws BadParameters.
  Audit(const Params& params, const AnyFilter& filter);

  // What the filter has just said. Spans of equal length, in the order that they were judged in;
  // `times` and `late` as for Window::judge, and empty where records have no time of their own.
  // Throws std::bad_alloc.
  void observe(std::span<const Digest> digests, std::span<const Verdict> verdicts,
               std::span<const Nanoseconds> times = {}, std::span<const bool> late = {});

  // The key was taken back: what comes of it next is distinct. `found`: the filter held it; where
  // it says that it did not, nothing is known of the key from now on.
  void forget(const Digest& digest, bool found);

  // Asks so many ghosts, or until kEnoughErrors were taken for keys. observe() asks some now and
  // then; the rate is that over all of them.
  void ask_ghosts(std::uint64_t count);

  Report report() const;

  // What it has counted and the keys of its sample; at most 24 bytes for each of them and 200 more.
  void encode(Encoder& to) const;
  // Goes on as the one that was encoded, which was of the same filter in the same state. `from` ends
  // with it. Throws CorruptSnapshot, and BadParameters when its sample takes more than it may here;
  // this audit is then as it was.
  void decode(Decoder& from);

  std::uint64_t bytes() const noexcept { return shadow_.bytes(); }  // allocated

  // Whether a key is in a sample of one in `sample` (kernels/sample.hpp).
  static bool in_sample(const Digest& digest, std::uint64_t sample) noexcept {
    return kernels::sample_word(digest) <= threshold_of(sample);
  }

 private:
  enum class Truth : std::uint8_t { distinct, duplicate, either };

  // Samples of twice the number are part of this one.
  static std::uint64_t threshold_of(std::uint64_t sample) noexcept {
    return std::numeric_limits<std::uint64_t>::max() / sample;
  }

  bool sampled(const Digest& digest) const noexcept {
    return kernels::sample_word(digest) <= threshold_;
  }
  std::size_t next_sampled(std::span<const Digest> digests, std::size_t from) const noexcept {
    return kernels::next_sampled(digests, from, threshold_);
  }
  void observe_counted(std::span<const Digest> digests, std::span<const Verdict> verdicts);
  void observe_arrived(std::span<const Digest> digests, std::span<const Verdict> verdicts);
  void observe_timed(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                     std::span<const Nanoseconds> times, std::span<const bool> late);
  EventClock::Reading read(Nanoseconds& time);
  void read_all(std::span<const Nanoseconds> times);
  void judge(const Digest& digest, Verdict verdict, std::int64_t time, std::int64_t now);
  Truth truth_of(const Shadow::Entry* entry, std::int64_t now) const noexcept;
  void count(Truth truth, Verdict verdict) noexcept;
  void remember(const Digest& digest, std::int64_t time, std::int64_t now, bool lost);
  void make_room(std::int64_t now);
  void decode_shadow(Decoder& from);
  void halve();
  bool inside(std::int64_t last, std::int64_t now) const noexcept;
  bool outside(std::int64_t last, std::int64_t now) const noexcept;
  void look_at_slack();
  void lose_track(std::int64_t now);
  bool knows_all(std::int64_t now) const noexcept { return knows_all_ || outside(start_, now); }

  Params params_;
  const AnyFilter& filter_;
  const Window* window_;  // what the filter is, if it is one
  bool refreshed_ = false;
  bool knows_all_;  // of a key that is not in the shadow it is known that it is distinct
  std::uint64_t threshold_;
  std::int64_t size_ = 0;         // of the window
  std::int64_t outside_age_ = 0;  // from which on a key is surely forgotten
  EventClock clock_;              // the window's, a batch behind
  std::int64_t start_ = 0;        // when the audit began
  std::int64_t now_ = 0;          // deliveries, arrivals or nanoseconds
  Shadow shadow_;
  Report counts_;
  SplitMix64 random_;
  std::uint64_t until_ghosts_ = kGhostsEvery;
};

}  // namespace sluice
