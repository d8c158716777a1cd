// Errors and sizes of the timer filter (Koloniari et al. 2011, §4): numbers in, numbers out.
#pragma once

#include <cstdint>

namespace sluice::model {

// The layout of a table of timers. Plain is horizontal with one slice.
struct TimerTable {
  double timers = 0;      // m, in all
  unsigned probes = 0;    // k
  unsigned slices = 1;    // S: horizontal, a key's probes stay within one slice
  bool vertical = false;  // a part of the table for each probe
};

// Chance that a key never seen finds all its timers live among `keys` live ones. Vertical:
// (1 − (1 − k/m)^n)^k. Horizontal: slices fill unevenly, so the mean of a plain filter's error over
// a binomial number of keys per slice; the usual formula, with n/S keys in each, is too low.
double timer_fpr(const TimerTable& table, double keys);

// The same for a window as it runs, where a key that is taken for a duplicate is not written (see
// timing_window_fpr).
double timer_window_fpr(const TimerTable& table, double keys);

// The equal-timers test: a key is held when all its timers are live and at least `equal` of them
// show the same generation. `keys` live ones were written evenly over `generations` live
// generations. Chance that a key never seen passes:
double timer_equal_fpr(const TimerTable& table, unsigned equal, double keys, double generations);
// Chance that a key which is held, as likely of any age as of another, does not:
double timer_equal_fnr(const TimerTable& table, unsigned equal, double keys, double generations);

// The paper's error of the test, corrected: it holds for one live key, and any of n may be the one
// that wrote the equal timers. n·(1 − e^{−k/m})^x · C(k, x) · ρ^{k−x}, with ρ the share of live
// timers; a bound, as it counts timers that others have written since.
double timer_equal_bound(const TimerTable& table, unsigned equal, double keys);

// The same two errors on a stream: each tick brings a key of Zipf's law, and the filter's own
// verdicts decide what is delivered and written. Two things differ from the chances above. A key
// whose timers were overwritten by others fails the test only until its next arrival, which is let
// through and writes it again: a frequent key is lost once, and many of its repeats are caught. And
// a key that is held back because of other keys' timers is held back at each arrival while these
// live: a frequent key is lost several times.
struct TimerStream {
  double keys = 0;    // of the law
  double skew = 1;    // the key of rank r comes in proportion to 1/r^skew
  double window = 0;  // w, in ticks
};
struct TimerStreamErrors {
  double live;  // keys in the window: Σ wp/(1 + wp)
  double fpr;   // of arrivals of keys outside the window
  double fnr;   // of arrivals of keys in it
};
TimerStreamErrors timer_stream_errors(const TimerTable& table, unsigned equal,
                                      const TimerStream& stream);

// The fewest timers in all that hold `keys` live ones at `fpr`, without the equal-timers test:
// the inverse of timer_window_fpr.
double timer_timers_for(const TimerTable& table, double keys, double fpr);

}  // namespace sluice::model
