// Event time: what `now` is, which records are late, and which clocks are not believed.
//
// Now is the greatest accepted time. A record is late when its time is a window or more behind now.
// A time more than `max_ahead` beyond now is not believed until a second record agrees with it
// (lies within `max_ahead` or a window of it, whichever is longer): one wild clock cannot push
// everybody else out of the window. Nor can the very first record: until a second one agrees, a
// record that would be late against it takes its place. Without `max_ahead` every time is believed.
//
// The same times in the same order give the same readings, however they are cut into batches.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "sluice/base/codec.hpp"

namespace sluice {

// Nanoseconds since 1970-01-01T00:00:00Z.
using Nanoseconds = std::int64_t;

// What is late, and what is too far ahead. The same for all windows that are made alike, so it is
// passed in: a clock itself is small.
struct ClockLimits {
  // Nanoseconds, above 0. Nothing: no time is too far ahead.
  ClockLimits(std::uint64_t late_after, std::optional<std::uint64_t> max_ahead);
  Nanoseconds late_after;
  Nanoseconds max_ahead;

  bool believe_all() const noexcept { return max_ahead == std::numeric_limits<Nanoseconds>::max(); }
};

class EventClock {
 public:
  enum class Reading : std::uint8_t {
    in_time,
    late,
    disbelieved,  // too far ahead: taken to happen now
    agreed,       // as far ahead as the one before that was not believed: both are, and now is this
  };
  // Judges the next time of the stream. Unless late, `time` becomes what the record's time is taken
  // to be, at most now().
  Reading read(Nanoseconds& time, const ClockLimits& limits) noexcept;

  // The same as reading any number of times of which this is the greatest, where that can be told
  // from it: false, and nothing is changed, where each has to be read.
  bool leap(Nanoseconds greatest, const ClockLimits& limits) noexcept;

  // The caller's own clock says `time`, which is believed however far it lies ahead. A clock that
  // goes back stands still until it has caught up; one that goes back by a window or more was set.
  void set(Nanoseconds time, const ClockLimits& limits) noexcept;

  bool started() const noexcept { return started_; }
  Nanoseconds now() const noexcept { return now_; }
  // The last time that was not believed.
  Nanoseconds claimed() const noexcept { return candidate_; }
  std::uint64_t disbelieved() const noexcept { return disbelieved_; }

  // For whoever writes the record of a claim at its own time once that is believed, and finds no
  // memory for it: the claim is kept until settle(), before anything else is read. A claim that waits
  // to be believed lies ahead of now, so that the two cannot be mistaken.
  void owe() noexcept;
  bool owes() const noexcept { return has_candidate_ && candidate_ <= now_; }
  void settle() noexcept;

  void encode(Encoder& to) const;
  // Throws CorruptSnapshot.
  void decode(Decoder& from);
  friend bool operator==(const EventClock&, const EventClock&) = default;

 private:
  void move_to(Nanoseconds time) noexcept;

  Nanoseconds now_ = 0;
  Nanoseconds candidate_ = 0;      // a time far ahead that one record has claimed
  std::uint32_t disbelieved_ = 0;  // stays at the most that it can count
  bool started_ = false;
  bool supported_ = false;  // a second record agrees with now
  bool has_candidate_ = false;
};

}  // namespace sluice
