// Errors and sizes of the timing filter (Dautrich & Ravishankar 2013, §3): numbers in, numbers out.
#pragma once

#include <cstdint>

namespace sluice::model {

// How a window of w insertions is told in timestamps of few bits.
struct TimingShape {
  std::uint64_t block = 1;        // B: insertions that share a timestamp
  std::uint64_t generations = 0;  // ⌈w/B⌉
  std::uint64_t padding = 0;      // P: timestamps beyond the fewest, so that marking can be spread
};

// Bits of a timer that go with `probes`, where nothing else decides: max(k, 3).
unsigned timing_bits(unsigned probes);

// How many timers a window has at `bits_a_key`: ⌊w · bits a key / bits a timer⌋.
std::uint64_t timing_timers(std::uint64_t window, double bits_a_key, unsigned timer_bits);

// The padding with which at most `probes` timers are looked at a key: max(0, ⌈m/(kB)⌉ − 1).
std::uint64_t timing_padding(std::uint64_t timers, unsigned probes, std::uint64_t block);

// The smallest block with ⌈w/B⌉ + 1 + P + 2 ≤ 2^bits, its generations and its padding. A block is
// at most the window: where that takes more padding than the bits allow, it gets what they allow,
// and more timers are looked at a key. `bits` is 3 or more.
TimingShape timing_shape(std::uint64_t window, std::uint64_t timers, unsigned probes,
                         unsigned bits);

// Chance that a key never seen finds all its timers live when `live` keys have been written since
// the oldest live generation began: that of a classical Bloom filter with as many bits as timers.
double timing_fpr(double timers, unsigned probes, double live);

// The same over a window that is rotated every `block` keys: the mean over the present block's
// fill, from none to all of it.
double timing_mean_fpr(double timers, unsigned probes, double block, unsigned generations);

// The fewest timers that hold `live` keys at `fpr`: the inverse of timing_fpr.
double timing_timers_for(unsigned probes, double live, double fpr);

}  // namespace sluice::model
