#include "probe.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>

#include "measure.hpp"
#include "options.hpp"
#include "sluice/base/bits.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::bench {
namespace {

// Beyond this many lines ahead none of the machines tried got faster: see the table of limits.
constexpr unsigned kProbeAhead = 32;
// Below this size the bare loop is the faster one: the limit is whatever is fastest.
constexpr std::uint64_t kProbeAheadFromBytes = 16 << 20;

volatile std::uint64_t sink;  // what was read goes here, or it would not be read

}  // namespace

Probe::Probe(std::uint64_t bytes, Pages pages)
    : memory_(bytes),
      lines_(bytes / kCacheLineBytes),
      ahead_(bytes < kProbeAheadFromBytes ? 0 : kProbeAhead) {
  if (pages == Pages::small) {
    // From the first whole page on; the block is aligned to one when it is large.
    madvise(memory_.data(), memory_.size() & ~std::size_t{4095}, MADV_NOHUGEPAGE);
  }
  std::memset(memory_.data(), 1, memory_.size());
}

// A number's line: one multiplication scatters, another scales to the table. Cheaper than any
// filter's positions, and scattered enough for caches and pages to find no pattern.
inline std::uint64_t* Probe::word_of(std::uint64_t number) {
  const std::uint64_t scattered = fold_multiply(number + 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9);
  return memory_.as<std::uint64_t>() + scale_to(scattered * 0x94D049BB133111EB, lines_) * 8;
}

double Probe::read_ns(std::uint64_t lines, unsigned ahead) {
  std::uint64_t sum = 0;
  LapClock clock;
  for (const std::uint64_t end = next_ + lines; next_ < end; next_ += kLap) {
    clock.start();
    for (std::uint64_t i = next_; i < next_ + kLap; ++i) {
      if (ahead != 0) __builtin_prefetch(word_of(i + ahead), 0);
      sum += *word_of(i);
    }
    clock.stop();
  }
  sink = sum;
  return clock.median_ns(kLap);
}

double Probe::update_ns(std::uint64_t lines, unsigned ahead) {
  LapClock clock;
  for (const std::uint64_t end = next_ + lines; next_ < end; next_ += kLap) {
    clock.start();
    for (std::uint64_t i = next_; i < next_ + kLap; ++i) {
      if (ahead != 0) __builtin_prefetch(word_of(i + ahead), 1);
      *word_of(i) |= std::uint64_t{1} << (i % 64);
    }
    clock.stop();
  }
  sink = *memory_.as<std::uint64_t>();
  return clock.median_ns(kLap);
}

// Both lines of a key are asked for together, as far ahead as those of single keys.
double Probe::pair_update_ns(std::uint64_t keys) {
  LapClock clock;
  const std::uint64_t ahead = ahead_;
  for (const std::uint64_t end = next_ + 2 * keys; next_ < end; next_ += 2 * kLap) {
    clock.start();
    for (std::uint64_t i = next_; i < next_ + 2 * kLap; i += 2) {
      if (ahead != 0) {
        __builtin_prefetch(word_of(i + ahead), 1);
        __builtin_prefetch(word_of(i + ahead + 1), 1);
      }
      *word_of(i) |= std::uint64_t{1} << (i % 64);
      *word_of(i + 1) |= std::uint64_t{1} << (i % 64);
    }
    clock.stop();
  }
  sink = *memory_.as<std::uint64_t>();
  return clock.median_ns(kLap);
}

double Probe::updates_ns(std::uint64_t keys, unsigned lines_a_key) {
  return lines_a_key == 2 ? pair_update_ns(keys) : update_ns(keys);
}

void run_limits(const Options& options, Report& report) {
  constexpr std::uint64_t kTables[] = {128 << 10, 1 << 20, 8 << 20, 128 << 20, 1 << 30};
  constexpr unsigned kAhead[] = {0, 8, 16, 24, 32, 64};
  const std::uint64_t lines = options.quick ? 2'000'000 : 10'000'000;
  std::vector<std::string> columns = {"table and pages", "ns, 32 ahead"};
  for (const unsigned ahead : kAhead) columns.push_back(fmt::format("{} ahead", ahead));
  columns.push_back("read / update");
  report.table("Limits: update of a random cache line, relative to 32 lines ahead", columns);
  for (const std::uint64_t bytes : kTables) {
    for (const Pages pages : {Pages::as_filters_get, Pages::small}) {
      // Below a huge page there is only one kind.
      if (pages == Pages::small && bytes < (2 << 20)) continue;
      Probe probe(bytes, pages);
      std::vector<std::function<double()>> subjects;
      for (const unsigned ahead : kAhead)
        subjects.push_back([&, ahead] { return probe.update_ns(lines, ahead); });
      subjects.push_back([&] { return probe.read_ns(lines, 32); });
      const std::vector<Samples> samples = take_turns(options.rounds(), subjects);
      const Samples& base = samples[4];
      std::vector<std::string> cells = {
          fmt::format("{}, {}", format_size(bytes), pages == Pages::small ? "small" : "as filters"),
          fmt::format("{:.2f}", median(base))};
      for (const Samples& each : samples) cells.push_back(fmt::format("{:.2f}", ratio(each, base)));
      report.row(cells);
    }
  }
}

}  // namespace sluice::bench
