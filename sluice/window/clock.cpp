#include "sluice/window/clock.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

// Times are kept well inside 63 bits, so that no difference overflows: the years 1824 to 2116.
constexpr Nanoseconds kFarthest = (Nanoseconds{1} << 62) - 1;

Nanoseconds bounded(std::uint64_t span) {
  return static_cast<Nanoseconds>(std::min<std::uint64_t>(span, kFarthest - 1));
}

}  // namespace

// No two times lie as far apart as the greatest number.
ClockLimits::ClockLimits(std::uint64_t late, std::optional<std::uint64_t> ahead)
    : late_after(bounded(late)),
      max_ahead(ahead ? bounded(*ahead) : std::numeric_limits<Nanoseconds>::max()) {
  assert(late > 0 && ahead != std::uint64_t{0});
}

void EventClock::move_to(Nanoseconds time) noexcept {
  now_ = time;
  has_candidate_ = false;
}

void EventClock::support() noexcept {
  if (supported_) return;
  supported_ = true;
  has_first_ = false;
  first_ = {};
}

void EventClock::claim(Nanoseconds time, bool has_key, const Digest& key) noexcept {
  candidate_ = time;
  has_candidate_ = true;
  has_claimant_ = has_key;
  claimant_ = key;
}

// Whether it is the record that waits for a second one, sent again.
bool EventClock::is_repeat(const Digest& key, Nanoseconds time) const noexcept {
  return time > now_ ? has_claimant_ && time == candidate_ && key == claimant_
                     : has_first_ && time == now_ && key == first_;
}

EventClock::Reading EventClock::read(const Digest& key, Nanoseconds& time,
                                     const ClockLimits& limits) noexcept {
  time = std::clamp(time, -kFarthest, kFarthest);
  if (!started_) {
    started_ = true;
    supported_ = limits.believe_all();
    move_to(time);
    if (supported_) return Reading::in_time;
    has_first_ = true;
    first_ = key;
    return Reading::in_time;
  }
  if (time > now_) {
    const bool ahead = time - now_ > limits.max_ahead;
    const Nanoseconds near = std::max(limits.max_ahead, limits.late_after);
    const bool agreed = has_candidate_ && time - candidate_ <= near && candidate_ - time <= near &&
                        !is_repeat(key, time);
    if (!ahead || agreed) {
      move_to(ahead ? std::max(time, candidate_) : time);
      support();
      return ahead ? Reading::agreed : Reading::in_time;
    }
    // Not believed: the record happens now, and its claim is remembered.
    claim(time, true, key);
    if (disbelieved_ < std::numeric_limits<std::uint32_t>::max()) ++disbelieved_;
    time = now_;
    return Reading::disbelieved;
  }
  if (now_ - time >= limits.late_after) {
    if (supported_) return Reading::late;
    // Only the first record has said what time it is. This one says otherwise, and is as good.
    claim(now_, has_first_, first_);
    now_ = time;
    has_first_ = true;
    first_ = key;
    return Reading::replaced;
  }
  if (!is_repeat(key, time)) support();
  return Reading::in_time;
}

// None is then further ahead than `max_ahead` of what is now when it comes, and late ones move
// nothing.
bool EventClock::leap(Nanoseconds greatest, const ClockLimits& limits) noexcept {
  greatest = std::clamp(greatest, -kFarthest, kFarthest);
  if (!supported_ || greatest - now_ > limits.max_ahead) return false;
  if (greatest > now_) move_to(greatest);
  return true;
}

void EventClock::set(Nanoseconds time, const ClockLimits& limits) noexcept {
  time = std::clamp(time, -kFarthest, kFarthest);
  if (!started_ || time > now_ || now_ - time >= limits.late_after) move_to(time);
  started_ = true;
  support();
}

void EventClock::forget(const Digest& key) noexcept {
  if (has_claimant_ && claimant_ == key) {
    has_claimant_ = false;
    claimant_ = {};
  }
  if (has_first_ && first_ == key) {
    has_first_ = false;
    first_ = {};
  }
}

void EventClock::owe() noexcept {
  has_candidate_ = true;
  candidate_ = std::min(candidate_, now_);
}

void EventClock::settle() noexcept {
  has_candidate_ = has_claimant_ = false;
  candidate_ = 0;
  claimant_ = {};
}

void EventClock::encode(Encoder& to) const {
  to.u8(static_cast<std::uint8_t>(started_ | supported_ << 1 | has_candidate_ << 2));
  to.u64(static_cast<std::uint64_t>(now_));
  if (has_candidate_) to.u64(static_cast<std::uint64_t>(candidate_));
  to.varint(disbelieved_);
}

void EventClock::decode(Decoder& from) {
  const std::uint8_t flags = from.u8();
  started_ = (flags & 1) != 0;
  supported_ = (flags & 2) != 0;
  has_candidate_ = (flags & 4) != 0;
  now_ = static_cast<Nanoseconds>(from.u64());
  candidate_ = has_candidate_ ? static_cast<Nanoseconds>(from.u64()) : 0;
  for (const Nanoseconds time : {now_, candidate_})
    if (time < -kFarthest || time > kFarthest || flags > 7)
      throw CorruptSnapshot("no clock of a window has these fields");
  const std::uint64_t disbelieved = from.varint();
  if (disbelieved > std::numeric_limits<std::uint32_t>::max())
    throw CorruptSnapshot("no clock of a window has these fields");
  disbelieved_ = static_cast<std::uint32_t>(disbelieved);
  if (!started_ && *this != EventClock())
    throw CorruptSnapshot("the clock of a window has not started, and says what time it is");
}

void EventClock::encode_keys(Encoder& to) const {
  to.u8(static_cast<std::uint8_t>(has_claimant_ | has_first_ << 1));
  if (has_claimant_) {
    to.u64(claimant_.lo);
    to.u64(claimant_.hi);
  }
  if (has_first_) {
    to.u64(first_.lo);
    to.u64(first_.hi);
  }
}

void EventClock::decode_keys(Decoder& from) {
  const std::uint8_t flags = from.u8();
  has_claimant_ = (flags & 1) != 0;
  has_first_ = (flags & 2) != 0;
  if (flags > 3 || (has_first_ && (!started_ || supported_)))
    throw CorruptSnapshot("no clock of a window has these fields");
  const auto key = [&](bool has) -> Digest {
    if (!has) return {};
    const std::uint64_t lo = from.u64();
    return {lo, from.u64()};
  };
  claimant_ = key(has_claimant_);
  first_ = key(has_first_);
}

void EventClock::take_keys_of(const EventClock& other) noexcept {
  has_claimant_ = other.has_claimant_;
  claimant_ = other.claimant_;
  has_first_ = other.has_first_ && started_ && !supported_;
  first_ = has_first_ ? other.first_ : Digest();
}

}  // namespace sluice
