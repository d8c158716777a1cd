// Two threads against one, out of cache: a filter for all keys against two of half its size, each
// with a stream of its own, as if keys were shared out by their digests; and against one filter
// that keeps two threads busy by itself, where the catalogue has such a one.
#include <fmt/format.h>

#include <array>
#include <barrier>
#include <thread>
#include <vector>

#include "kept.hpp"
#include "measure.hpp"
#include "options.hpp"

namespace sluice::bench {
namespace {

struct Subject {
  const char* name;
  const char* settings;
  double fpr;
  std::uint64_t keys;
};

constexpr Subject kSubjects[] = {
    {"blocked Bloom, 8 probes", "bloom,layout=blocked,probes=8", 1e-2, 100'000'000},
    {"cohort, 24-bit slots", "cohort,slot=24", 1e-4, 50'000'000},
    {"apbbf, line", "apbbf,layout=line", 2e-2, 50'000'000},
};

constexpr double kDuplicates = 0.3;

// Nanoseconds per key of two threads at once, each with its own filter and stream. Each does as much;
// the median batch of either is one in which both are at work.
double both_ns(std::array<Kept, 2>& halves, std::uint64_t keys) {
  std::array<double, 2> ns{};
  std::barrier start(2);
  const auto run = [&](std::size_t i) {
    start.arrive_and_wait();
    ns[i] = halves[i].ns(keys, kDuplicates);
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  return 1 / (1 / ns[0] + 1 / ns[1]);
}

// `subject` takes turns with the one thread of `whole`.
void compare(const std::string& name, std::uint64_t keys, Kept& whole, std::uint64_t a_turn,
             const std::function<double()>& subject, bool bar, const Options& options,
             Report& report) {
  const std::vector<Samples> samples =
      take_turns(options.rounds(), {[&] { return whole.ns(a_turn, kDuplicates); }, subject});
  const double times = ratio(samples[0], samples[1]);
  report.row({name, in_short(keys), fmt::format("{:.1f}", median(samples[0])),
              fmt::format("{:.1f}", median(samples[1])), fmt::format("{:.2f}", times)});
  if (bar)
    report.at_least(fmt::format("{}, {} keys: two threads / one", name, in_short(keys)), times,
                    1.7);
}

void measure(const Subject& subject, const Options& options, Report& report) {
  const std::uint64_t keys = options.quick ? subject.keys / 10 : subject.keys;
  const std::uint64_t a_turn = options.quick ? 500'000 : 2'000'000;
  Kept whole(subject.settings, keys, subject.fpr);
  whole.settle(0.5);
  {
    std::array<Kept, 2> halves = {Kept(subject.settings, keys / 2, subject.fpr),
                                  Kept(subject.settings, keys / 2, subject.fpr)};
    for (Kept& half : halves) half.settle(0.5);
    compare(
        fmt::format("{}, two of them", subject.name), keys, whole, a_turn,
        [&] { return both_ns(halves, a_turn); }, !in_catalogue("sharded"), options, report);
  }
  if (!in_catalogue("sharded")) return;
  Kept sharded(fmt::format("sharded,shards=2,of={}", subject.settings), keys, subject.fpr);
  sharded.settle(0.5);
  sharded.resize(8 * kLap);  // shared out among the threads, which meet at its end
  compare(
      fmt::format("{}, sharded", subject.name), keys, whole, a_turn,
      [&] { return sharded.ns(a_turn, kDuplicates); }, true, options, report);
}

}  // namespace

void run_threads(const Options& options, Report& report) {
  report.table("Two threads, each with half of the keys: batched observe, 30 % duplicates",
               {"filter", "keys", "one thread, ns per key", "two", "times as fast"});
  for (const Subject& subject : kSubjects) measure(subject, options, report);
}

}  // namespace sluice::bench
