// What a window would say, without changing it.
#include <algorithm>

#include "sluice/window/window.hpp"

namespace sluice {

// As judge_times and judge_listed do, on a copy of the clock.
Verdict Window::peek(const Digest& digest, Nanoseconds time) const {
  const auto verdict_of = [](bool known) { return known ? Verdict::duplicate : Verdict::distinct; };
  if (!params().spec.by_time()) return verdict_of(may_contain(digest));
  EventClock clock = clock_;
  const EventClock::Reading reading = clock.read(digest, time, limits());
  if (reading == EventClock::Reading::disbelieved || reading == EventClock::Reading::replaced ||
      clock.is_late(time, limits()))
    return Verdict::distinct;
  // The first time says when it is; nothing ages by that.
  if (!clock_.started()) return verdict_of(may_contain(digest));
  const auto is_inside = [&](Nanoseconds when) {
    return listed() ? when >= oldest(clock.now())
                    : tick_of(clock.now()) - tick_of(when) <= std::int64_t{generations()};
  };
  if (!is_inside(time)) return Verdict::distinct;
  // A claim that is believed now is written first.
  const bool believed = reading == EventClock::Reading::agreed || clock_.owes();
  if (believed && clock_.claimant() == digest && is_inside(std::min(clock_.claimed(), clock.now())))
    return Verdict::duplicate;
  return verdict_of(may_contain(digest, clock.now()));
}

}  // namespace sluice
