// The filter of no known size against one that was told: distinct keys from empty on, batch by
// batch in turns with a blocked Bloom filter planned for all of them. Neither has touched its
// memory before. Speed is told three ways: by the time of all batches, with the pages of both; by
// that of all batches of the one and the later ones of the other, whose pages are there by then;
// and by the median of the later batches, few of which meet a new page. The bar is on the last, the
// only one that repeats from run to run: a page costs what the system makes it cost that day.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <vector>

#include "measure.hpp"
#include "options.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/growing/growing.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kGrowingBatch = 1024;
// Bits a key are judged from here on: below, the first 64 KiB are not full.
constexpr std::uint64_t kManyKeys = 1'000'000;

class Batches {
 public:
  void judge(AnyFilter& filter, std::span<const Digest> digests) {
    const auto start = Clock::now();
    filter.observe(digests, verdicts_);
    ns_.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
    duplicates_ += static_cast<std::uint64_t>(std::ranges::count(verdicts_, Verdict::duplicate));
  }
  double mean_ns() const { return mean(ns_); }
  double later_mean_ns() const { return mean(later()); }
  double median_ns() const { return median(later()) / kGrowingBatch; }
  double worst_over_median() const { return *std::ranges::max_element(ns_) / median(ns_); }
  std::uint64_t duplicates() const { return duplicates_; }

 private:
  using Clock = std::chrono::steady_clock;
  // All but the first twentieth: 10 of 200 million keys.
  Samples later() const {
    return {ns_.begin() + static_cast<std::ptrdiff_t>(ns_.size() / 20), ns_.end()};
  }
  static double mean(const Samples& ns) {
    return std::accumulate(ns.begin(), ns.end(), 0.0) /
           static_cast<double>(ns.size() * kGrowingBatch);
  }
  std::vector<Verdict> verdicts_ = std::vector<Verdict>(kGrowingBatch);
  Samples ns_;
  std::uint64_t duplicates_ = 0;
};

void measure(const char* settings, double fpr, std::uint64_t keys, bool bars, Report& report) {
  AnyFilter growing = make_filter(settings, {.fpr = fpr});
  AnyFilter known = make_filter("bloom,layout=blocked", {.keys = keys, .fpr = fpr});
  SplitMix64 random(1);
  std::vector<Digest> digests(kGrowingBatch);
  const auto draw = [&] {
    for (Digest& digest : digests) digest = {random.next(), random.next()};
  };
  Batches of_growing, of_known;
  Samples lines;
  double most_bits = 0;
  for (std::uint64_t done = 0; done < keys; done += kGrowingBatch) {
    draw();
    const std::uint64_t before = growing.as<Growing>()->lines_touched();
    of_growing.judge(growing, digests);
    of_known.judge(known, digests);
    lines.push_back(static_cast<double>(growing.as<Growing>()->lines_touched() - before));
    const FilterStats stats = growing.stats();
    if (stats.keys > kManyKeys)
      most_bits = std::max(most_bits,
                           static_cast<double>(stats.bytes) * 8 / static_cast<double>(stats.keys));
  }
  const double worst_lines = *std::ranges::max_element(lines) / median(lines);
  const double speed = of_known.median_ns() / of_growing.median_ns();
  const double error = static_cast<double>(of_growing.duplicates()) / static_cast<double>(keys);
  report.row(
      {settings, format_count(keys), fmt::format("{:.2f}", speed),
       fmt::format("{:.2f}", of_known.mean_ns() / of_growing.mean_ns()),
       fmt::format("{:.2f}", of_known.later_mean_ns() / of_growing.mean_ns()),
       fmt::format("{:.1f} / {:.1f}", of_growing.median_ns(), of_known.median_ns()),
       fmt::format("{:.1f} / {:.1f}", of_growing.mean_ns(), of_known.mean_ns()),
       fmt::format("{:.1f}", most_bits), fmt::format("{:.2f}", median(lines) / kGrowingBatch),
       fmt::format("{:.2f}", worst_lines), fmt::format("{:.1f}", of_growing.worst_over_median()),
       fmt::format("{:.3f}",
                   static_cast<double>(growing.as<Growing>()->moves()) / static_cast<double>(keys)),
       fmt::format("{}", of_growing.duplicates()),
       fmt::format("{:.1e}", growing.stats().predicted_fpr)});
  if (!bars) return;
  report.at_least("growing: speed / that of a filter of known size, by medians", speed, 0.4);
  report.at_most("growing: most bits per key beyond the first million keys", most_bits, 64);
  report.at_most("growing: cache lines of the worst batch / of the median one", worst_lines, 20);
  report.at_most("growing: share of distinct keys lost", error, fpr);
}

}  // namespace

void run_growing(const Options& options, Report& report) {
  report.table("Growing from empty against a blocked Bloom filter of known size, batches of 1024",
               {"filter", "keys", "speed by medians", "by totals",
                "by totals, by totals, known has its pages", "median ns, known", "mean ns, known",
                "most bits per key", "lines per key", "worst/median lines", "worst/median time",
                "moves per key", "lost", "predicted error"});
  measure("growing", 1e-6, options.quick ? 5'000'000 : 200'000'000, true, report);
  measure("growing,slot=16", 0.05, options.quick ? 5'000'000 : 50'000'000, false, report);
  measure("growing,slot=64", 1e-6, options.quick ? 5'000'000 : 50'000'000, false, report);
  report.flush();
}

}  // namespace sluice::bench
