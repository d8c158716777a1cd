// Every filter's batched verbs against the machine's limit: the probe's random cache line, over a
// table of the same bytes on the same kind of pages.
#include <fmt/format.h>

#include <vector>

#include "measure.hpp"
#include "options.hpp"
#include "probe.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kBatch = kLap;

struct Subject {
  const char* name;
  const char* settings;
  std::uint64_t keys;
  double fpr;
  const char* lines;  // cache lines a key, by design
  bool every_level;   // has kernels for several instruction sets
};

constexpr Subject kSubjects[] = {
    {"blocked, 8 probes, in cache", "bloom,layout=blocked,probes=8", 100'000, 1e-2, "1", true},
    {"blocked, 16 probes, in cache", "bloom,layout=blocked,probes=16", 100'000, 1e-4, "1", true},
    {"classic, in cache", "bloom,layout=classic", 100'000, 1e-2, "7", false},
    {"exact, in cache", "exact", 10'000, 0.5, "1 to 2", false},
    {"blocked, 8 probes", "bloom,layout=blocked,probes=8", 100'000'000, 1e-2, "1", true},
    {"blocked, 16 probes", "bloom,layout=blocked,probes=16", 100'000'000, 1e-4, "1", true},
    {"classic", "bloom,layout=classic", 100'000'000, 1e-2, "7", false},
    {"exact", "exact", 10'000'000, 0.5, "1 to 2", false},
};

// Runs a verb over `keys` fresh digests, batch by batch; only the verb is timed.
class Stream {
 public:
  template <class Verb>
  double ns_each(std::uint64_t keys, Verb verb) {
    LapClock clock;
    for (std::uint64_t done = 0; done < keys; done += kBatch) {
      for (Digest& digest : digests_) digest = {random_.next(), random_.next()};
      clock.start();
      verb(std::span<const Digest>(digests_), std::span(verdicts_));
      clock.stop();
    }
    return clock.median_ns(kBatch);
  }

 private:
  SplitMix64 random_{1};
  std::vector<Digest> digests_ = std::vector<Digest>(kBatch);
  std::vector<Verdict> verdicts_ = std::vector<Verdict>(kBatch);
};

// Out of cache: fills the filter once, in equal rounds, the probe's turn after each. In cache,
// where that is too short to time: as often as it takes, cleared in between.
void measure(const Subject& subject, std::string_view level, const Options& options,
             Report& report) {
  AnyFilter filter = make_filter(subject.settings, Wish{.keys = subject.keys, .fpr = subject.fpr});
  Probe probe(filter.stats().bytes);
  Stream stream;
  const int rounds = options.rounds();
  const bool in_cache = subject.keys <= 100'000;
  const std::uint64_t a_round = in_cache        ? (options.quick ? 1'000'000 : 5'000'000)
                                : options.quick ? subject.keys / 10
                                                : subject.keys / static_cast<unsigned>(rounds);
  std::uint64_t held = 0;
  const auto observe = [&] {
    return stream.ns_each(a_round, [&](auto digests, auto verdicts) {
      if (in_cache && (held += kBatch) > subject.keys) {
        filter.clear();
        held = kBatch;
      }
      filter.observe(digests, verdicts);
    });
  };
  const auto ask = [&] {
    return stream.ns_each(
        std::min<std::uint64_t>(a_round, 5'000'000),
        [&](auto digests, auto verdicts) { filter.may_contain(digests, verdicts); });
  };
  const std::uint64_t lines = options.quick ? 2'000'000 : 10'000'000;
  // Pages arrive before anything is timed.
  if (!in_cache) {
    SplitMix64 random(99);
    std::vector<Digest> digests(1);
    for (std::uint64_t i = 0; i < filter.stats().bytes / 4096; ++i) {
      digests[0] = {random.next(), random.next()};
      filter.insert(digests);
    }
  }
  const std::vector<Samples> samples = take_turns(
      rounds,
      {observe, [&] { return probe.update_ns(lines); }, ask, [&] { return probe.read_ns(lines); }});
  const double against = ratio(samples[0], samples[1]);
  report.row({subject.name, std::string(level), format_size(filter.stats().bytes), subject.lines,
              fmt::format("{:.2f}", against), fmt::format("{:.2f}", ratio(samples[2], samples[3])),
              fmt::format("{:.2f}", median(samples[0])), fmt::format("{:.2f}", median(samples[1])),
              fmt::format("{:.2f}", median(samples[2])),
              fmt::format("{:.2f}", median(samples[3]))});
  if (std::string_view(subject.name) == "blocked, 8 probes" && level == simd_levels().front())
    report.at_most("blocked Bloom, 100 M keys at 1 %: observe / prefetched line update", against,
                   1.5);
}

}  // namespace

void run_filters(const Options& options, Report& report) {
  report.table("Filters: batched verbs, in units of the probe's random line over as many bytes",
               {"filter", "level", "table", "lines a key", "observe / update", "ask / read",
                "observe ns", "update ns", "ask ns", "read ns"});
  const std::string chosen(simd_level());
  for (const Subject& subject : kSubjects) {
    for (const std::string_view level : simd_levels()) {
      if (!subject.every_level && level != chosen) continue;
      force_simd_level(level);
      measure(subject, level, options, report);
    }
    force_simd_level(chosen);
  }
  report.flush();
}

}  // namespace sluice::bench
