// Every filter of the catalogue: what it takes to observe, ask and insert, batch by batch and with
// a call per key, in cache and out of it, beside the machine's random line over a table of the same
// bytes; with its bits per key, its error, and the lines it touches.
#include <fmt/format.h>

#include <vector>

#include "kept.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "probe.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::bench {
namespace {

struct Subject {
  const char* name;
  const char* settings;
  double fpr;
};

constexpr Subject kSubjects[] = {
    {"bloom, blocked, 8 probes", "bloom,layout=blocked,probes=8", 1e-2},
    {"bloom, blocked, 16 probes", "bloom,layout=blocked,probes=16", 1e-4},
    {"bloom, classic", "bloom,layout=classic", 1e-2},
    {"counting", "counting", 1e-2},
    {"dynamic", "dynamic", 1e-2},
    {"growing", "growing", 1e-6},
    {"exact", "exact", 0.5},
    {"stable", "stable", 1e-2},
    {"reservoir", "reservoir", 1e-2},
    {"cohort, 16-bit slots", "cohort,slot=16", 2e-2},
    {"cohort, 24-bit slots", "cohort,slot=24", 1e-4},
    {"cohort, 32-bit slots", "cohort,slot=32", 1e-6},
    {"apbbf, line", "apbbf,layout=line", 2e-2},
    {"apbbf, column", "apbbf,layout=column,k=2,l=5", 2e-4},
    {"apbbf, segment", "apbbf,layout=segment,k=2,l=5", 2e-4},
    {"apbf", "apbf", 1e-2},
    {"timing", "timing", 1e-2},
    {"timer", "timer", 1e-2},
    {"exact-window", "exact-window", 0.5},
    {"sharded, two blocked Blooms", "sharded,shards=2,of=bloom,layout=blocked,probes=8", 1e-2},
};

// Of one run of a table: all filters hold as many keys.
struct Scale {
  const char* title;
  const char* file;
  std::uint64_t keys;
  std::uint64_t a_turn;  // keys of each verb, in each of the rounds
  std::uint64_t asked;   // keys never seen, to measure the error with
  bool refill;           // to the last key before that; otherwise sets are nearly full
};

std::string share(double value) {
  return value == 0 ? "0" : fmt::format("{:.1e}", value);
}

// All verbs and the probe take turns; returns nanoseconds of a batched observe and of a line.
std::pair<double, double> measure(const Subject& subject, const Scale& scale,
                                  const Options& options, Report& report) {
  using Verb = Kept::Verb;
  Kept kept(subject.settings, scale.keys, subject.fpr);
  kept.settle();
  Probe probe(std::max<std::uint64_t>(kept.bytes(), 4096));
  std::vector<std::function<double()>> turns;
  for (const Verb verb : {Verb::observe, Verb::may_contain, Verb::insert})
    for (const bool batched : {true, false})
      turns.push_back([&, verb, batched] { return kept.ns(scale.a_turn, 0, verb, batched); });
  // Often enough to bring its table into cache, as the six have theirs.
  turns.push_back([&] { return probe.update_ns(6 * scale.a_turn); });
  const std::vector<Samples> samples = take_turns(options.quick ? 3 : 5, turns);
  if (scale.refill) kept.refill();
  std::vector<std::string> cells = {subject.name, fmt::format("{:.1f}", kept.bits_per_key()),
                                    share(kept.measured_fpr(scale.asked)),
                                    share(kept.filter().stats().predicted_fpr),
                                    fmt::format("{:.2f}", kept.lines_per_key())};
  for (const Samples& each : samples) cells.push_back(fmt::format("{:.1f}", median(each)));
  cells.push_back(fmt::format("{:.2f}", ratio(samples[0], samples.back())));
  report.row(cells);
  return {median(samples[0]), median(samples.back())};
}

void measure_all(const Scale& scale, const Options& options, Report& report) {
  report.table(scale.title, {"filter", "bits per key", "error", "predicted", "lines per key",
                             "observe", "one by one", "may_contain", "one by one", "insert",
                             "one by one", "one line updated", "observe / line"});
  Chart chart{scale.file, scale.title, "ns per key, batched", {"observe", "one line updated"}};
  chart.logarithmic = true;
  for (const Subject& subject : kSubjects) {
    if (!in_catalogue(subject.settings)) continue;
    const auto [observe, line] = measure(subject, scale, options, report);
    chart.rows.push_back({subject.name, {observe, line}});
  }
  report.flush();
  report.chart(chart);
}

void hold_bloom(const char* where, std::uint64_t keys, double bar, const Options& options,
                Report& report) {
  Kept kept("bloom,layout=blocked,probes=8", keys, 1e-2);
  kept.settle();
  Probe probe(kept.bytes());
  const std::uint64_t a_turn = options.quick ? 500'000 : 2'000'000;
  const std::vector<Samples> samples =
      take_turns(options.rounds(),
                 {[&] { return kept.ns(a_turn / 2); }, [&] { return probe.update_ns(a_turn); }});
  const double times = ratio(samples[0], samples[1]);
  report.row({where, in_short(keys), format_size(kept.bytes()), fmt::format("{:.2f}", times),
              fmt::format("{:.2f}", median(samples[0])),
              fmt::format("{:.2f}", median(samples[1]))});
  report.at_most(
      fmt::format("blocked Bloom at 1 %, {} keys: observe / one line updated", in_short(keys)),
      times, bar);
  report.claim(
      fmt::format("A blocked Bloom filter of {} keys at 1 %, {}: one key costs {:.2f} × one "
                  "random cache-line access.",
                  in_short(keys), where, times));
}

}  // namespace

void run_filters(const Options& options, Report& report) {
  report.table("Blocked Bloom filter of 8 probes at 1 %: batched observe",
               {"table", "keys", "bytes", "observe / one line updated", "observe ns", "line ns"});
  hold_bloom("in cache", 100'000, 2.5, options, report);
  hold_bloom("out of cache", 100'000'000, 1.3, options, report);
  const bool quick = options.quick;
  measure_all({"Every filter, 50 k keys, in cache: ns per key", "filters-in-cache", 50'000,
               quick ? 50'000u : 500'000u, quick ? 500'000u : 5'000'000u, true},
              options, report);
  const std::uint64_t keys = quick ? 4'000'000 : 20'000'000;
  measure_all({quick ? "Every filter, 4 M keys, out of cache: ns per key"
                     : "Every filter, 20 M keys, out of cache: ns per key",
               "filters-out-of-cache", keys, quick ? 30'000u : 100'000u,
               quick ? 200'000u : 2'000'000u, false},
              options, report);
}

}  // namespace sluice::bench
