// Generations with few keys in a large table: numbers come round before the sweep does.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/filters/cohort/cohort.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/window_reference.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::copy_of;
using testing_support::count_of;
using testing_support::WindowReference;

// Slots of 48 bits: a false positive is as good as impossible.
constexpr const char* kTables[] = {
    "bytes=1MiB,keys=100k,slot=48,generations=24", "bytes=1MiB,keys=100k,slot=48,generations=29",
    "bytes=1MiB,keys=100k,slot=48,generations=12", "bytes=1MiB,keys=100k,slot=48,generations=61"};

AnyFilter make(const char* settings) {
  return AnyFilter(Cohort::make(Cohort::Params::from({.fpr = 1e-6}, Settings::parse(settings))));
}

// Keys of one generation, from a few, so that old ones come again: mostly few, sometimes many.
std::vector<Digest> generation_of(SplitMix64& random) {
  const std::uint64_t kind = random.next() % 40;
  const std::uint64_t count = kind == 0 ? 3000 : kind < 8 ? 0 : 1 + random.next() % 4;
  std::vector<Digest> keys;
  for (std::uint64_t i = 0; i < count; ++i) {
    SplitMix64 key(random.next() % (kind == 0 ? 20'000 : 60));
    keys.push_back({key.next(), key.next()});
  }
  return keys;
}

TEST(CohortSweep, IsExactWhereGenerationsHaveFewKeys) {
  for (const char* settings : kTables) {
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
      SCOPED_TRACE(settings);
      AnyFilter filter = make(settings);
      const unsigned generations = filter.generations();
      WindowReference truth(generations);
      SplitMix64 random(5);
      const int rounds = count_of(200, 600, 6000);
      for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
        const std::vector<Digest> keys = generation_of(random);
        for (const Digest& key : keys) {
          // Not of many: generations without a number share one stash.
          const bool late = keys.size() < 10 && random.next() % 10 == 0;
          const auto age = late ? static_cast<unsigned>(random.next() % (generations + 1)) : 0u;
          const bool held = truth.holds(key);
          Verdict asked{};
          filter.may_contain(std::span(&key, 1), std::span(&asked, 1));
          ASSERT_EQ(asked == Verdict::duplicate, held) << round;
          filter.may_contain(std::span(&key, 1), std::span(&asked, 1), 3);
          ASSERT_EQ(asked == Verdict::duplicate, held && *truth.age_of(key) + 3 <= generations);
          const auto verdict = filter.admit_aged(key, age, anchor);
          ASSERT_TRUE(verdict);
          ASSERT_EQ(*verdict == Verdict::duplicate, held) << round;
          if (!held || anchor == Anchor::refreshed) truth.write(key, age);
          if (random.next() % 50 == 0) {
            std::uint64_t budget = 1;
            Verdict again{};
            ASSERT_EQ(filter.admit(std::span(&key, 1), std::span(&again, 1), budget, anchor), 1u);
            ASSERT_EQ(again, Verdict::duplicate);
            if (anchor == Anchor::refreshed) truth.write(key);
          }
          const auto found = filter.as<Cohort>()->age_of(key);
          ASSERT_TRUE(found);
          ASSERT_EQ(*found, *truth.age_of(key));
        }
        // It goes on as what was saved does, which is refused if it is not sound.
        if (random.next() % 30 == 0) filter = copy_of(filter);
        ASSERT_EQ(filter.live_keys(), truth.size());
        const int steps = random.next() % 100 == 0 ? static_cast<int>(generations) : 1;
        for (int step = 0; step < steps; ++step) {
          filter.rotate();
          truth.rotate();
        }
      }
    }
  }
}

TEST(CohortSweep, DoesNotDependOnHowCallsAreCut) {
  for (const char* settings : kTables) {
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
      SCOPED_TRACE(settings);
      const auto run = [&](std::size_t most) {
        AnyFilter filter = make(settings);
        SplitMix64 random(6);
        for (int round = 0; round < count_of(100, 300, 300); ++round) {
          const std::vector<Digest> keys = generation_of(random);
          std::vector<Verdict> verdicts(keys.size());
          for (std::size_t at = 0; at < keys.size();) {
            const std::size_t count = std::min(most, keys.size() - at);
            std::uint64_t budget = keys.size();
            at += filter.admit(std::span(keys).subspan(at, count),
                               std::span(verdicts).subspan(at, count), budget, anchor);
          }
          filter.rotate();
        }
        return bytes_of(filter);
      };
      const auto whole = run(3000);
      for (const std::size_t most : {1, 2, 700}) EXPECT_TRUE(run(most) == whole) << most;
    }
  }
}

// What was never written to since the numbers came round is read as of then, and forgotten from it.
TEST(CohortSweep, ForgetsFromWhatWasNotSwept) {
  AnyFilter filter = make(kTables[0]);
  SplitMix64 random(7);
  std::vector<Digest> keys;
  const auto write = [&](int count) {
    for (int i = 0; i < count; ++i) {
      keys.push_back({random.next(), random.next()});
      filter.insert(std::span(&keys.back(), 1));
    }
    filter.rotate();
  };
  write(5000);
  for (int i = 0; i < 20; ++i) write(1);
  EXPECT_EQ(filter.live_keys(), 5020u);
  for (const Digest& key : keys) EXPECT_TRUE(filter.forget(key));
  EXPECT_EQ(filter.live_keys(), 0u);
  for (const Digest& key : keys) EXPECT_FALSE(filter.as<Cohort>()->may_contain(key));
  EXPECT_NO_THROW(copy_of(filter));
}

// A table that is nearly full moves keys between buckets that were swept and others.
TEST(CohortSweep, MakesRoomWhereItIsBehind) {
  AnyFilter filter = make("bytes=256KiB,keys=39k,slot=48,generations=24");
  SplitMix64 random(8);
  std::vector<Digest> keys;
  const auto write = [&](int count) {
    for (int i = 0; i < count; ++i) {
      keys.push_back({random.next(), random.next()});
      Verdict verdict{};
      std::uint64_t budget = 1;
      ASSERT_EQ(filter.admit(std::span(&keys.back(), 1), std::span(&verdict, 1), budget,
                             Anchor::delivered),
                1u);
    }
    filter.rotate();
  };
  for (int i = 0; i < 30; ++i) write(3);  // numbers come round, and the sweep does not
  keys.clear();
  write(33'000);
  for (int i = 0; i < 12; ++i) write(1);
  const std::uint64_t moves = filter.as<Cohort>()->moves();
  write(5000);
  EXPECT_GT(filter.as<Cohort>()->moves(), moves + 100);
  for (const Digest& key : keys) ASSERT_TRUE(filter.as<Cohort>()->may_contain(key));
  EXPECT_NO_THROW(copy_of(filter));
  // All leave when it is time, and none comes back with its number.
  for (int i = 0; i < 25; ++i) filter.rotate();
  EXPECT_EQ(filter.live_keys(), 0u);
  const std::vector<Digest> gone = keys;
  for (int i = 0; i < 70; ++i) write(1);
  for (const Digest& key : gone) ASSERT_FALSE(filter.as<Cohort>()->may_contain(key));
}

}  // namespace
}  // namespace sluice
