// Windows over cell slices on real servers judge as they do within the process: both kinds, every
// slicing, with late events, racing producers, pages that change, and while slots move.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/redis/window_sites.hpp"
#include "tests/support/counts.hpp"

namespace sluice::redis {
namespace {

using namespace testing_support;
using cluster::name_of;
using sluice::testing_support::count_of;
using sluice::testing_support::observe;

// A few cells per key, so that false positives are compared, too; timers of 16 bits and a ms change
// their pages several times.
TEST(WindowSites, JudgeAsInProcess) {
  const TimedKeys stream = timed_keys(7, count_of(2000u, 20000u), 1500, 200, kMinuteMs * 5 / 4);
  for (const WindowCase& kind : kWindows)
    for (const Slicing slicing :
         {Slicing::horizontal, Slicing::vertical, Slicing::horizontal_vertical,
          Slicing::vertical_horizontal, Slicing::general}) {
      const SliceParams params = kind.slices(slicing, kind.aged() ? 600 : 2000);
      for (const bool claims : {false, true}) {
        const LocalWindow local(kind, params, minute({}, claims));
        const auto in_process = local.producer();
        const std::vector<Verdict> expected = observe(*in_process, stream, 400);
        const auto distinct = std::ranges::count(expected, Verdict::distinct);
        EXPECT_LT(distinct, std::ssize(expected) * 9 / 10);
        EXPECT_GT(distinct, std::ssize(expected) / 4);
        WindowProducer real(servers(), kind, params, minute({}, claims));
        EXPECT_EQ(observe(*real.slices, stream, 400), expected)
            << kind << " " << name_of(slicing) << claims;
        EXPECT_EQ(real.slices->traffic().unanswered, 0u) << real.client->problem();
        EXPECT_EQ(real.slices->late(), in_process->late());
        EXPECT_GT(real.slices->late(), 0u);
        for (std::uint32_t site = 0; site < SliceMap(params).sites(); ++site)
          EXPECT_TRUE(real.slices->trusted(site)) << site;
      }
    }
}

// Another producer, and one that comes later, see the same cells; each has its own clock.
TEST(WindowSites, AreSharedByProducers) {
  for (const WindowCase& kind : kWindows) {
    const SliceParams params = kind.slices(Slicing::vertical, 100'000);
    const Address address = servers();
    WindowProducer first(address, kind, params, minute()), second(address, kind, params, minute());
    EXPECT_EQ(delivered(*first.slices, keys(0, 300), kThen), 300u);
    EXPECT_EQ(delivered(*second.slices, keys(0, 600), kThen + kMinuteMs / 2), 300u) << kind;
    WindowProducer third(address, kind, params, minute());
    EXPECT_EQ(held(*third.slices, keys(0, 600), kThen + kMinuteMs - 1), 600u) << kind;
    const std::int64_t gone = kThen + kMinuteMs + third.slices->slack_ms();
    EXPECT_LE(held(*third.slices, keys(0, 300), gone), 2u) << kind;
    EXPECT_EQ(held(*first.slices, keys(300, 300), kThen + kMinuteMs * 3 / 2 - 1), 300u) << kind;
  }
}

// Servers are told how long pages are needed: as long as the window needs them, and the grace.
TEST(WindowSites, PagesExpire) {
  for (const WindowCase& kind : kWindows) {
    const SliceParams params = kind.slices(Slicing::vertical, 10'000);
    WindowProducer producer(servers(), kind, params, minute());
    delivered(*producer.slices, keys(0, 300), kThen);
    std::int64_t page, needed;
    if (const auto* timers = dynamic_cast<const cluster::TimerSlices*>(producer.slices.get())) {
      const cluster::TimerUnits& units = timers->units();
      page = units.page_of(3, units.unit_of(kThen));
      needed = units.unit_at(3, page + 1, 1) * units.unit_ms + 2 * kMinuteMs + units.unit_ms;
    } else {
      const std::int64_t each = kMinuteMs / kind.l;
      page = kThen / each;
      needed = (page + kind.k + kind.l + 1) * each;
    }
    const std::string key = producer.page_key(3, kind, page);
    const std::int64_t left = producer.ask(key, {"PTTL", key}).integer;
    EXPECT_LE(left, needed - kThen + kMinuteMs / 2) << kind;
    EXPECT_GT(left, needed - kThen + kMinuteMs / 2 - 50'000) << kind;
    // The stream goes on, at its own pace: the page is needed for less and less time.
    delivered(*producer.slices, keys(1000, 300), kThen + kMinuteMs / 2);
    EXPECT_LE(producer.ask(key, {"PTTL", key}).integer, needed - kThen) << kind;
    // It expires: as if an hour had passed.
    EXPECT_TRUE(producer.slices->trusted(3));
    EXPECT_EQ(producer.ask(key, {"PEXPIRE", key, "1"}).integer, 1);
    while (producer.ask(key, {"EXISTS", key}).integer != 0) std::this_thread::yield();
    EXPECT_EQ(held(*producer.slices, keys(1000, 300), kThen + kMinuteMs / 2), 300u) << kind;
    EXPECT_FALSE(producer.slices->trusted(3)) << kind;
    EXPECT_TRUE(producer.slices->trusted(2)) << kind;
    // And the page that took its place expires as well.
    EXPECT_GT(producer.ask(key, {"PTTL", key}).integer, 0) << kind;
  }
}

// --- races ---------------------------------------------------------------------------------------

// Every producer brings every key, two by two in the same order, so that they meet; a window later
// once more. 600 cells per key: a false positive would be a key that nobody wins, and there is none.
TEST(WindowSites, OneOfRacingProducersWins) {
  constexpr unsigned kProducers = 4, kRounds = 2;
  const std::size_t count = count_of(400u, 4000u);
  for (const WindowCase& kind : {kWindows[0], kWindows[1], kWindows[3]})
    for (const Slicing slicing : {Slicing::vertical, Slicing::horizontal_vertical}) {
      const SliceParams params = kind.slices(slicing, count * 600);
      const Address address = servers();
      std::vector<std::atomic<unsigned>> wins(count);
      for (unsigned round = 0; round < kRounds; ++round) {
        std::atomic<unsigned> ready = 0;
        std::vector<std::jthread> threads;
        for (unsigned number = 0; number < kProducers; ++number)
          threads.emplace_back([&, number] {
            WindowProducer producer(address, kind, params, minute({}, true));
            ++ready;
            while (ready < kProducers) std::this_thread::yield();
            SplitMix64 random(number / 2);
            std::vector<std::size_t> order(count);
            for (std::size_t i = 0; i < count; ++i) order[i] = i;
            for (std::size_t i = count; i > 1; --i)
              std::swap(order[i - 1], order[random.next() % i]);
            TimedKeys stream;
            for (const std::size_t key : order) stream.digests.push_back(digest_of(key));
            stream.times_ms.assign(count, kThen + round * 3 * kMinuteMs);
            const std::vector<Verdict> verdicts = observe(*producer.slices, stream, 10);
            for (std::size_t i = 0; i < count; ++i)
              wins[order[i]] += verdicts[i] == Verdict::distinct;
            EXPECT_EQ(producer.slices->traffic().unclaimed, 0u) << producer.client->problem();
            EXPECT_EQ(producer.slices->traffic().expired, 0u);
          });
      }
      for (std::size_t key = 0; key < count; ++key)
        ASSERT_EQ(wins[key], kRounds) << kind << name_of(slicing) << key;
    }
}

// A lease that is too short for a round trip: what may have been let through twice is counted.
TEST(WindowSites, AClaimThatHadEndedIsSaid) {
  const WindowCase& kind = kWindows[0];
  WindowProducer producer(servers(), kind, kind.slices(Slicing::vertical, 100'000),
                          minute({}, true), patient(), std::chrono::milliseconds(1));
  for (std::uint64_t first = 0; producer.slices->traffic().expired == 0; first += 500)
    ASSERT_EQ(delivered(*producer.slices, keys(first, 500), kThen), 500u);
}

// Producers whose clocks differ write the same few timers at the same time. Each timer shows the
// latest time that anybody wrote in it: no write is lost, whoever comes first.
TEST(WindowSites, TheLatestOfRacingWritesStays) {
  constexpr unsigned kProducers = 4, kTimers = 64;
  const std::size_t rounds = count_of(300u, 5000u);
  const WindowCase& kind = kWindows[0];
  const SliceParams params{Slicing::vertical, kTimers, 4, 2, 1, 1};
  const Address address = servers();
  std::vector<std::atomic<std::int64_t>> latest(kTimers);
  std::atomic<std::uint64_t> repaired = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned number = 0; number < kProducers; ++number)
      threads.emplace_back([&, number] {
        WindowProducer producer(address, kind, params, minute());
        SplitMix64 random(number);
        std::vector<cluster::Place> places(4);
        for (std::size_t i = 0; i < rounds; ++i) {
          const Digest key = digest_of(random.next() % 1000);
          const std::int64_t time = kThen + static_cast<std::int64_t>(i + number * 20);
          producer.slices->insert({&key, 1}, {&time, 1});
          producer.slices->map().places(key, places);
          for (const cluster::Place& place : places) {
            auto& known = latest[place.site * (kTimers / 2) + place.position];
            std::int64_t before = known;
            while (before < time && !known.compare_exchange_weak(before, time)) {
            }
          }
        }
        repaired += dynamic_cast<cluster::TimerSlices&>(*producer.slices).repaired();
      });
  }
  EXPECT_GT(repaired, 0u);
  WindowProducer reader(address, kind, params, minute());
  const auto& units = dynamic_cast<cluster::TimerSlices&>(*reader.slices).units();
  auto pages = cell_pages(reader.client, SliceMap(params), 32);
  for (std::uint32_t site = 0; site < 2; ++site) {
    const std::int64_t page = units.page_of(site, kThen);
    std::vector<std::uint64_t> positions(kTimers / 2);
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = i;
    std::vector<std::uint32_t> values(positions.size());
    ASSERT_TRUE(pages[site]->open(page)->ask({.positions = positions}, values).answered());
    for (std::size_t i = 0; i < positions.size(); ++i)
      EXPECT_EQ(units.unit_at(site, page, values[i]), latest[site * (kTimers / 2) + i]) << i;
  }
}

// --- slots that move -----------------------------------------------------------------------------

TEST(ClusterWindowSites, JudgeAsInProcessWhileSlotsMove) {
  for (const WindowCase& kind : {kWindows[0], kWindows[3]}) {
    const SliceParams params = [&] {
      SliceParams slices = kind.slices(Slicing::vertical, 300'000);
      slices.slices = 6;
      return slices;
    }();
    WindowProducer real(servers(), kind, params, minute({}, true));
    const LocalWindow local(kind, params, minute({}, true));
    const auto in_process = local.producer();
    std::string slots;
    for (std::uint32_t site = 0; site < 6; ++site)
      slots += " " + std::to_string(slot_of(tag_of(real.client->address().name, site, 6)));
    outside("move" + slots);
    std::uint64_t round = 0;
    // Each slot several times, in a thread of test_sites.py.
    do {
      const TimedKeys stream = timed_keys(round, 64, 20 * (round + 50), 50, kMinuteMs / 4, 4,
                                          kThen + static_cast<std::int64_t>(round) * 2000);
      ASSERT_EQ(observe(*real.slices, stream, 16), observe(*in_process, stream, 16)) << round;
      ASSERT_EQ(real.slices->traffic().unanswered, 0u) << real.client->problem();
      ++round;
    } while (round % 8 != 0 || outside("moved?") != "all");
    EXPECT_GT(round, 8u);
    for (std::uint32_t site = 0; site < 6; ++site) EXPECT_TRUE(real.slices->trusted(site));
  }
}

}  // namespace
}  // namespace sluice::redis
