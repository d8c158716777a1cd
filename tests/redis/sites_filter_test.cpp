// Filter slices on real servers with the module judge as exact truth, one of racing producers wins,
// and what happens when a server is killed or comes back without its contents.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/redis/filter_sites.hpp"
#include "tests/support/counts.hpp"

namespace sluice::redis {
namespace {

using namespace testing_support;
using model::FaultRule;
using sluice::testing_support::count_of;
using sluice::testing_support::expect_truth_forever;
using sluice::testing_support::expect_truth_in_window;
using sluice::testing_support::judge;
using sluice::testing_support::timed_stream;

constexpr std::uint32_t kSites = 12;
const std::size_t kSeen = count_of(4000u, 40000u);
constexpr std::uint64_t kFresh = 1'000'000'000;

// --- verdicts ------------------------------------------------------------------------------------

TEST(FilterSites, JudgeAsExactTruthForever) {
  const std::size_t count = count_of(10'000u, 100'000u);
  SplitMix64 random(11);
  std::vector<Digest> stream;
  for (std::size_t i = 0; i < count; ++i) stream.push_back(digest_of(random.next() % (count / 3)));
  for (const std::uint32_t sites : {1u, 3u, kSites})
    for (const std::size_t batch : {37u, 20'000u}) {
      FilterProducer producer(servers(), sites, {}, {"FILTER", "exact"});
      expect_truth_forever(stream, judge(producer.slices, stream, {}, batch));
      EXPECT_EQ(producer.slices.ruled(), 0u) << producer.client->problem();
      std::vector<Verdict> verdicts(1000);
      producer.slices.may_contain(std::span(stream).first(1000), {}, verdicts);
      EXPECT_EQ(count_duplicates(verdicts), 1000u);
      producer.slices.may_contain(keys(kFresh, 1000), {}, verdicts);
      EXPECT_EQ(count_duplicates(verdicts), 0u);
    }
}

// Each event has a time of its own, up to five seconds before that of the last.
TEST(FilterSites, JudgeAsExactTruthInAWindowOfTime) {
  const std::size_t count = count_of(20'000u, 100'000u);
  const auto stream = timed_stream({.seed = 5,
                                    .records = count,
                                    .keys = count / 10,
                                    .start_ms = kStart,
                                    .step_ms = 600'000 / static_cast<std::int64_t>(count),
                                    .jitter_ms = 5000});
  for (const std::uint32_t sites : {1u, kSites}) {
    FilterProducer producer(servers(), sites, minute());
    const auto verdicts = judge(producer.slices, stream.digests, stream.times_ms, 1000);
    expect_truth_in_window(stream, verdicts, kWindowMs, kForgottenMs);
    EXPECT_EQ(producer.slices.ruled(), 0u) << producer.client->problem();
  }
}

// The planner's own choice errs once in a million, and ages by generations as well.
TEST(FilterSites, JudgeWithAFilterOfTheServersChoice) {
  FilterProducer producer(servers(), 3, minute(), {"WINDOW", "60s", "RATE", "100/s"});
  const std::vector<Digest> seen = keys(0, kSeen);
  EXPECT_EQ(observed(producer, seen, kStart), 0u);
  EXPECT_EQ(observed(producer, seen, kStart + kWindowMs - 1), kSeen);
  EXPECT_EQ(asked(producer, seen, kStart + kForgottenMs), 0u);
  EXPECT_EQ(producer.slices.ruled(), 0u);
}

TEST(FilterSites, AreSharedByProducersAndDoNotExpire) {
  const Address address = servers();
  FilterProducer first(address, 3, minute()), second(address, 3, minute());
  const std::vector<Digest> seen = keys(0, 3000);
  first.slices.insert(seen, std::vector(seen.size(), kStart));
  EXPECT_EQ(asked(second, seen, kStart + 1), 3000u);
  FilterProducer third(address, 3, minute());
  EXPECT_EQ(observed(third, seen, kStart + 1), 3000u);
  for (std::uint32_t site = 0; site < 3; ++site) {
    EXPECT_TRUE(third.slices.trusted(site));
    const ModuleSite place(third.client, {.name = address.name, .site = site, .sites = 3});
    Commands commands;
    commands.add({"PTTL", place.key()});
    std::vector<Reply> replies;
    third.client->receive(third.client->send(slot_of(place.key()), std::move(commands)), replies);
    EXPECT_EQ(replies[0].integer, -1);
  }
}

// They make the filters, too, whoever comes first.
TEST(FilterSites, OneOfRacingProducersWins) {
  constexpr unsigned kProducers = 4;
  const std::size_t count = count_of(2000u, 20000u);
  const Address address = servers();
  std::vector<std::atomic<unsigned>> wins(count);
  std::atomic<unsigned> ready = 0;
  std::vector<std::jthread> threads;
  for (unsigned number = 0; number < kProducers; ++number)
    threads.emplace_back([&, number] {
      // Two by two in the same order, so that they meet.
      SplitMix64 random(number / 2);
      std::vector<std::size_t> order(count);
      for (std::size_t i = 0; i < count; ++i) order[i] = i;
      for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
      ++ready;
      while (ready < kProducers) std::this_thread::yield();
      FilterProducer producer(address, 8, minute());
      for (std::size_t at = 0; at < count; at += 10) {
        std::vector<Digest> digests;
        for (std::size_t i = at; i < at + 10; ++i) digests.push_back(digest_of(order[i]));
        std::vector<Verdict> verdicts(10);
        const auto time = kStart + static_cast<std::int64_t>(at + number);
        producer.slices.observe(digests, std::vector(digests.size(), time), verdicts);
        for (std::size_t i = 0; i < 10; ++i)
          wins[order[at + i]] += verdicts[i] == Verdict::distinct;
      }
      EXPECT_EQ(producer.slices.ruled(), 0u) << producer.client->problem();
    });
  threads.clear();
  EXPECT_EQ(std::count(wins.begin(), wins.end(), 1u), static_cast<std::ptrdiff_t>(count));
}

// --- what is lost --------------------------------------------------------------------------------

// A clock that is wrong: the server refuses the event, and the others of the batch are judged.
TEST(FilterSites, ATimeThatAServerRefusesIsJudgedByTheRule) {
  FilterProducer producer(servers(), 1, minute(FaultRule::distinct(1)));
  const std::int64_t years_ahead = kStart + 4'000'000'000'000 / 2;
  std::vector<Verdict> verdicts(3);
  producer.slices.observe(std::vector{digest_of(1), digest_of(2), digest_of(1)},
                          std::vector{kStart, years_ahead, kStart + 1}, verdicts);
  EXPECT_EQ(verdicts, (std::vector{Verdict::distinct, Verdict::distinct, Verdict::duplicate}));
  EXPECT_EQ(producer.slices.ruled(), 1u);
  EXPECT_TRUE(producer.slices.trusted(0));
  EXPECT_NE(producer.client->problem().find("ahead of the server's clock"), std::string::npos);
}

// Sets a limit at the server of a site.
void configure(FilterProducer& producer, const char* name, const char* value) {
  Commands commands;
  commands.add({"CONFIG", "SET", name, value});
  std::vector<Reply> replies;
  const std::uint16_t slot = slot_of(tag_of(producer.client->address().name, 0, 1));
  EXPECT_EQ(producer.client->receive(producer.client->send(slot, std::move(commands)), replies),
            Outcome::answered)
      << producer.client->problem();
}

// The server refuses the whole command, or the module each new item. Asking works all the same.
TEST(FilterSites, WhatAServerHasNoMemoryForHasNoVerdict) {
  for (const char* limit : {"maxmemory", "sluice.key-memory-limit"}) {
    SCOPED_TRACE(limit);
    FilterProducer producer(servers(), 1, minute());
    FilterProducer careless(producer.client->address(), 1, minute(FaultRule::distinct(1)));
    const std::vector<Digest> seen = keys(0, 500), fresh = keys(kFresh, 500);
    EXPECT_EQ(observed(producer, seen, kStart), 0u);
    configure(producer, limit, "1");
    EXPECT_EQ(observed(producer, fresh, kStart + 1), 500u);
    EXPECT_EQ(observed(careless, fresh, kStart + 1), 0u);
    EXPECT_EQ(producer.slices.ruled(), 500u);
    EXPECT_EQ(producer.slices.traffic().unanswered, 0u);
    EXPECT_FALSE(producer.slices.trusted(0));
    EXPECT_EQ(asked(careless, seen, kStart + 1), 500u);
    EXPECT_EQ(asked(careless, fresh, kStart + 1), 0u);
    configure(producer, limit, "0");
    EXPECT_EQ(observed(careless, fresh, kStart + 2), 0u);
    EXPECT_EQ(observed(careless, fresh, kStart + 3), 500u);
    EXPECT_EQ(observed(producer, keys(2 * kFresh, 500), kStart + 1 + kForgottenMs), 0u);
    EXPECT_TRUE(producer.slices.trusted(0));
  }
}

TEST(FilterSites, AnItemThatIsClaimedHasNoVerdict) {
  const auto client = std::make_shared<Client>(servers(), patient());
  ModuleSite site(client, {.name = client->address().name, .options = {"WINDOW", "60s"}});
  EXPECT_TRUE(site.ask({}, {}).answered()) << site.problem();
  const std::vector<Digest> digests = {{1, 0}, {2, 0}};
  std::string item(16, '\0');
  item[0] = '\2';
  Commands commands;
  commands.add({"SLUICE.CLAIM", site.key(), item, "TTL", "600000", "TOKEN", "other"});
  std::vector<Reply> replies;
  EXPECT_EQ(client->receive(client->send(slot_of(site.key()), std::move(commands)), replies),
            Outcome::answered)
      << client->problem();
  for (const cluster::FilterVerb verb :
       {cluster::FilterVerb::observe, cluster::FilterVerb::may_contain}) {
    std::vector<cluster::Answer> answers(2);
    EXPECT_TRUE(site.ask({.verb = verb, .digests = digests}, answers).answered());
    EXPECT_EQ(answers[0], verb == cluster::FilterVerb::observe ? cluster::Answer::distinct
                                                               : cluster::Answer::duplicate);
    EXPECT_EQ(answers[1], cluster::Answer::none);
  }
}

// `how`: what test_sites.py does so that a server has lost everything and answers again.
void lose_contents(const std::string& how) {
  SCOPED_TRACE(how);
  const Address address = servers();
  FilterProducer careful(address, kSites, minute());
  FilterProducer careless(address, kSites, minute(FaultRule::distinct(1)));
  const std::vector<Digest> seen = keys(0, kSeen), fresh = keys(kFresh, kSeen);
  EXPECT_EQ(observed(careful, seen, kStart), 0u);
  EXPECT_EQ(asked(careless, seen, kStart), kSeen);
  const std::size_t lost = careful.count_beside_the_first(seen);
  EXPECT_GE(lost, kSeen / 5);
  outside(how + " " + text_of(careful.server(0)));
  wait_until_answered(careful);
  wait_until_answered(careless);
  // Nobody believes that these keys are new; whoever lets them through does so once.
  EXPECT_EQ(asked(careful, seen, kStart + 1), kSeen);
  EXPECT_EQ(observed(careless, seen, kStart + 1), kSeen - lost);
  EXPECT_EQ(observed(careless, seen, kStart + 2), kSeen);
  for (std::uint32_t site = 0; site < kSites; ++site) {
    EXPECT_EQ(careful.slices.trusted(site), careful.server(site) != careful.server(0)) << site;
    EXPECT_EQ(careless.slices.trusted(site), careful.server(site) != careful.server(0)) << site;
  }
  EXPECT_EQ(asked(careful, fresh, kStart + 2), careful.count_beside_the_first(fresh));
  // Trusted again after the window and its slack. What was asked last was the latest event of all.
  EXPECT_EQ(asked(careful, fresh, kStart + kForgottenMs - 1),
            careful.count_beside_the_first(fresh));
  EXPECT_EQ(observed(careful, fresh, kStart + 2 + kForgottenMs), 0u);
  for (std::uint32_t site = 0; site < kSites; ++site) EXPECT_TRUE(careful.slices.trusted(site));
  EXPECT_EQ(observed(careful, fresh, kStart + 3 + kForgottenMs), kSeen);
}

TEST(FilterSites, AServerThatWasFlushedIsDoubtedForAWindow) {
  lose_contents("flush");
}
TEST(PlainFilterSites, AServerThatRestartsEmptyIsDoubtedForAWindow) {
  lose_contents("restart");
}

// A primary is killed. Replicas have its writes, and may not take over before the verdicts are
// compared.
void kill_one(FaultRule rule, const char* name) {
  SCOPED_TRACE(name);
  const bool holds = rule.least_live == 0;
  FilterProducer producer(servers(), kSites, minute(rule));
  const std::vector<Digest> seen = keys(0, kSeen), fresh = keys(kFresh, kSeen);
  const std::vector<Digest> meanwhile = keys(kFresh * 2, kSeen);
  EXPECT_EQ(observed(producer, seen, kStart), 0u);
  const std::size_t seen_there = producer.count_beside_the_first(seen);
  const std::size_t fresh_there = producer.count_beside_the_first(fresh);
  const std::size_t meanwhile_there = producer.count_beside_the_first(meanwhile);
  EXPECT_GT(seen_there, kSeen / 4);
  // In mid-stream.
  outside("kill " + text_of(producer.server(0)));
  while (producer.slices.traffic().unanswered == 0)
    observed(producer, std::span(seen).first(100), kStart + 1);
  outside("killed?");
  EXPECT_EQ(asked(producer, fresh, kStart + 2), holds ? fresh_there : 0);
  EXPECT_EQ(asked(producer, seen, kStart + 2), holds ? kSeen : kSeen - seen_there);
  // The stream goes on.
  EXPECT_EQ(observed(producer, meanwhile, kStart + 3), holds ? meanwhile_there : 0);

  outside("failover");
  wait_until_answered(producer);
  EXPECT_EQ(asked(producer, seen, kStart + 4), kSeen) << "known before";
  // What was not remembered is let through once more, or not, as the rule says; and then known.
  EXPECT_EQ(observed(producer, meanwhile, kStart + 5), holds ? kSeen : kSeen - meanwhile_there);
  EXPECT_EQ(observed(producer, meanwhile, kStart + 6), kSeen);
  // The doubt ends.
  EXPECT_EQ(observed(producer, fresh, kStart + 6 + kForgottenMs), 0u);
  for (std::uint32_t site = 0; site < kSites; ++site) EXPECT_TRUE(producer.slices.trusted(site));
  EXPECT_EQ(asked(producer, fresh, kStart + 7 + kForgottenMs), kSeen);
  outside("revive");
}

TEST(ClusterFilterSites, AKilledPrimaryCountsAsDuplicate) {
  kill_one(FaultRule::duplicate(), "duplicate");
}
TEST(ClusterFilterSites, AKilledPrimaryCountsAsDistinct) {
  kill_one(FaultRule::distinct(1), "distinct");
}

// A filter moves whole, with the time it was made and without an expiry.
TEST(ClusterFilterSites, JudgeAsExactTruthWhileSlotsMove) {
  constexpr std::uint32_t kMoving = 6;
  FilterProducer producer(servers(), kMoving, {}, {"FILTER", "exact"});
  std::string slots;
  for (std::uint32_t site = 0; site < kMoving; ++site)
    slots += " " + std::to_string(slot_of(tag_of(producer.client->address().name, site, kMoving)));
  outside("move" + slots);
  std::vector<Digest> stream;
  std::vector<Verdict> verdicts;
  SplitMix64 random(3);
  // Each slot several times, in a thread of test_sites.py.
  for (std::uint64_t round = 1; round % 8 != 0 || outside("moved?") != "all"; ++round) {
    std::vector<Digest> batch;
    for (int i = 0; i < 64; ++i) batch.push_back(digest_of(random.next() % (20 * (round + 50))));
    const auto judged = judge(producer.slices, batch, {}, 16);
    stream.insert(stream.end(), batch.begin(), batch.end());
    verdicts.insert(verdicts.end(), judged.begin(), judged.end());
    ASSERT_EQ(producer.slices.ruled(), 0u) << producer.client->problem();
  }
  expect_truth_forever(stream, verdicts);
  for (std::uint32_t site = 0; site < kMoving; ++site) EXPECT_TRUE(producer.slices.trusted(site));
}

// --- servers that cannot be used -----------------------------------------------------------------

TEST(BareFilterSites, AServerWithoutTheModuleIsNamed) {
  FilterProducer producer(servers(), 2, minute());
  const std::string sentence =
      ": this server has no filters: load the module, sluice.so, in its configuration";
  EXPECT_TRUE(producer.slices.problem().ends_with(sentence)) << producer.slices.problem();
  EXPECT_EQ(observed(producer, keys(0, 10), kStart), 10u);
  EXPECT_EQ(producer.slices.ruled(), 10u);
  EXPECT_TRUE(producer.slices.problem().ends_with(sentence)) << producer.slices.problem();
}

TEST(FilterSites, OptionsThatTheServerRefusesAreQuoted) {
  const auto client = std::make_shared<Client>(servers(), patient());
  ModuleSite site(client, {.name = client->address().name, .options = {"WINDOW", "abc"}});
  std::vector<cluster::Answer> answers(2);
  EXPECT_EQ(site.ask({.digests = keys(0, 2)}, answers).outcome, Outcome::failed);
  EXPECT_NE(site.problem().find("WINDOW 'abc' is not a duration"), std::string::npos)
      << site.problem();
}

}  // namespace
}  // namespace sluice::redis
