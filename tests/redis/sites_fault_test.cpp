// What slices on real servers do when a server is killed, hangs, or comes back without its
// contents.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "tests/redis/sites.hpp"
#include "tests/support/counts.hpp"

namespace sluice::redis {
namespace {

using namespace testing_support;
using model::FaultRule;
using sluice::testing_support::count_of;

constexpr std::uint32_t kSites = 12;
constexpr unsigned kProbes = 4;
// A rate is measured with so many keys; 2.3 % false positives when the filter holds `kSeen`.
const std::size_t kSeen = count_of(4000u, 40000u);
constexpr std::uint64_t kFresh = 1'000'000'000;

SliceParams vertical() {
  return {Slicing::vertical, kSeen * 8, kProbes, kSites, 1, 1};
}

// Five standard errors, keys drawn independently. The set bits are those of one set of keys, which
// is why a rate of exactly 0 or 1 gets a little room as well.
void expect_rate(double measured, double predicted, std::size_t keys, const char* what) {
  const double error = std::sqrt(predicted * (1 - predicted) / static_cast<double>(keys));
  EXPECT_NEAR(measured, predicted, 5 * error + 1e-9) << what;
}

// Sites on the same server as the first, as the map says.
std::vector<std::uint32_t> sites_beside_the_first(const Producer& producer) {
  std::vector<std::uint32_t> sites;
  for (std::uint32_t site = 0; site < kSites; ++site)
    if (server_of(producer, site, kSites) == server_of(producer, 0, kSites)) sites.push_back(site);
  return sites;
}

// Asks until all sites answer again.
void wait_until_answered(Producer& producer) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  std::uint64_t before;
  do {
    ASSERT_LT(std::chrono::steady_clock::now(), limit) << producer.client->problem();
    before = producer.slices.traffic().unanswered;
    duplicate_share(producer.slices, keys(0, 100));
  } while (producer.slices.traffic().unanswered != before);
}

// A primary is killed. Replicas have its writes, and may not take over before the rates are
// measured.
void kill_one(FaultRule rule, const char* name) {
  SCOPED_TRACE(name);
  // Refused connections are noticed at once; nothing here waits for the timeout.
  Producer producer(servers(), {.slices = vertical(), .rule = rule}, patient());
  const model::SlicedFilter filter{Slicing::vertical,
                                   static_cast<double>(kSeen * 8),
                                   kProbes,
                                   static_cast<double>(kSeen),
                                   kSites,
                                   1};
  const std::vector<Digest> seen = keys(0, kSeen), fresh = keys(kFresh, kSeen);
  observe(producer.slices, seen);
  const auto failed = static_cast<unsigned>(sites_beside_the_first(producer).size());
  ASSERT_EQ(failed, kSites / 3);
  // In mid-stream: keys that are known set nothing.
  outside("kill " + text_of(server_of(producer, 0, kSites)));
  while (producer.slices.traffic().unanswered == 0)
    observe(producer.slices, std::span(seen).first(100));
  outside("killed?");
  const model::SlicedErrors errors = model::sliced_errors(filter, failed, rule);
  expect_rate(duplicate_share(producer.slices, fresh), errors.fpr, kSeen, "false positives, down");
  expect_rate(1 - duplicate_share(producer.slices, seen), errors.fnr, kSeen,
              "false negatives, down");
  EXPECT_GT(producer.slices.traffic().unanswered, 0u);
  // The stream goes on.
  const std::vector<Digest> meanwhile = keys(kFresh * 2, kSeen / 10);
  observe(producer.slices, meanwhile);

  // Nobody says where the slots are now: the killed server is still away.
  outside("failover");
  wait_until_answered(producer);
  EXPECT_EQ(duplicate_share(producer.slices, seen), 1.0) << "known before";
  // What was not remembered everywhere is let through again at most once, and then known.
  observe(producer.slices, meanwhile);
  for (const std::uint32_t site : sites_beside_the_first(producer)) producer.slices.trust(site);
  observe(producer.slices, meanwhile);
  for (std::uint32_t site = 0; site < kSites; ++site) EXPECT_TRUE(producer.slices.trusted(site));
  EXPECT_EQ(duplicate_share(producer.slices, meanwhile), 1.0);
  EXPECT_EQ(duplicate_share(producer.slices, seen), 1.0);
  model::SlicedFilter fuller = filter;
  fuller.keys += static_cast<double>(meanwhile.size());
  expect_rate(duplicate_share(producer.slices, fresh), model::sliced_fpr(fuller), kSeen,
              "false positives, healed");
  outside("revive");
}

// With full counts 21 failovers in a row: whoever took over is killed next.
const int kFailovers = count_of(1, 7);

TEST(ClusterSites, AKilledPrimaryCountsAsDuplicate) {
  for (int i = 0; i < kFailovers; ++i) kill_one(FaultRule::duplicate(), "duplicate");
}
TEST(ClusterSites, AKilledPrimaryCountsAsDistinct) {
  for (int i = 0; i < kFailovers; ++i) kill_one(FaultRule::distinct(kProbes), "distinct");
}
TEST(ClusterSites, AKilledPrimaryByTheHybridRule) {
  for (int i = 0; i < kFailovers; ++i) kill_one(FaultRule::hybrid(3), "hybrid");
}

// By default a cluster serves no slot while one of them has no server.
TEST(WholeClusterSites, WhatIsDownIsWaitedForUntilTheDeadline) {
  constexpr std::chrono::milliseconds kTimeout{500};
  const Address address = servers();
  Producer patient_one(address, {.slices = vertical()});
  Producer hasty(address, {.slices = vertical(), .rule = FaultRule::distinct(kProbes)},
                 {.timeout = kTimeout});
  const std::vector<Digest> seen = keys(0, kSeen), few = keys(0, 100);
  patient_one.slices.insert(seen);
  outside("kill " + text_of(server_of(patient_one, 0, kSites)));
  outside("killed?");
  outside("down?");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(duplicate_share(hasty.slices, few), 0.0);
  EXPECT_GE(std::chrono::steady_clock::now() - start, kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kTimeout * 7 / 2);
  outside("failover");
  wait_until_answered(hasty);
  EXPECT_EQ(duplicate_share(patient_one.slices, seen), 1.0);
}

// `how`: what test_sites.py does so that a server has lost everything and answers again.
void lose_contents(const std::string& how) {
  SCOPED_TRACE(how);
  Producer producer(servers(), {.slices = vertical(), .rule = FaultRule::hybrid(1)});
  const std::vector<Digest> seen = keys(0, kSeen);
  producer.slices.insert(seen);
  const std::vector<std::uint32_t> lost = sites_beside_the_first(producer);
  ASSERT_LT(lost.size(), kSites);
  outside(how + " " + text_of(server_of(producer, 0, kSites)));
  wait_until_answered(producer);
  // Nobody believes that these keys are new. A key with all its bits at lost sites has no live one
  // left.
  EXPECT_GT(duplicate_share(producer.slices, seen),
            1 - std::pow(static_cast<double>(lost.size()) / kSites, kProbes) * 1.5);
  for (std::uint32_t site = 0; site < kSites; ++site)
    EXPECT_EQ(producer.slices.trusted(site), !std::ranges::count(lost, site)) << site;
  // Repeats fill them again.
  observe(producer.slices, seen);
  for (const std::uint32_t site : lost) producer.slices.trust(site);
  EXPECT_EQ(duplicate_share(producer.slices, seen), 1.0);
}

TEST(Sites, AServerThatWasFlushedIsNoticed) {
  lose_contents("flush");
}
TEST(PlainSites, AServerThatRestartsEmptyIsNoticed) {
  lose_contents("restart");
}

// With a lot to send to it, so that its buffers fill up, too.
TEST(PlainSites, AServerThatHangsIsWaitedForOnce) {
  constexpr std::chrono::milliseconds kTimeout{500};
  Producer producer(servers(), {.slices = vertical()},
                    {.timeout = kTimeout, .longest_retry = std::chrono::seconds(5)});
  const std::vector<Digest> seen = keys(0, kSeen);
  wait_until_answered(producer);
  producer.slices.insert(seen);
  wait_until_answered(producer);
  const std::string server = text_of(server_of(producer, 0, kSites));
  outside("stop " + server);
  const auto start = std::chrono::steady_clock::now();
  duplicate_share(producer.slices, std::span(seen).first(512));
  // All its four sites are late together, not one after the other.
  EXPECT_GE(std::chrono::steady_clock::now() - start, kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kTimeout * 7 / 2);
  EXPECT_NE(producer.client->problem().find(server), std::string::npos)
      << producer.client->problem();
  EXPECT_EQ(duplicate_share(producer.slices, seen), 1.0);
  outside("resume " + server);
  wait_until_answered(producer);
  EXPECT_EQ(duplicate_share(producer.slices, seen), 1.0);
}

}  // namespace
}  // namespace sluice::redis
