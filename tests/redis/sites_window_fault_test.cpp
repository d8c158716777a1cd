// What windows over cell slices on real servers do when a server is killed or loses its contents.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/redis/window_sites.hpp"
#include "tests/support/counts.hpp"

namespace sluice::redis {
namespace {

using namespace testing_support;
using model::FaultRule;
using sluice::testing_support::count_of;

constexpr std::uint32_t kSites = 12;
constexpr std::uint64_t kFresh = 1'000'000'000;
const std::size_t kSeen = count_of(2000u, 20000u);

SliceParams vertical(const WindowCase& kind) {
  return {Slicing::vertical, kSeen * (kind.aged() ? 20 : 40), kind.probes(), kSites, 1, 1};
}

// Pages of one server are gone, and it answers again: flushed, or all of them evicted. That is
// noticed, doubted, and over once the window has passed.
TEST(WindowSites, AServerThatWasFlushedIsDoubtedForAWindow) {
  for (const WindowCase& kind : kWindows) {
    SCOPED_TRACE(kind.name);
    WindowProducer producer(servers(), kind, vertical(kind), minute(FaultRule::hybrid(1)));
    const std::vector<Digest> seen = keys(0, kSeen);
    EXPECT_GT(delivered(*producer.slices, seen, kThen), kSeen * 99 / 100);
    const std::vector<std::uint32_t> lost = producer.beside_the_first();
    outside("flush " + text_of(producer.server(0)));
    wait_until_answered(producer, kThen);
    // Nobody believes that these keys are new, unless all their cells are lost.
    const double share = static_cast<double>(lost.size()) / kSites;
    const double all_lost = std::pow(share, kind.k);
    EXPECT_GE(static_cast<double>(held(*producer.slices, seen, kThen + 1)),
              (1 - all_lost * 1.5) * static_cast<double>(kSeen) - 1);
    for (std::uint32_t site = 0; site < kSites; ++site)
      EXPECT_EQ(producer.slices->trusted(site), !std::ranges::count(lost, site)) << site;
    // Deliveries since then are remembered everywhere.
    const std::vector<Digest> later = keys(kFresh, kSeen / 4);
    const std::size_t remembered = delivered(*producer.slices, later, kThen + kMinuteMs / 2);
    EXPECT_GT(remembered, later.size() * 9 / 10);
    const std::int64_t gone = kThen + kMinuteMs / 2 + kMinuteMs - 1;
    EXPECT_GE(held(*producer.slices, later, gone), remembered);
    // A window, its slack and the skew after the loss everybody is believed again.
    const std::int64_t over =
        kThen + kMinuteMs + producer.slices->slack_ms() + producer.slices->ahead_ms() + 1000;
    for (std::int64_t now = gone; now < over; now += kMinuteMs / 2)
      delivered(*producer.slices, keys(kFresh * 2 + static_cast<std::uint64_t>(now), 10), now);
    delivered(*producer.slices, keys(kFresh * 3, 10), over);
    for (std::uint32_t site = 0; site < kSites; ++site)
      EXPECT_TRUE(producer.slices->trusted(site)) << site;
    const std::uint64_t ruled = producer.slices->ruled();
    EXPECT_GT(ruled, 0u);
    held(*producer.slices, keys(kFresh * 4, kSeen), over);
    EXPECT_EQ(producer.slices->ruled(), ruled);
  }
}

// A primary is killed; its replica takes over with all its pages and their times.
void kill_one(const WindowCase& kind, FaultRule rule, const char* name) {
  SCOPED_TRACE(kind.name + " " + name);
  WindowProducer producer(servers(), kind, vertical(kind), minute(rule));
  const std::vector<Digest> seen = keys(0, kSeen), fresh = keys(kFresh, kSeen);
  const std::size_t known = delivered(*producer.slices, seen, kThen);
  EXPECT_GT(known, kSeen * 99 / 100);
  ASSERT_EQ(producer.beside_the_first().size(), kSites / 3);
  outside("kill " + text_of(producer.server(0)));
  while (producer.slices->traffic().unanswered == 0)
    held(*producer.slices, std::span(seen).first(100), kThen + 1);
  outside("killed?");
  const double lost =
      static_cast<double>(held(*producer.slices, fresh, kThen + 2)) / static_cast<double>(kSeen);
  const double kept =
      static_cast<double>(held(*producer.slices, seen, kThen + 2)) / static_cast<double>(kSeen);
  if (rule.least_live == 0) {
    EXPECT_EQ(kept, 1.0);
    EXPECT_LT(lost, 0.3);
  } else {
    EXPECT_LT(lost, 0.02);
    EXPECT_LT(kept, 0.8);
  }
  // The stream goes on.
  const std::vector<Digest> meanwhile = keys(kFresh * 2, kSeen / 10);
  delivered(*producer.slices, meanwhile, kThen + 1000);
  outside("failover");
  wait_until_answered(producer, kThen + 1000);
  EXPECT_EQ(held(*producer.slices, seen, kThen + 2000), kSeen) << "known before";
  // What was not remembered everywhere is let through again at most once, and then known.
  delivered(*producer.slices, meanwhile, kThen + 3000);
  for (std::uint32_t site = 0; site < kSites; ++site) producer.slices->trust(site);
  delivered(*producer.slices, meanwhile, kThen + 4000);
  EXPECT_EQ(held(*producer.slices, meanwhile, kThen + 5000), meanwhile.size());
  EXPECT_EQ(held(*producer.slices, seen, kThen + kMinuteMs - 1), kSeen);
  EXPECT_LT(held(*producer.slices, fresh, kThen + 5000), kSeen / 50);
  outside("revive");
}

TEST(ClusterWindowSites, AKilledPrimaryOfTimers) {
  kill_one(kWindows[0], FaultRule::duplicate(), "duplicate");
  kill_one(kWindows[0], FaultRule::distinct(4), "distinct");
}
TEST(ClusterWindowSites, AKilledPrimaryOfPagesOfBits) {
  kill_one(kWindows[3], FaultRule::duplicate(), "duplicate");
  kill_one(kWindows[3], FaultRule::distinct(4), "distinct");
}

}  // namespace
}  // namespace sluice::redis
