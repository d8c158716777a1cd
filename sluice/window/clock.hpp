// Event time: what `now` is, which records are late, and which clocks are not believed.
//
// Now is the greatest accepted time. A record is late when its time is a window or more behind now.
// A time more than `max_ahead` beyond now is not believed until a second record agrees with it,
// that is, lies within `max_ahead` or a window of it, whichever is longer. Then both are believed,
// and now is the later of the two. So one wild clock cannot push all other records out of the
// window. Nor can the very first record: until a second one agrees with it, a record that would be
// late replaces it as the clock's time, and the time that was replaced waits for a second record.
//
// A record that is sent twice is no second record: with the same key and the same time it confirms
// nothing. Without `max_ahead` every time is believed.
//
// The same records in the same order give the same readings, however they are cut into batches.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "sluice/base/codec.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

// Nanoseconds since 1970-01-01T00:00:00Z.
using Nanoseconds = std::int64_t;

// What is late, and what is too far ahead. Windows with the same parameters share it, so it is
// passed in; a clock itself stays small.
struct ClockLimits {
  // Nanoseconds, above 0. None: no time is too far ahead.
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
    disbelieved,  // too far ahead: treated as now
    // Confirms the previous disbelieved time: both are believed, and now is the later of the two.
    // If that is the previous one, this record may be late (is_late).
    agreed,
    // In time, and a window or more before now, which only one record had claimed: that claim waits
    // to be believed, and nothing is known of what was before.
    replaced,
  };
  // Judges the next record of the stream. Unless late, `time` becomes what the record's time is
  // taken to be, at most now().
  Reading read(const Digest& key, Nanoseconds& time, const ClockLimits& limits) noexcept;

  bool is_late(Nanoseconds time, const ClockLimits& limits) const noexcept {
    return now_ - time >= limits.late_after;
  }

  // Reads any number of times at once, given the greatest of them. Returns false and changes
  // nothing if each must be read on its own.
  bool leap(Nanoseconds greatest, const ClockLimits& limits) noexcept;

  // Sets the time by the caller's own clock; it is believed however far ahead it is. If it goes
  // back by less than a window, now stays until it has caught up; if by a window or more, the clock
  // was reset, and now follows it.
  void set(Nanoseconds time, const ClockLimits& limits) noexcept;

  bool started() const noexcept { return started_; }
  Nanoseconds now() const noexcept { return now_; }
  // Whether a time waits to be believed.
  bool waits() const noexcept { return has_candidate_; }
  // The last time that was not believed.
  Nanoseconds claimed() const noexcept { return candidate_; }
  // The key of the record that claimed it; none if that was forgotten.
  std::optional<Digest> claimant() const noexcept {
    return has_claimant_ ? std::optional(claimant_) : std::nullopt;
  }
  // The key was taken back: it is not written at the time that it claimed.
  void forget(const Digest& key) noexcept;
  std::uint64_t disbelieved() const noexcept { return disbelieved_; }

  // When a claimed time is believed, its record must be written at that time. If there is no memory
  // for that, the claim is kept until settle(), which must come before anything else is read. A
  // claim that waits to be believed is ahead of now, so the two cannot be confused.
  void owe() noexcept;
  bool owes() const noexcept { return has_candidate_ && candidate_ <= now_; }
  void settle() noexcept;

  // The times, and the keys of the records that claimed those that no second record confirms. A
  // second clock that reads the same records need not write the keys.
  void encode(Encoder& to) const;
  void encode_keys(Encoder& to) const;
  // Both throw CorruptSnapshot. The keys come after the times.
  void decode(Decoder& from);
  void decode_keys(Decoder& from);
  void take_keys_of(const EventClock& other) noexcept;
  friend bool operator==(const EventClock&, const EventClock&) = default;

 private:
  void move_to(Nanoseconds time) noexcept;
  void support() noexcept;
  void claim(Nanoseconds time, bool has_key, const Digest& key) noexcept;
  bool is_repeat(const Digest& key, Nanoseconds time) const noexcept;

  Nanoseconds now_ = 0;
  Nanoseconds candidate_ = 0;  // a time far ahead that one record has claimed
  Digest claimant_;
  Digest first_;                   // until now is supported: the key of the record that claimed it
  std::uint32_t disbelieved_ = 0;  // saturates
  bool started_ : 1 = false;
  bool supported_ : 1 = false;  // a second record agrees with now
  bool has_candidate_ : 1 = false;
  bool has_claimant_ : 1 = false;
  bool has_first_ : 1 = false;
};

}  // namespace sluice
