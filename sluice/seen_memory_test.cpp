// Seen within limits: the budget of a resource, `memory`, or both. What the plan fits in is enough.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/seen.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr Seen::Time kStart{1'700'000'000s};

std::string key_of(std::uint64_t number) {
  return "k" + std::to_string(number);
}

// How many of the keys are refused, `step` apart.
std::uint64_t refused(Seen& seen, std::uint64_t keys, std::chrono::nanoseconds step = {}) {
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < keys; ++i) try {
      seen.first(key_of(i), kStart + static_cast<std::int64_t>(i) * step);
    } catch (const NoMemory&) {
      ++refused;
    }
  return refused;
}

// The list that it starts as and the table that follows do not fit in there at once.
TEST(SeenMemory, ABudgetOfThePlanIsEnoughForACountWindow) {
  for (const std::uint64_t keys : {10u, 55u, 300u, 1000u, 5000u, 22'377u}) {
    const std::uint64_t planned = Seen({.window = keys}).plan()->choice().bytes;
    for (const double times : {1.0, 1.01, 1.2, 1.5, 2.0}) {
      SystemMemory memory(
          {.budget = static_cast<std::uint64_t>(times * static_cast<double>(planned))});
      Seen seen({.window = keys, .resource = &memory});
      EXPECT_EQ(refused(seen, 3 * keys), 0u) << keys << " keys, " << memory.budget() << " bytes";
      EXPECT_FALSE(seen.first(key_of(3 * keys - 1)));
      EXPECT_EQ(seen.bytes(), memory.taken());
    }
  }
}

TEST(SeenMemory, ABudgetOfThePlanIsEnoughForATimeWindowAtItsRate) {
  for (const std::uint64_t keys : {30u, 500u, 5000u}) {
    const std::uint64_t planned = Seen({.window = 10s, .keys = keys}).plan()->choice().bytes;
    for (const double times : {1.0, 1.13, 1.6}) {
      SystemMemory memory(
          {.budget = static_cast<std::uint64_t>(times * static_cast<double>(planned))});
      Seen seen({.window = 10s, .keys = keys, .resource = &memory});
      EXPECT_EQ(refused(seen, 4 * keys, std::chrono::nanoseconds(10s) / keys), 0u)
          << keys << " keys, " << memory.budget() << " bytes";
    }
  }
}

// Several in one budget, each with its plan: whichever needs its table first.
TEST(SeenMemory, OneBudgetHasRoomForAllThePlansItHolds) {
  constexpr std::uint64_t kWindows = 5, kKeys = 700;
  const std::uint64_t planned = Seen({.window = kKeys}).plan()->choice().bytes;
  SystemMemory memory({.budget = kWindows * planned});
  std::vector<Seen> all;
  for (std::uint64_t i = 0; i < kWindows; ++i)
    all.push_back(Seen({.window = kKeys, .resource = &memory}));
  for (std::uint64_t key = 0; key < 2 * kKeys; ++key)
    for (std::uint64_t i = 0; i < kWindows; ++i)
      if (key % (i + 1) == 0) {
        ASSERT_TRUE(all[i].first(key_of(key))) << key;
      }
}

// Another one takes the memory that the table needs. Keys are refused, none that was judged is
// forgotten, and all goes on when the memory is there again.
TEST(SeenMemory, WhatOthersTookMayComeBack) {
  constexpr std::uint64_t kKeys = 1000;
  const std::uint64_t planned = Seen({.window = kKeys}).plan()->choice().bytes;
  for (const std::uint64_t left : {0u, 100u, 1000u, 3000u, 7000u}) {
    SystemMemory memory({.budget = planned});
    Seen seen({.window = kKeys, .resource = &memory});
    std::uint64_t judged = 0;
    for (; judged < 20; ++judged) ASSERT_TRUE(seen.first(key_of(judged)));
    const std::uint64_t others = memory.left() - std::min(left, memory.left());
    memory.charge(others);
    try {
      for (; judged < kKeys; ++judged) ASSERT_TRUE(seen.first(key_of(judged)));
      FAIL() << "there is no memory for the table";
    } catch (const NoMemory& error) {
      EXPECT_STREQ(error.what(),
                   "there is no memory for one key more: free some of the resource, or give it a "
                   "larger budget");
    }
    EXPECT_EQ(seen.bytes() + others, memory.taken());
    EXPECT_LT(judged, kKeys);
    for (std::uint64_t key = 0; key < judged; ++key) ASSERT_TRUE(seen.contains(key_of(key)));
    memory.discharge(others);
    for (; judged < kKeys; ++judged) ASSERT_TRUE(seen.first(key_of(judged)));
    for (std::uint64_t key = 0; key < kKeys; ++key) ASSERT_TRUE(seen.contains(key_of(key)));
  }
}

// `memory` is what bytes() may be at most, whatever the resource counts for a block.
TEST(SeenMemory, ASetStaysWithinItsMemoryInAnyResource) {
  for (std::uint64_t memory = 1107; memory < 6'000'000; memory = memory * 3 / 2 + 17) {
    HostMemory bare(CountedHost::calls(), memory), rounding(malloc_calls(), memory);
    TestMemory larger;
    for (MemoryResource* resource :
         {static_cast<MemoryResource*>(&bare), static_cast<MemoryResource*>(&rounding),
          static_cast<MemoryResource*>(&larger)}) {
      Seen seen({.keys = memory / 7, .memory = memory, .resource = resource});
      EXPECT_LE(seen.bytes(), memory);
      EXPECT_LE(seen.bytes(), seen.plan()->choice().bytes);
      EXPECT_EQ(seen.bytes(), resource->taken());
      EXPECT_LE(seen.plan()->choice().bytes, memory);
      const auto state = seen.save();
      HostMemory again(CountedHost::calls(), memory);
      if (resource == &bare) {
        EXPECT_EQ(Seen::load(state, &again).bytes(), seen.bytes());
      }
    }
  }
}

struct Limited {
  Seen::Options options;
  std::uint64_t keys;             // per window
  std::chrono::nanoseconds step;  // between two of them
};

// Windows by count and by time, of sizes spread evenly over their logarithms.
std::vector<Limited> windows(unsigned count) {
  std::vector<Limited> all;
  for (unsigned i = 0; i < count; ++i) {
    const auto keys =
        static_cast<std::uint64_t>(10 * std::pow(3000, i / static_cast<double>(count)));
    all.push_back({{.window = keys}, keys, {}});
    const double rate = static_cast<double>(keys) / 10;
    const std::chrono::nanoseconds step(static_cast<std::int64_t>(1e9 / rate));
    if (i % 2 == 0)
      all.push_back({{.window = 10s, .rate = rate, .fpr = 3e-4}, keys, step});
    else
      all.push_back({{.window = 10s, .keys = keys}, keys, step});
  }
  return all;
}

// Whichever limit is set, of the bytes that the plan takes or more: no key is refused at the planned
// rate, and neither bytes() nor the resource ever exceeds it.
TEST(SeenMemory, WhatThePlanTakesIsEnoughInEveryResource) {
  enum class Kind { system, host, rounding };
  std::size_t made = 0;
  for (const Limited& each : windows(testing_support::count_of(3u, 8u, 60u)))
    for (const Kind kind : {Kind::system, Kind::host, Kind::rounding})
      for (const int limits : {1, 2, 3})
        for (const double times : {1.0, 1.1, 1.4, 2.5}) {
          HostMemory free_host(kind == Kind::rounding ? malloc_calls() : CountedHost::calls());
          Seen::Options options = each.options;
          options.resource = kind == Kind::system ? nullptr : &free_host;
          const std::uint64_t planned = Seen(options).plan()->choice().bytes;
          const auto limit = static_cast<std::uint64_t>(times * static_cast<double>(planned));
          const std::uint64_t budget = (limits & 1) != 0 ? limit : MemoryResource::kNoBudget;
          if ((limits & 2) != 0) options.memory = limit;
          // As was planned without a limit.
          if (!options.fpr) options.fpr = 1e-6;
          SystemMemory system({.budget = budget});
          HostMemory host(kind == Kind::rounding ? malloc_calls() : CountedHost::calls(), budget);
          options.resource = kind == Kind::system ? static_cast<MemoryResource*>(&system) : &host;
          SCOPED_TRACE(std::to_string(each.keys) + " keys, " + std::to_string(each.step.count()) +
                       " apart, resource " + std::to_string(static_cast<int>(kind)) + " limits " +
                       std::to_string(limits) + ", " + std::to_string(limit) + " bytes");
          CountedHost::peak = CountedHost::held;
          Seen seen(options);
          std::uint64_t most = 0;
          for (std::uint64_t i = 0; i < 3 * each.keys; ++i) {
            ASSERT_NO_THROW(
                seen.first(key_of(i), kStart + static_cast<std::int64_t>(i) * each.step))
                << "key " << i;
            most = std::max(most, seen.bytes());
          }
          ASSERT_LE(most, limit);
          if (kind == Kind::host) {
            ASSERT_LE(CountedHost::peak, limit);
          }
          ASSERT_LE(seen.bytes(), seen.plan()->choice().bytes);
          ASSERT_EQ(seen.bytes(), options.resource->taken());
          ++made;
        }
  EXPECT_GT(made, 200u);
}

// A size that is known from the start is refused at once, with a sentence that says what helps.
TEST(SeenMemory, TooLargeATableIsRefusedBeforeItsFirstBlock) {
  CountedHost::peak = CountedHost::held;
  HostMemory memory(CountedHost::calls(), 16 << 20);
  try {
    Seen seen({.keys = std::uint64_t{1} << 25, .resource = &memory});
    FAIL();
  } catch (const NoMemory& error) {
    EXPECT_TRUE(std::string(error.what())
                    .ends_with("; a larger budget of the resource, fewer `keys` or a larger `fpr` "
                               "would help"))
        << error.what();
  }
  EXPECT_LT(CountedHost::peak, 10'000u);
}

TEST(SeenMemory, BlocksMustNotBeTooSmall) {
  for (const std::size_t largest : {std::size_t{4096}, MemoryResource::kLeastLargest - 1}) {
    TestMemory memory(largest);
    EXPECT_THROW(Seen({.resource = &memory}), BadParameters);
    EXPECT_THROW(Seen({.window = 100, .resource = &memory}), BadParameters);
    EXPECT_THROW(Seen::load(Seen({.window = 100}).save(), &memory), BadParameters);
    EXPECT_THROW(Seen::load(Seen({.keys = 100}).save(), &memory), BadParameters);
  }
  TestMemory memory(MemoryResource::kLeastLargest);
  Seen seen({.keys = 4'000'000, .resource = &memory});
  EXPECT_TRUE(seen.first("a"));
}

}  // namespace
}  // namespace sluice
