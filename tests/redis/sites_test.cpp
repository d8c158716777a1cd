// Slices on real servers judge as they do within the process: whatever the slicing and the way of
// asking, with racing producers, and while slots move.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/redis/sites.hpp"
#include "tests/support/counts.hpp"

namespace sluice::redis {
namespace {

using namespace testing_support;
using cluster::name_of;
using sluice::testing_support::count_of;

const std::vector<SliceParams> kSlicings = {
    {Slicing::horizontal, 4000, 4, 10, 1, 1},
    {Slicing::vertical, 4000, 4, 10, 1, 1},
    {Slicing::horizontal_vertical, 4000, 4, 5, 4, 1},
    {Slicing::vertical_horizontal, 4000, 4, 5, 4, 1},
    {Slicing::general, 4000, 4, 10, 1, 2},
};

std::vector<Digest> repeats(std::uint64_t seed, std::size_t count, std::uint64_t different) {
  SplitMix64 random(seed);
  std::vector<Digest> stream;
  for (std::size_t i = 0; i < count; ++i) stream.push_back(digest_of(random.next() % different));
  return stream;
}

// The filter gets full, so that false positives are compared, too.
TEST(Sites, JudgeAsInProcess) {
  const auto stream = repeats(7, count_of(3000u, 30000u), count_of(1500u, 15000u));
  const auto few = std::span(stream).first(200);
  for (SliceParams params : kSlicings) {
    params.bits = stream.size() * 4 / 3;
    LocalProducer local({.slices = params});
    const std::vector<Verdict> expected = observe(local.slices, stream);
    const auto distinct = std::ranges::count(expected, Verdict::distinct);
    EXPECT_LT(distinct, std::ssize(stream) / 12 * 5);
    EXPECT_GT(distinct, std::ssize(stream) / 8);
    for (const bool pipelined : {false, true})
      for (const bool test_and_set : {false, true})
        for (const bool claims : {false, true}) {
          if (pipelined && test_and_set) continue;
          const Slices::Options options{params, {}, pipelined, test_and_set, claims};
          for (const std::size_t batch : {37u, 3000u}) {
            Producer real(servers(), options);
            EXPECT_EQ(observe(real.slices, stream, batch), expected)
                << name_of(params.slicing) << batch << pipelined << test_and_set << claims;
            EXPECT_EQ(real.slices.traffic().unanswered, 0u) << real.client->problem();
          }
          Producer real(servers(), options);
          EXPECT_EQ(observe(real.slices, few, 1),
                    std::vector(expected.begin(), expected.begin() + std::ssize(few)));
        }
  }
}

// Another producer, and one that comes later, see the same bits.
TEST(Sites, AreSharedByProducers) {
  const SliceParams params = {Slicing::vertical, 100000, 4, 10, 1, 1};
  const Address address = servers();
  Producer first(address, {.slices = params}), second(address, {.slices = params});
  observe(first.slices, keys(0, 500));
  EXPECT_EQ(duplicate_share(second.slices, keys(0, 500)), 1.0);
  Producer third(address, {.slices = params});
  EXPECT_EQ(duplicate_share(third.slices, keys(0, 500)), 1.0);
  EXPECT_LT(duplicate_share(third.slices, keys(1000, 500)), 0.02);
  for (std::uint32_t site = 0; site < 10; ++site) EXPECT_TRUE(third.slices.trusted(site));
}

// A request longer than one BITFIELD.
TEST(Sites, LongRequestsAreCut) {
  const auto client = std::make_shared<Client>(servers(), patient());
  CellSite site(client, {.name = client->address().name, .cells = 100000});
  std::vector<std::uint64_t> positions;
  for (std::uint64_t i = 0; i < 3 * CellSite::kMostCells + 5; ++i) positions.push_back(i * 7);
  std::vector<std::uint8_t> answers(positions.size(), 9);
  EXPECT_TRUE(site.ask(cluster::Verb::test_and_set, positions, answers).answered());
  EXPECT_EQ(std::ranges::count(answers, 0), std::ssize(answers));
  EXPECT_TRUE(site.ask(cluster::Verb::test, positions, answers).answered());
  EXPECT_EQ(std::ranges::count(answers, 1), std::ssize(answers));
  positions[5000] = 1;
  EXPECT_TRUE(site.ask(cluster::Verb::test, positions, answers).answered());
  EXPECT_EQ(answers[5000], 0);
  EXPECT_EQ(std::ranges::count(answers, 1), std::ssize(answers) - 1);
}

// --- races ---------------------------------------------------------------------------------------

constexpr unsigned kProducers = 4;

// Every producer brings every key, two by two in the same order, so that they meet. Returns how
// often each key was let through.
std::vector<unsigned> race(const Address& address, const Slices::Options& options,
                           std::size_t count) {
  std::vector<std::atomic<unsigned>> wins(count);
  std::atomic<unsigned> ready = 0;
  std::vector<std::jthread> threads;
  for (unsigned number = 0; number < kProducers; ++number)
    threads.emplace_back([&, number] {
      Producer producer(address, options);
      ++ready;
      while (ready < kProducers) std::this_thread::yield();
      SplitMix64 random(number / 2);
      std::vector<std::size_t> order(count);
      for (std::size_t i = 0; i < count; ++i) order[i] = i;
      for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
      std::vector<Digest> stream;
      for (const std::size_t key : order) stream.push_back(digest_of(key));
      const std::vector<Verdict> verdicts = observe(producer.slices, stream, 10);
      for (std::size_t i = 0; i < count; ++i) wins[order[i]] += verdicts[i] == Verdict::distinct;
      EXPECT_EQ(producer.slices.traffic().unclaimed, 0u) << producer.client->problem();
    });
  threads.clear();
  return {wins.begin(), wins.end()};
}

// 600 bits per key: a false positive would be a key that nobody wins, and there is none.
TEST(Sites, OneOfRacingProducersWins) {
  const std::size_t count = count_of(1000u, 10000u);
  const auto expect_once = [&](const SliceParams& params, bool test_and_set, bool claims) {
    const auto wins =
        race(servers(), {.slices = params, .test_and_set = test_and_set, .claims = claims}, count);
    EXPECT_EQ(std::ranges::count(wins, 1u), static_cast<std::ptrdiff_t>(count))
        << name_of(params.slicing) << test_and_set;
  };
  expect_once({Slicing::horizontal, count * 600, 4, 8, 1, 1}, true, false);
  for (const bool test_and_set : {false, true}) {
    expect_once({Slicing::vertical, count * 600, 4, 8, 1, 1}, test_and_set, true);
    expect_once({Slicing::horizontal_vertical, count * 600, 4, 8, 4, 1}, test_and_set, true);
  }
}

// Whoever holds a claim and does not come back holds it until its lease ends; nobody else can
// release it.
TEST(Sites, ClaimsBelongToTheirProducerAndEnd) {
  const Address address = servers();
  const auto client = std::make_shared<Client>(address, patient());
  const auto site_with = [&](std::chrono::milliseconds lease) {
    return CellSite(client, {.name = address.name, .cells = 1000, .lease = lease});
  };
  CellSite gone = site_with(std::chrono::milliseconds(300)),
           other = site_with(std::chrono::hours(1));
  const std::uint64_t name = 42;
  std::uint8_t held = 9;
  const auto claim = [&](CellSite& site) {
    EXPECT_TRUE(site.ask(cluster::Verb::claim, {&name, 1}, {&held, 1}).answered());
    return held;
  };
  EXPECT_EQ(claim(gone), 0);
  EXPECT_EQ(claim(other), 1);
  EXPECT_TRUE(other.ask(cluster::Verb::release, {&name, 1}, {}).answered());
  EXPECT_EQ(claim(other), 1);
  // Its own release, and its own end.
  EXPECT_TRUE(gone.ask(cluster::Verb::release, {&name, 1}, {}).answered());
  EXPECT_EQ(claim(gone), 0);
  while (claim(other) == 1) std::this_thread::yield();
  // The first is late with its release: the claim is another's by now.
  EXPECT_TRUE(gone.ask(cluster::Verb::release, {&name, 1}, {}).answered());
  EXPECT_EQ(claim(gone), 1);
}

// --- slots that move -----------------------------------------------------------------------------

TEST(ClusterSites, JudgeAsInProcessWhileSlotsMove) {
  constexpr std::uint32_t kSites = 6;
  for (const bool test_and_set : {false, true}) {
    const Slices::Options options{.slices = {Slicing::vertical, 300000, 4, kSites, 1, 1},
                                  .test_and_set = test_and_set,
                                  .claims = true};
    Producer real(servers(), options);
    LocalProducer local(options);
    std::string slots;
    for (std::uint32_t site = 0; site < kSites; ++site)
      slots += " " + std::to_string(slot_of(tag_of(real.client->address().name, site, kSites)));
    outside("move" + slots);
    std::uint64_t round = 0;
    // Each slot several times, in a thread of test_sites.py.
    do {
      const auto stream = repeats(round, 64, 20 * (round + 50));
      ASSERT_EQ(observe(real.slices, stream, 16), observe(local.slices, stream, 16)) << round;
      ASSERT_EQ(real.slices.traffic().unanswered, 0u) << real.client->problem();
      ++round;
    } while (round % 8 != 0 || outside("moved?") != "all");
    EXPECT_GT(round, 8u);
    for (std::uint32_t site = 0; site < kSites; ++site) EXPECT_TRUE(real.slices.trusted(site));
  }
}

}  // namespace
}  // namespace sluice::redis
