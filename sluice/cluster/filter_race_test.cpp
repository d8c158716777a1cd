// Producers on several threads that share filter slices: one of those that race for a key wins.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/cluster/filter_slices.hpp"
#include "sluice/cluster/local_filter.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/digests.hpp"

namespace sluice::cluster {
namespace {

using testing_support::digest_of;
using Filters = std::vector<std::shared_ptr<LocalFilter>>;

constexpr unsigned kThreads = 4;
constexpr std::size_t kKeys = 20'000;
constexpr std::int64_t kStart = 1'700'000'000'000;

// Two threads by two the same order, so that they meet at the same keys.
std::vector<std::size_t> order_of(unsigned thread) {
  SplitMix64 random(thread / 2);
  std::vector<std::size_t> order(kKeys);
  for (std::size_t i = 0; i < kKeys; ++i) order[i] = i;
  for (std::size_t i = kKeys; i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
  return order;
}

// Every thread brings every key, in batches of a hundred. Returns how often each was let through.
std::vector<unsigned> race(const FilterSlices::Options& options, const Filters& filters) {
  std::vector<std::atomic<unsigned>> wins(kKeys);
  std::atomic<unsigned> ready = 0;
  std::vector<std::jthread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      FilterSlices slices(options, connect(filters));
      const std::vector<std::size_t> order = order_of(thread);
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      constexpr std::size_t kBatch = 100;
      for (std::size_t at = 0; at < kKeys; at += kBatch) {
        std::vector<Digest> digests;
        std::vector<std::int64_t> times;
        for (std::size_t i = at; i < at + kBatch; ++i) {
          digests.push_back(digest_of(order[i]));
          times.push_back(kStart + static_cast<std::int64_t>(i) - thread);
        }
        std::vector<Verdict> verdicts(kBatch);
        slices.observe(digests, times, verdicts);
        for (std::size_t i = 0; i < kBatch; ++i)
          wins[order[at + i]] += verdicts[i] == Verdict::distinct;
      }
      EXPECT_EQ(slices.ruled(), 0u);
    });
  threads.clear();
  return {wins.begin(), wins.end()};
}

TEST(FilterRaces, OneOfRacingProducersWins) {
  const WindowSpec hour = {WindowSpec::Kind::time, 3'600'000'000'000};
  Filters windows, sets;
  for (int i = 0; i < 3; ++i) {
    windows.push_back(std::make_shared<LocalFilter>(
        AnyFilter(Window::make({.spec = hour, .filter = "exact-window"}))));
    sets.push_back(std::make_shared<LocalFilter>(make_filter("exact", {})));
  }
  for (const auto& wins : {race({.window = hour}, windows), race({}, sets)})
    EXPECT_EQ(std::ranges::count(wins, 1u), static_cast<std::ptrdiff_t>(kKeys));
}

// Sites fail and come back, while others ask: nobody waits for ever, and every key is judged.
TEST(FilterRaces, SitesMayFailAtAnyMoment) {
  Filters filters;
  for (int i = 0; i < 3; ++i)
    filters.push_back(std::make_shared<LocalFilter>(make_filter("exact", {})));
  std::atomic<bool> done = false;
  std::jthread breaker([&] {
    for (SplitMix64 random(1); !done;) {
      LocalFilter& filter = *filters[random.next() % 3];
      filter.fail();
      std::this_thread::yield();
      random.next() % 2 == 0 ? filter.come_back() : filter.come_back_empty();
    }
  });
  std::vector<std::jthread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      FilterSlices slices({.rule = model::FaultRule::distinct(1)}, connect(filters));
      std::vector<Verdict> verdicts(1);
      for (const std::size_t key : order_of(thread)) {
        verdicts[0] = Verdict::pending;
        slices.observe(std::vector{digest_of(key)}, {}, verdicts);
        EXPECT_NE(verdicts[0], Verdict::pending);
      }
    });
  threads.clear();
  done = true;
}

}  // namespace
}  // namespace sluice::cluster
