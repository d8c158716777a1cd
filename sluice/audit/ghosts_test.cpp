#include "sluice/audit/ghosts.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "sluice/filters/catalogue.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using namespace testing_support;

// A filter that finds nearly everything, or nothing.
AnyFilter full_filter() {
  AnyFilter filter = make_filter("bloom,keys=10,fpr=0.5", {});
  filter.insert(random_digests(1, 5000));
  return filter;
}

AnyFilter empty_filter() {
  return make_filter("bloom,keys=10,fpr=0.5", {});
}

// 100 distinct events before the first probe, 300 between the two: the first stands for 50 + 150 of
// them, the second for 150, and 50 came while the filter was empty.
TEST(Ghosts, AProbeStandsForTheDistinctEventsAroundIt) {
  const AnyFilter empty = empty_filter(), full = full_filter();
  Ghosts ghosts(3, true);
  EXPECT_EQ(ghosts.average().trials, 0);
  ghosts.count(1000, 100);
  ghosts.ask(empty, 200);
  ghosts.count(500, 300);
  ghosts.ask(full, 50);
  EXPECT_NEAR(*ghosts.average().value(), 150.0 / 400, 1e-9);
  EXPECT_EQ(ghosts.average().trials, 250);
  EXPECT_EQ(ghosts.average().errors, 50);
  EXPECT_EQ(ghosts.now().errors, 50);
  EXPECT_EQ(ghosts.now().trials, 50);
}

// However many are asked at the end, they stand for the end alone.
TEST(Ghosts, ManyAtTheEndDoNotMoveTheAverage) {
  const AnyFilter empty = empty_filter(), full = full_filter();
  Ghosts ghosts(3, true);
  ghosts.count(1000, 900);
  ghosts.ask(empty, 128);
  ghosts.count(100, 100);
  ghosts.ask(full, 8);
  ghosts.ask(full, 5000);
  EXPECT_NEAR(*ghosts.average().value(), 50.0 / 1000, 1e-9);
  EXPECT_EQ(ghosts.now().trials, 5008);
  ghosts.ask(full, std::uint64_t{1} << 40);
  EXPECT_LT(ghosts.now().trials, 2 * Ghosts::kEnoughFound);
}

// A filter that found nothing while the events came, and something at the end, where hardly one came. Of the 2,000
// that were asked before, some might as well have been found.
TEST(Ghosts, ManyAtTheEndDoNotMakeTheAverageMoreCertain) {
  const AnyFilter empty = empty_filter();
  AnyFilter half = make_filter("bloom,keys=1000,fpr=0.5", {});
  half.insert(random_digests(1, 1000));
  Ghosts ghosts(3, true);
  for (int probe = 0; probe < 20; ++probe) {
    ghosts.count(6400, 1000);
    ghosts.ask(empty, 100);
  }
  const double none = ghosts.average().high();
  EXPECT_NEAR(none, 3.7 / 2000, 0.3 / 2000);
  ghosts.count(100, 1);
  ghosts.ask(half, 5000);
  const Rate rate = ghosts.average();
  EXPECT_LT(*rate.value(), 1.0 / 2000);
  EXPECT_GT(rate.high(), 0.95 * none);
  EXPECT_LT(rate.high(), 3 * none);
}

// Of a filter that was loaded nothing is known before the first probe.
TEST(Ghosts, TheFirstProbeOfALoadedFilterStandsForWhatCameBefore) {
  const AnyFilter full = full_filter();
  Ghosts ghosts(3, false);
  ghosts.count(64, 10);
  ghosts.ask(full, 20);
  EXPECT_EQ(*ghosts.average().value(), 1);
  Ghosts none(3, false);
  none.ask(full, 20);  // no distinct event yet
  EXPECT_EQ(*none.average().value(), 1);
}

// After every sixteenth of a run, at least 64 records and at most 8192.
TEST(Ghosts, AreDueMoreOftenAtFirst) {
  const AnyFilter empty = empty_filter();
  Ghosts ghosts(3, true);
  std::uint64_t records = 0, probes = 0, asked = 0;
  while (records < 1'000'000) {
    ghosts.count(16, 1);
    records += 16;
    const std::uint64_t due = ghosts.due();
    if (due == 0) continue;
    ghosts.ask(empty, due);
    asked += due;
    ++probes;
    EXPECT_TRUE(probes > 1 || records == 64) << records;
  }
  EXPECT_GT(probes, 16u + 100u);
  EXPECT_LT(probes, 250u);
  EXPECT_NEAR(static_cast<double>(asked), 1'000'000 / Ghosts::kEvery, 1500);
}

}  // namespace
}  // namespace sluice
