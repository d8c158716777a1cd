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
#include "sluice/base/quantity.hpp"

namespace sluice::bench {
namespace {

struct Subject {
  const char* name;
  const char* settings;
  double fpr;
  std::uint64_t keys;
  const char* sliced = nullptr;  // settings of a filter that judges its batches on two threads
};

constexpr Subject kSubjects[] = {
    {"blocked Bloom, 8 probes", "bloom,layout=blocked,probes=8", 1e-2, 100'000'000},
    {"cohort, 24-bit slots", "cohort,slot=24", 1e-4, 50'000'000},
    {"apbbf, line", "apbbf,layout=line", 2e-2, 50'000'000},
};

// Nanoseconds a key of two threads at once, each with its own filter and stream. Each does as much;
// the median batch of either is one in which both are at work.
double both_ns(std::array<Kept, 2>& halves, std::uint64_t keys) {
  std::array<double, 2> ns{};
  std::barrier start(2);
  const auto run = [&](std::size_t i) {
    start.arrive_and_wait();
    ns[i] = halves[i].ns(keys, 0.3);
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  return 1 / (1 / ns[0] + 1 / ns[1]);
}

// As one filter: what its batches take is what two threads take.
void measure_sliced(const Subject& subject, std::uint64_t keys, Kept& whole, const Options& options,
                    Report& report) {
  constexpr std::size_t kBatch = 64 << 10;  // shared out among threads, which meet at its end
  Kept sliced(subject.sliced, keys, subject.fpr);
  sliced.settle(0.6);
  sliced.resize(kBatch);
  const std::uint64_t a_turn = options.quick ? 500'000 : 2'000'000;
  const std::vector<Samples> samples =
      take_turns(options.rounds(),
                 {[&] { return whole.ns(a_turn, 0.3); }, [&] { return sliced.ns(a_turn, 0.3); }});
  const double times = ratio(samples[0], samples[1]);
  report.row({subject.sliced, in_short(keys), format_size(sliced.bytes()),
              fmt::format("{:.1f}", median(samples[0])), fmt::format("{:.1f}", median(samples[1])),
              fmt::format("{:.2f}", times)});
  report.at_least(fmt::format("{}, {} keys: two threads / one", subject.sliced, in_short(keys)),
                  times, 1.7);
}

void measure(const Subject& subject, const Options& options, Report& report) {
  const std::uint64_t keys = options.quick ? subject.keys / 10 : subject.keys;
  Kept whole(subject.settings, keys, subject.fpr);
  std::array<Kept, 2> halves = {Kept(subject.settings, keys / 2, subject.fpr),
                                Kept(subject.settings, keys / 2, subject.fpr)};
  whole.settle(0.6);
  for (Kept& half : halves) half.settle(0.6);
  const std::uint64_t a_turn = options.quick ? 500'000 : 2'000'000;
  const std::vector<Samples> samples =
      take_turns(options.rounds(),
                 {[&] { return whole.ns(a_turn, 0.3); }, [&] { return both_ns(halves, a_turn); }});
  const double times = ratio(samples[0], samples[1]);
  report.row({subject.name, in_short(keys), format_size(whole.bytes()),
              fmt::format("{:.1f}", median(samples[0])), fmt::format("{:.1f}", median(samples[1])),
              fmt::format("{:.2f}", times)});
  report.at_least(fmt::format("{}, {} keys: two threads / one", subject.name, in_short(keys)),
                  times, 1.7);
  if (subject.sliced != nullptr) measure_sliced(subject, keys, whole, options, report);
}

}  // namespace

void run_threads(const Options& options, Report& report) {
  report.table("Two threads, each with half of the keys: batched observe, 30 % duplicates",
               {"filter", "keys", "table", "one thread, ns a key", "two", "times as fast"});
  for (const Subject& subject : kSubjects) measure(subject, options, report);
}

}  // namespace sluice::bench
