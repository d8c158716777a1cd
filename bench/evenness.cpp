// How evenly rotations, sweeps and growth are spread: the worst batch against the median one. The
// same stream five times: what the machine does to a batch it does not do five times over, so the
// fastest of the five is what the filter does to it.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kept.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kBatch = 1024;
constexpr int kRuns = 5;
constexpr double kBar = 20;

struct Subject {
  const char* name;
  const char* settings;
  double fpr;
  bool grows = false;
};

constexpr Subject kSubjects[] = {
    {"cohort, 16-bit slots", "cohort,slot=16", 2e-2},
    {"cohort, 24-bit slots", "cohort,slot=24", 1e-4},
    {"cohort, 32-bit slots", "cohort,slot=32", 1e-6},
    {"apbbf, line", "apbbf,layout=line", 2e-2},
    {"apbbf, column", "apbbf,layout=column,k=2,l=5", 2e-4},
    {"apbbf, segment", "apbbf,layout=segment,k=2,l=5", 2e-4},
    {"apbf", "apbf", 1e-2},
    {"timing", "timing", 1e-2},
    {"timer", "timer", 1e-2},
    {"growing, from empty", "growing", 1e-6, true},
};

}  // namespace

void run_evenness(const Options& options, Report& report) {
  const std::uint64_t keys = 1'000'000;
  const std::size_t batches = options.quick ? 1000 : 3000;
  report.table(
      fmt::format("Batches of {} keys, windows of {}: the fastest of {} runs of each batch", kBatch,
                  in_short(keys), kRuns),
      {"filter", "worst / median", "99th percentile / median", "median ns per key"});
  for (const Subject& each : kSubjects) {
    Samples fastest(batches, 1e300);
    for (int run = 0; run < kRuns; ++run) {
      // One that grows has room for all that comes, and starts with the first.
      Kept kept(each.settings, each.grows ? 4 * keys : keys, each.fpr, !each.grows);
      if (!each.grows) kept.settle();
      kept.resize(kBatch);
      for (double& best : fastest) best = std::min(best, kept.ns(kBatch, 0.3));
    }
    std::ranges::sort(fastest);
    const double middle = fastest[batches / 2];
    report.row({each.name, fmt::format("{:.2f}", fastest.back() / middle),
                fmt::format("{:.2f}", fastest[batches / 100 * 99] / middle),
                fmt::format("{:.2f}", middle)});
    report.at_most(fmt::format("{}: worst batch / median batch, in time", each.name),
                   fastest.back() / middle, kBar);
  }
}

}  // namespace sluice::bench
