#include "sluice/filters/forecast.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue_row.hpp"

namespace sluice {
namespace {

// For every size, the forecast equals what the filter says about itself.
TEST(Forecast, IsWhatIsMade) {
  for (const FilterInfo& info : catalogue()) {
    if (info.name == "none") continue;
    for (const std::uint64_t keys : {1, 100, 5000, 200'000})
      for (const double fpr : {0.3, 1e-2, 1e-4, 1e-7}) {
        SCOPED_TRACE(std::string(info.name) + " " + std::to_string(keys));
        const Wish wish{.keys = keys, .fpr = fpr};
        // Filters that forget at random have no tables that small.
        if (keys == 1 && std::ranges::any_of(info.row->families, &PlanFamily::forgets)) continue;
        const Forecast forecast = forecast_filter(info.name, wish);
        const AnyFilter made = make_filter(info.name, wish);
        EXPECT_TRUE(std::isfinite(forecast.fpr) && std::isfinite(forecast.fnr) &&
                    std::isfinite(forecast.lines));
        EXPECT_EQ(forecast.settings.text(), made.settings().text());
        EXPECT_LE(made.stats().bytes, forecast.bytes);
        // What may grow within what it is planned for takes up to four times as much: the larger
        // table, and the smaller one that is copied into it. What threads need comes with them.
        // A short list before its table, and shards before their threads, take less.
        constexpr std::uint64_t kLater = 16'384;
        EXPECT_GE(4 * made.stats().bytes + kLater, forecast.bytes);
        EXPECT_LE(forecast.fpr, fpr * (1 + 1e-9));
        EXPECT_LE(made.stats().planned_fpr, forecast.fpr * (1 + 1e-9) + (forecast.fpr == 0));
        EXPECT_EQ(made.ages(), forecast.generations.has_value());
        if (!made.ages()) continue;
        EXPECT_EQ(made.generations(), *forecast.generations);
        EXPECT_DOUBLE_EQ(made.slack(), forecast.slack);
        EXPECT_DOUBLE_EQ(made.npws(), forecast.npws);
      }
  }
}

TEST(Forecast, LeavesOutNoBytesInBrief) {
  std::vector<std::string> filters = {"sharded,of=cohort", "sharded,of=timing,shards=3"};
  for (const FilterInfo& info : catalogue()) filters.emplace_back(info.name);
  for (const std::string& filter : filters) {
    Wish wish{.keys = 5000, .fpr = 1e-3};
    const Forecast whole = forecast_filter(filter, wish);
    wish.brief = true;
    const Forecast brief = forecast_filter(filter, wish);
    EXPECT_EQ(brief.bytes, whole.bytes) << filter;
    EXPECT_EQ(brief.keys, whole.keys) << filter;
    EXPECT_EQ(brief.fpr, whole.fpr) << filter;
  }
}

TEST(Forecast, RefusesWhatCannotBeMade) {
  for (const char* filter : {"cohort,generations=62", "cohort,slot=17", "apbf,k=64,l=255",
                             "timing,timer=3,generations=9", "timer,timer=9", "nothing", "bloom,",
                             "growing,slot=17", "reservoir,filters=1,resets=1", "dynamic,growth=2"})
    EXPECT_THROW(forecast_filter(filter, {.keys = 1000, .fpr = 0.01}), BadParameters) << filter;
}

// A single timer per key: its error is finite, and the filter can be asked for it.
TEST(Forecast, OfOneProbeIsANumber) {
  for (const char* filter :
       {"timer,fpr=0.5", "timer,probes=1", "timing,fpr=0.5", "timing,probes=1"}) {
    const Forecast forecast = forecast_filter(filter, {.keys = 1000, .fpr = 0.01});
    EXPECT_GT(forecast.fpr, 0) << filter;
    EXPECT_LE(forecast.fpr, 0.5) << filter;
  }
}

// So it is of a table far too small: it errs nearly always, and says so.
TEST(Forecast, OfAHopelessTableIsANumber) {
  for (const char* filter : {"timing,bytes=1000", "timing,timers=1", "timing,bytes=8,probes=1",
                             "timer,timers=64", "timer,timers=1,probes=1"}) {
    const Wish wish{.keys = 100'000, .fpr = 1e-3};
    const double fpr = forecast_filter(filter, wish).fpr;
    EXPECT_GT(fpr, 0.9) << filter;
    EXPECT_LE(fpr, 1) << filter;
  }
}

// Where a generation does not fit, that is said at once: a window would get one successor after the
// other, all of them full before they are old.
TEST(Forecast, RefusesTooFewBytesForAGeneration) {
  const Wish wish{.keys = 100'000, .fpr = 1e-3};
  for (const char* filter :
       {"apbf,bytes=64KiB", "apbbf,bytes=64KiB", "apbbf,layout=column,bytes=64KiB",
        "apbbf,layout=line,bytes=64KiB,fpr=0.05", "cohort,bytes=64KiB"}) {
    EXPECT_THROW(make_filter(filter, wish), BadParameters) << filter;
    EXPECT_THROW(forecast_filter(filter, wish), BadParameters) << filter;
  }
}

}  // namespace
}  // namespace sluice
