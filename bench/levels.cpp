// The same filter on each instruction set that this processor has, in cache and out of it.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kept.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::bench {
namespace {

struct Subject {
  const char* name;
  const char* settings;
  double fpr;
  std::uint64_t keys;  // out of cache
};

constexpr Subject kSubjects[] = {
    {"blocked Bloom, 8 probes", "bloom,layout=blocked,probes=8", 1e-2, 100'000'000},
    {"cohort, 24-bit slots", "cohort,slot=24", 1e-4, 50'000'000},
    {"apbbf, line", "apbbf,layout=line", 2e-2, 50'000'000},
    {"apbbf, column", "apbbf,layout=column,k=2,l=5", 2e-4, 50'000'000},
};

// Results do not depend on the set, so that one filter serves all.
void measure(const Subject& subject, bool in_cache, const Options& options, Report& report) {
  const std::vector<std::string_view> levels = simd_levels();
  const std::uint64_t keys = in_cache ? 100'000 : options.quick ? subject.keys / 10 : subject.keys;
  Kept kept(subject.settings, keys, subject.fpr);
  kept.settle(0.6);
  std::vector<std::function<double()>> turns;
  for (const std::string_view level : levels)
    turns.push_back([&, level] {
      force_simd_level(level);
      return kept.ns(options.quick ? 250'000 : 1'000'000, 0.3);
    });
  const std::vector<Samples> samples = take_turns(options.rounds(), turns);
  std::vector<std::string> cells = {
      fmt::format("{}, {}", subject.name, in_cache ? "in cache" : "out of cache"), in_short(keys)};
  for (std::size_t i = 0; i < levels.size(); ++i) {
    cells.push_back(fmt::format("{:.1f}", median(samples[i])));
    if (i == 0) continue;
    const double times = ratio(samples[i], samples[0]);
    cells.push_back(fmt::format("{:.2f}", times));
    if (levels[0] == "avx512")
      report.at_most(fmt::format("{}, {}: {} / avx512", subject.name,
                                 in_cache ? "in cache" : "out of cache", levels[i]),
                     times, levels[i] == "portable" ? 4 : 1.3);
  }
  report.row(cells);
}

}  // namespace

void run_levels(const Options& options, Report& report) {
  const std::vector<std::string_view> levels = simd_levels();
  std::vector<std::string> columns = {"filter", "keys"};
  for (std::size_t i = 0; i < levels.size(); ++i) {
    columns.push_back(fmt::format("{}, ns", levels[i]));
    if (i > 0) columns.push_back(fmt::format("/ {}", levels[0]));
  }
  report.table("Instruction sets: batched observe, 30 % duplicates", columns);
  const std::string chosen(simd_level());
  for (const bool in_cache : {true, false})
    for (const Subject& subject : kSubjects) measure(subject, in_cache, options, report);
  force_simd_level(chosen);
}

}  // namespace sluice::bench
