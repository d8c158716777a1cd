// Errors and sizes of the timing filter (Dautrich & Ravishankar 2013, §3): numbers in, numbers out.
#pragma once

#include <cstdint>

namespace sluice::model {

// How a window of w insertions is represented by timestamps of few bits.
struct TimingShape {
  std::uint64_t block = 1;        // B: insertions that share a timestamp
  std::uint64_t generations = 0;  // ⌈w/B⌉
  std::uint64_t padding = 0;      // P: timestamps beyond the fewest, so that marking can be spread
};

// Bits of a timer for `probes` probes, if nothing else decides: max(k, 3).
unsigned timing_bits(unsigned probes);

// How many timers a window has at `bits_per_key`: ⌊w · bits per key / bits per timer⌋.
std::uint64_t timing_timers(std::uint64_t window, double bits_per_key, unsigned timer_bits);

// The padding with which at most `probes` timers are swept per key: max(0, ⌈m/(kB)⌉ − 1).
std::uint64_t timing_padding(std::uint64_t timers, unsigned probes, std::uint64_t block);

// The smallest block with ⌈w/B⌉ + 1 + P + 2 ≤ 2^bits, its generations and its padding. A block is
// at most the window: if that takes more padding than the bits allow, the padding is what they
// allow, and more timers are swept per key. `bits` is 3 or more.
TimingShape timing_shape(std::uint64_t window, std::uint64_t timers, unsigned probes,
                         unsigned bits);

// Chance that a key never seen finds all its timers live after `live` keys were written, whether
// they were taken for duplicates or not: that of a classical Bloom filter with as many bits as
// timers.
double timing_fpr(double timers, unsigned probes, double live);

// The same for a window as it runs: always `live` keys, and a key that is taken for a duplicate is
// not written. The keys that are written found some timer expired, so they refresh more expired
// timers than random keys would. The result exceeds timing_fpr by 2 % (relative) at 1 %, by 6 % at
// 5 %, and by nothing at 10⁻⁴. It assumes a steady state: with one or two generations and errors
// from 5 % on it is up to 3 % off.
double timing_window_fpr(double timers, unsigned probes, double live);

// The share of live timers behind it, where writing a key sets a given timer with chance `touched`.
// A timer lives for `live` keys after it was last set. While it is live, a key that uses it is
// written only if another of the key's timers is expired; once it is expired, always. These are two
// rates, so the mean times in the two states give the share, which in turn gives the rates: a fixed
// point.
double window_live_share(double touched, unsigned probes, double live);
// Its inverse: the chance `touched` with which that share is live.
double window_touched(double share, unsigned probes, double live);

// The fewest timers that hold `live` keys at `fpr`: the inverse of timing_window_fpr.
double timing_timers_for(unsigned probes, double live, double fpr);

}  // namespace sluice::model
