// The year of times that have none, such as Oct 10 13:55:36.
//
// A time is taken to be in the year that puts it between nine months before and three months after
// the latest time so far. So a log may cross New Year, go on for years, and be out of order; a gap of
// three months is too long. The latest time is that of the window's clock, believed or not, which a state keeps: the
// same records give the same times, however they are cut and wherever a run was interrupted. Only
// three months ahead, because logs have gaps, but clocks that were never set show 1 January.
//
// The first time of all is in the year that was given, or in the last year in which it is not after
// today.
#pragma once

#include <optional>

#include "sluice/hash/digest.hpp"
#include "sluice/stream/time_reader.hpp"
#include "sluice/window/clock.hpp"

namespace sluice {

class YearGuess {
 public:
  // Goes on from the clock of the window, which has these limits; or, if a year was given, begins there. `before`:
  // own_clock() of a run that had begun with a year, and is continued.
  YearGuess(const TimeReader& reader, Nanoseconds today, const EventClock& clock,
            const ClockLimits& limits, const std::optional<EventClock>& before = {})
      : reader_(reader),
        year_(reader.year()),
        today_(today),
        before_(before),
        own_(year_ || before),
        limits_(limits) {
    if (!year_) clock_ = before.value_or(clock);
  }

  // A source is continued in its middle: the year that was given was that of an earlier record.
  void go_on(const EventClock& clock) {
    if (!year_) return;
    year_.reset();
    clock_ = before_.value_or(clock);
  }

  // If it began with a year that was given, and has read a time.
  std::optional<EventClock> own_clock() const {
    return own_ && clock_.started() ? std::optional(clock_) : std::nullopt;
  }

  // Reads the time of the next record, and completes it if it has no year. False if there is no such
  // day in that year.
  bool complete(const Digest& key, Nanoseconds& time);

 private:
  std::optional<Nanoseconds> first(Nanoseconds time) const;
  std::optional<Nanoseconds> next(Nanoseconds time) const;

  TimeReader reader_;
  std::optional<int> year_;
  Nanoseconds today_;
  EventClock clock_;
  std::optional<EventClock> before_;
  bool own_;
  ClockLimits limits_;
};

}  // namespace sluice
