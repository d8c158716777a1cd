#include "sluice/stream/year_guess.hpp"

#include <algorithm>

#include "sluice/stream/civil_time.hpp"

namespace sluice {
namespace {

constexpr Nanoseconds kAhead = 91 * civil::kDay;

}  // namespace

// A clock may be a little ahead of ours, or its zone may be another than was said: a day is allowed.
std::optional<Nanoseconds> YearGuess::first(Nanoseconds time) const {
  constexpr int kLeapYears = 8;  // at most so far apart, around 1900 and 2100
  if (year_) return civil::in_year(time, *year_, reader_.zone());
  const int year = civil::year_of(today_) + 1;
  for (int back = 0; back <= kLeapYears + 1; ++back) {
    const auto moment = civil::in_year(time, year - back, reader_.zone());
    if (moment && *moment <= today_ + civil::kDay) return moment;
  }
  return std::nullopt;
}

std::optional<Nanoseconds> YearGuess::next(Nanoseconds time) const {
  // In a log with gaps, each time waits to be believed, and now stays where it is.
  const Nanoseconds latest =
      clock_.waits() ? std::max(clock_.now(), clock_.claimed()) : clock_.now();
  const Nanoseconds last = latest + kAhead;
  const int year = civil::year_of(latest) + 1;
  for (int back = 0; back <= 2; ++back) {
    const auto moment = civil::in_year(time, year - back, reader_.zone());
    // 29 February is not moved to another year: what is asked is whether it would be early enough.
    const Nanoseconds about =
        moment ? *moment
               : civil::days_from_date(year - back, 1, 1) * civil::kDay + time - civil::kYearless;
    if (about <= last) return moment;
  }
  return std::nullopt;
}

bool YearGuess::complete(const Digest& key, Nanoseconds& time) {
  if (civil::is_yearless(time)) {
    const auto moment = !clock_.started() ? first(time) : next(time);
    if (!moment) return false;
    time = *moment;
  }
  year_.reset();
  Nanoseconds taken = time;
  clock_.read(key, taken, limits_);
  return true;
}

}  // namespace sluice
