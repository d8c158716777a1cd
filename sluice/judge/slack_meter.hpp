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
// Cost     Two instructions per record, some hundred for one in the sample, and up to 192 KiB. If records
//          come out of order, also the times between two keys of the sample, where a verdict depends on
//          them.
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

  // Takes records after the window has judged them, in order. `times` and `late` may be empty: then all
  // came now.
  void look(std::span<const Digest> digests, std::span<const Verdict> verdicts,
            std::span<const Nanoseconds> times, std::span<const bool> late);

  // Each record in the sample stands for so many; 1: all were counted.
  std::uint64_t weight() const noexcept { return weight_; }
  std::uint64_t counted() const noexcept { return past_; }
  std::uint64_t predicted() const noexcept { return before_; }
  std::uint64_t unknown() const noexcept { return unknown_; }
  std::uint64_t bytes() const noexcept { return times_.bytes(); }

 private:
  enum class Age : std::uint8_t { inside, near_end, past };
  // Of a batch with times of its own.
  struct Times {
    std::span<const Nanoseconds> all;
    Nanoseconds latest;
    std::size_t passed = 0;  // so many of them are in now_
  };

  Age age_at(std::int64_t now, std::int64_t last) const noexcept {
    return now - last < near_age_   ? Age::inside
           : now - last < past_age_ ? Age::near_end
                                    : Age::past;
  }
  void start_afresh(std::size_t at, Times& times);
  void pass(Times& times, std::size_t end) noexcept;
  std::int64_t time_of(std::size_t at, Times& times) noexcept;
  void count(const Shadow::Entry& entry, std::size_t at, Times& times);
  void judge(const Digest& digest, bool duplicate, std::size_t at, Times& times);
  void set_ages();
  std::int64_t longest_stay() const;
  void make_room();
  void halve();

  const Window* window_;
  Shadow times_;  // of a count window: the number of the record among those that count
  std::int64_t now_ = 0;
  std::int64_t past_age_ = 0, near_age_ = 0;  // outside the window, and nearly
  std::uint64_t threshold_ = ~std::uint64_t{0};
  std::uint64_t weight_ = 1, looks_ = 0;
  std::uint64_t past_ = 0, before_ = 0;  // outside the window, and inside, but not much longer
  std::uint64_t unknown_ = 0;
  std::int64_t all_known_from_ = std::numeric_limits<std::int64_t>::min();
  double kept_ = 0;                      // past the window on average, as a share of it
  std::uint64_t records_ = 0, due_ = 0;  // kept_ is asked for again after so many
};

}  // namespace sluice
