#include "probe.hpp"

#include <sys/mman.h>

#include <barrier>
#include <cstring>
#include <thread>

#include "measure.hpp"
#include "sluice/base/bits.hpp"
#include "sluice/kernels/prefetch.hpp"

namespace sluice::bench {
namespace {

// Beyond this many lines ahead none of the machines tried got faster: see the table of limits.
constexpr unsigned kProbeAhead = 32;
// Below this size the bare loop is faster: the limit is the faster of the two.
constexpr std::uint64_t kProbeAheadFromBytes = 16 << 20;

thread_local volatile std::uint64_t sink;  // what was read goes here, or it would not be read

unsigned ahead_for(std::uint64_t bytes) {
  return bytes < kProbeAheadFromBytes ? 0 : kProbeAhead;
}

}  // namespace

Probe::Probe(std::uint64_t bytes, Pages pages)
    : memory_(bytes),
      all_(words(), bytes / kCacheLineBytes, ahead_for(bytes)),
      halves_{Lines(words(), bytes / kCacheLineBytes / 2, ahead_for(bytes)),
              Lines(words() + bytes / kCacheLineBytes / 2 * 8, bytes / kCacheLineBytes / 2,
                    ahead_for(bytes))} {
  if (pages == Pages::small) {
    // From the first whole page on; the block is aligned to one when it is large.
    madvise(memory_.data(), memory_.size() & ~std::size_t{4095}, MADV_NOHUGEPAGE);
  }
  std::memset(memory_.data(), 1, memory_.size());
}

// A number's line: one multiplication scatters, another scales to the table. Cheaper than any
// filter's positions, and scattered enough for caches and pages to find no pattern.
inline std::uint64_t* Lines::word_of(std::uint64_t number) {
  const std::uint64_t scattered = fold_multiply(number + 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9);
  return words_ + scale_to(scattered * 0x94D049BB133111EB, lines_) * 8;
}

double Lines::read_ns(std::uint64_t lines, unsigned ahead) {
  std::uint64_t sum = 0;
  LapClock clock;
  for (const std::uint64_t end = next_ + lines; next_ < end; next_ += kLap) {
    clock.start();
    for (std::uint64_t i = next_; i < next_ + kLap; ++i) {
      if (ahead != 0) __builtin_prefetch(word_of(i + ahead), 0, kernels::kPrefetchLocality);
      sum += *word_of(i);
    }
    clock.stop();
  }
  sink = sum;
  return clock.median_ns(kLap);
}

double Lines::update_ns(std::uint64_t lines, unsigned ahead) {
  LapClock clock;
  for (const std::uint64_t end = next_ + lines; next_ < end; next_ += kLap) {
    clock.start();
    for (std::uint64_t i = next_; i < next_ + kLap; ++i) {
      if (ahead != 0) __builtin_prefetch(word_of(i + ahead), 1, kernels::kPrefetchLocality);
      *word_of(i) |= std::uint64_t{1} << (i % 64);
    }
    clock.stop();
  }
  sink = *words_;
  return clock.median_ns(kLap);
}

// Both lines of a key are asked for together, as far ahead as those of single keys.
double Lines::pair_update_ns(std::uint64_t keys) {
  LapClock clock;
  const std::uint64_t ahead = ahead_;
  for (const std::uint64_t end = next_ + 2 * keys; next_ < end; next_ += 2 * kLap) {
    clock.start();
    for (std::uint64_t i = next_; i < next_ + 2 * kLap; i += 2) {
      if (ahead != 0) {
        __builtin_prefetch(word_of(i + ahead), 1, kernels::kPrefetchLocality);
        __builtin_prefetch(word_of(i + ahead + 1), 1, kernels::kPrefetchLocality);
      }
      *word_of(i) |= std::uint64_t{1} << (i % 64);
      *word_of(i + 1) |= std::uint64_t{1} << (i % 64);
    }
    clock.stop();
  }
  sink = *words_;
  return clock.median_ns(kLap);
}

namespace {

// Both start together, and do as much; the median lap of each is one in which both are at work.
template <class Work>
double both_ns(std::array<Lines, 2>& halves, Work work) {
  std::array<double, 2> ns{};
  std::barrier start(2);
  const auto run = [&](std::size_t i) {
    start.arrive_and_wait();
    ns[i] = work(halves[i]);
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  return 1 / (1 / ns[0] + 1 / ns[1]);
}

}  // namespace

double Probe::two_threads_read_ns(std::uint64_t lines) {
  return both_ns(halves_, [&](Lines& half) { return half.read_ns(lines); });
}

double Probe::two_threads_update_ns(std::uint64_t lines) {
  return both_ns(halves_, [&](Lines& half) { return half.update_ns(lines); });
}

}  // namespace sluice::bench
