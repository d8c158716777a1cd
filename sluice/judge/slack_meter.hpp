// Slack meter: how many records a window has held back although their keys were older than the window.
//
// A key leaves a window together with the generation in which it was written, so it may stay longer than
// the window, by up to the slack. Who means the window exactly has lost the records that it holds back in
// that time. A filter knows the generation of a key and not its time. So the times of a sample of the keys
// are kept here, exactly:
//
//   counted    duplicates whose key was let through (with `refreshed`: seen) a window or more before
//   predicted  duplicates whose key was inside the window, but would have been outside a little later:
//              by the time for which a key is kept past the window, on average. As many are expected past
//              it, if repeats are as frequent there as before its end. Keys that come back after just a
//              window are counted, and not predicted.
//
//   unknown    duplicates whose key came before the meter did, with a loaded state or a journal. Such a
//              key was written some time in the past, and nobody knows when: the duplicate may belong to
//              either count or to none.
//
// At first every key is in the sample. It is halved when its table is full of keys inside the window, and
// after every 32,768 records that were looked at; a record then counts for 2, 4, 8, … records.
//
// Ages run to what now was when the window judged the record. The meter looks at a batch after the window,
// so where a time was not believed, or may not have been, a clock of its own reads the records again.
//
// Cost     Two instructions per record, some hundred for one in the sample, and up to 192 KiB. If records
//          come out of order, also the times between two keys of the sample, where a verdict depends on
//          them. Some ten instructions per record of a batch with a time that was not believed.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "sluice/audit/shadow.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

class SlackMeter {
 public:
  // The window must outlive it.
  explicit SlackMeter(const Window& window);

  // The window was given keys that look() was not shown: repeats of keys that the meter does not know are
  // `unknown`, until these have left the window.
  void missed_keys();

  // The window has taken back a key.
  void forget(const Digest& digest) noexcept;

  // Takes records after the window has judged them, in order. `times` and `late` may be empty: then all
  // came now. The counts do not depend on how records are cut into batches, the prediction does not if a
  // batch ends after until_look() records.
  void look(std::span<const Digest> digests, std::span<const Verdict> verdicts,
            std::span<const Nanoseconds> times, std::span<const bool> late);
  // Never 0.
  std::uint64_t until_look() const noexcept { return due_ - records_; }

  // Each record in the sample stands for so many; 1: all were counted.
  std::uint64_t weight() const noexcept { return weight_; }
  std::uint64_t counted() const noexcept { return past_; }
  std::uint64_t predicted() const noexcept { return before_; }
  std::uint64_t unknown() const noexcept;
  std::uint64_t bytes() const noexcept { return times_.bytes(); }

 private:
  enum class Age : std::uint8_t { inside, near_end, past };
  // Of a batch in which all times were believed.
  struct Passing {
    std::span<const Nanoseconds> times;
    Nanoseconds latest;      // now, after all of them
    std::size_t passed = 0;  // so many of them are in now_
    std::size_t here = 0;    // the record that is judged
  };
  // When a record is written; where now_ may be less than it is, the times that it lacks.
  struct Moment {
    std::int64_t written;
    Passing* passing;
  };

  Age age_at(std::int64_t now, std::int64_t last) const noexcept {
    return now - last < near_age_   ? Age::inside
           : now - last < past_age_ ? Age::near_end
                                    : Age::past;
  }
  bool refreshed() const noexcept { return window_->params().anchor == Anchor::refreshed; }
  bool sampled(const Digest& digest) const noexcept;
  void follow_window() noexcept;
  bool believed_all() noexcept;
  template <class At>
  void each_sampled(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                    std::span<const bool> late, At at);
  void look_by_number(std::span<const Digest> digests, std::span<const Verdict> verdicts);
  void look_at_believed(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                        std::span<const Nanoseconds> times, std::span<const bool> late);
  void read_each(std::span<const Digest> digests, std::span<const Verdict> verdicts,
                 std::span<const Nanoseconds> times, std::span<const bool> late);
  void start_afresh();
  void believe_claimant();
  void pass(Passing* passing) noexcept;
  void count(const Shadow::Entry& entry, Passing* passing);
  void judge(const Digest& digest, bool duplicate, const Moment& moment);
  void write(const Digest& digest, std::int64_t written);
  void set_ages();
  std::int64_t longest_stay() const;
  void make_room();
  void halve();

  const Window* window_;
  Shadow times_;      // of a count window: the number of the record among those that count
  EventClock clock_;  // as the window's, up to the last look
  std::uint64_t disbelieved_ = 0;  // by the window, up to the last look
  std::int64_t now_ = 0;
  std::int64_t past_age_ = 0, near_age_ = 0;  // outside the window, and nearly
  std::uint64_t threshold_ = ~std::uint64_t{0};
  std::uint64_t weight_ = 1, looks_ = 0;
  std::uint64_t past_ = 0, before_ = 0;  // outside the window, and inside, but not much longer
  std::uint64_t unknown_ = 0;
  // Keys that look() was not shown are no later than the first, and have left at the second.
  std::int64_t missed_until_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t all_known_from_ = std::numeric_limits<std::int64_t>::min();
  std::uint64_t records_ = 0, due_ = 0;  // the ages are asked for again after so many
};

}  // namespace sluice
