// Window filters at steady state, where as many keys leave as come: out of cache against the
// machine's scattered lines, in cache against a plain blocked Bloom filter; with memory, error and
// slack.
#include <fmt/format.h>

#include <vector>

#include "kept.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "probe.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::bench {
namespace {

constexpr double kNoBar = 0;
constexpr double kDuplicates[] = {0, 0.3, 0.9};

// A row of the speed tables, and what it is held to.
struct Speed {
  const char* name;
  const char* settings;
  double fpr;
  unsigned lines;      // that the probe touches for a key: 1 or 2
  double touches_bar;  // times the probe, out of cache
  double bloom_bar;    // times the blocked Bloom filter, in cache
};
constexpr Speed kSpeeds[] = {
    {"cohort, 24-bit slots", "cohort,slot=24", 1e-4, 2, 1.2, 3.5},
    {"cohort, 16-bit slots", "cohort,slot=16", 2e-2, 2, kNoBar, kNoBar},
    {"cohort, 32-bit slots", "cohort,slot=32", 1e-6, 2, kNoBar, kNoBar},
    {"apbbf, line", "apbbf,layout=line", 2e-2, 1, 1.3, kNoBar},
    {"apbbf, column", "apbbf,layout=column,k=2,l=5", 2e-4, 1, 3.5, kNoBar},
    {"apbbf, segment", "apbbf,layout=segment,k=2,l=5", 2e-4, 1, kNoBar, kNoBar},
};

std::string two_digits(double value) {
  return fmt::format("{:.2f}", value);
}

// What a window of 24-bit slots promises besides its speed.
void hold_space(Kept& kept, double fpr, const std::string& name, const Options& options,
                Report& report) {
  report.at_most(name + ": bits per key", kept.bits_per_key(), 29);
  report.at_most(name + ": measured error",
                 kept.measured_fpr(options.quick ? 3'000'000 : 30'000'000), fpr);
  report.at_most(name + ": slack", kept.filter().slack(), 0.05);
}

void measure_out_of_cache(const Options& options, Report& report) {
  const std::uint64_t window = 50'000'000;
  const std::uint64_t keys = options.quick ? 500'000 : 2'000'000;
  const std::string of = in_short(window);
  report.table(
      fmt::format("Window of {} keys: batched observe, in units of random cache-line updates", of),
      {"filter", "table", "bits per key", "slack", "units of", "0 % duplicates", "30 %", "90 %",
       "observe ns", "unit ns"});
  for (const Speed& each : kSpeeds) {
    Kept kept(each.settings, window, each.fpr);
    kept.settle();
    Probe probe(kept.bytes());
    std::vector<std::function<double()>> turns;
    for (const double duplicates : kDuplicates) {
      turns.push_back([&, duplicates] { return kept.ns(keys, duplicates); });
      turns.push_back([&] { return probe.updates_ns(keys, each.lines); });
    }
    const std::vector<Samples> samples = take_turns(options.rounds(), turns);
    const std::string unit = each.lines == 1 ? "one line" : "two lines";
    const std::string name = fmt::format("{}, window of {}", each.name, of);
    std::vector<std::string> cells = {each.name, format_size(kept.bytes()),
                                      fmt::format("{:.1f}", kept.bits_per_key()),
                                      fmt::format("{:.1f} %", kept.filter().slack() * 100), unit};
    for (std::size_t i = 0; i < std::size(kDuplicates); ++i) {
      const double times = ratio(samples[2 * i], samples[2 * i + 1]);
      cells.push_back(two_digits(times));
      if (each.touches_bar != kNoBar)
        report.at_most(fmt::format("{}, {:.0f} % duplicates: observe / {} updated", name,
                                   kDuplicates[i] * 100, unit),
                       times, each.touches_bar);
    }
    cells.push_back(fmt::format("{:.1f}", median(samples[0])));
    cells.push_back(fmt::format("{:.1f}", median(samples[1])));
    report.row(cells);
    if (each.bloom_bar == kNoBar) continue;
    hold_space(kept, each.fpr, name, options, report);
    report.claim(
        fmt::format("A window of {} keys (`cohort`, {:.1f} bits per key): one key costs {:.2f} × "
                    "two random cache-line accesses.",
                    of, kept.bits_per_key(), ratio(samples[0], samples[1])));
  }
}

void measure_in_cache(const Options& options, Report& report) {
  const std::uint64_t window = 100'000;
  const std::uint64_t keys = options.quick ? 500'000 : 2'000'000;
  report.table(
      "Window of 100 k keys, in cache: batched observe, in units of a blocked Bloom "
      "filter's of 8 probes at 1 %",
      {"filter", "0 % duplicates", "30 %", "90 %", "observe ns", "Bloom ns"});
  for (const Speed& each : kSpeeds) {
    Kept kept(each.settings, window, each.fpr);
    Kept bloom("bloom,layout=blocked,probes=8", window, 1e-2);
    kept.settle();
    bloom.settle();
    std::vector<std::function<double()>> turns;
    for (const double duplicates : kDuplicates) {
      turns.push_back([&, duplicates] { return kept.ns(keys, duplicates); });
      turns.push_back([&, duplicates] { return bloom.ns(keys, duplicates); });
    }
    const std::vector<Samples> samples = take_turns(options.rounds(), turns);
    std::vector<std::string> cells = {each.name};
    for (std::size_t i = 0; i < std::size(kDuplicates); ++i) {
      const double times = ratio(samples[2 * i], samples[2 * i + 1]);
      cells.push_back(two_digits(times));
      if (each.bloom_bar != kNoBar)
        report.at_most(fmt::format("{}, in cache, {:.0f} % duplicates: observe / blocked Bloom's",
                                   each.name, kDuplicates[i] * 100),
                       times, each.bloom_bar);
    }
    cells.push_back(two_digits(median(samples[0])));
    cells.push_back(two_digits(median(samples[1])));
    report.row(cells);
  }
}

}  // namespace

void run_windows(const Options& options, Report& report) {
  measure_out_of_cache(options, report);
  measure_in_cache(options, report);
}

}  // namespace sluice::bench
