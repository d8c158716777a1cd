// Generations with few keys in a large table: numbers come round before the sweep does.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/timing/timer.hpp"
#include "sluice/filters/timing/timing.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/window_reference.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::copy_of;
using testing_support::count_of;
using testing_support::WindowReference;

// Tables for 20,000 keys with an error of 1e-12: a false positive is as good as impossible.
constexpr const char* kTables[] = {"timing,generations=24,padding=0",
                                   "timing,generations=5,padding=3",
                                   "timing,generations=24,padding=37",
                                   "timing,generations=40,padding=200,timer=9",
                                   "timer,generations=24",
                                   "timer,generations=250",
                                   "timer,generations=253,layout=horizontal"};

AnyFilter make(const char* settings, std::uint64_t keys = 20'000) {
  return make_filter(settings, {.keys = keys, .fpr = 1e-12});
}

// Keys of one generation, from a few, so that old ones come again: mostly few, sometimes many.
std::vector<Digest> generation_of(SplitMix64& random) {
  const std::uint64_t kind = random.next() % 40;
  const std::uint64_t count = kind == 0 ? 800 : kind < 8 ? 0 : 1 + random.next() % 4;
  std::vector<Digest> keys;
  for (std::uint64_t i = 0; i < count; ++i) {
    SplitMix64 key(random.next() % (kind == 0 ? 2000 : 60));
    keys.push_back({key.next(), key.next()});
  }
  return keys;
}

TEST(StampedSweep, IsExactWhereGenerationsHaveFewKeys) {
  for (const char* settings : kTables) {
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
      SCOPED_TRACE(settings);
      AnyFilter filter = make(settings);
      const unsigned generations = filter.generations();
      WindowReference truth(generations);
      SplitMix64 random(5);
      // More than there are numbers.
      const int rounds =
          count_of(std::min(300, 4 * static_cast<int>(generations) + 150), 600, 6000);
      for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
        for (const Digest& key : generation_of(random)) {
          const auto age = random.next() % 10 == 0
                               ? static_cast<unsigned>(random.next() % (generations + 1))
                               : 0u;
          const bool held = truth.holds(key);
          Verdict asked{};
          filter.may_contain(std::span(&key, 1), std::span(&asked, 1));
          ASSERT_EQ(asked == Verdict::duplicate, held) << round;
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
        }
        if (random.next() % 30 == 0) filter = copy_of(filter);
        const int steps = random.next() % 100 == 0 ? static_cast<int>(generations) : 1;
        for (int step = 0; step < steps; ++step) {
          filter.rotate();
          truth.rotate();
        }
      }
    }
  }
}

TEST(StampedSweep, DoesNotDependOnHowCallsAreCut) {
  for (const char* settings : kTables) {
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
      SCOPED_TRACE(settings);
      const auto run = [&](std::size_t most) {
        AnyFilter filter = make(settings);
        SplitMix64 random(6);
        for (int round = 0; round < count_of(60, 150, 150); ++round) {
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

// As many keys as planned in every generation: no dead cell stays, and strips are swept in time.
TEST(StampedSweep, KeepsUpWithThePlannedRate) {
  const std::uint64_t planned = count_of(5000, 20'000, 20'000);
  for (const char* settings : kTables) {
    SCOPED_TRACE(settings);
    AnyFilter filter = make(settings, planned);
    SplitMix64 random(9);
    const unsigned generations = filter.generations();
    // At least once round all numbers.
    const unsigned rounds = count_of(std::min(3 * 256u, 6 * generations + 30), 3 * 256u, 3 * 256u);
    std::vector<Digest> gone;
    for (unsigned round = 0; round < rounds; ++round) {
      for (std::uint64_t i = 0; i < planned / generations; ++i) {
        const Digest key{random.next(), random.next()};
        filter.insert(std::span(&key, 1));
        if (i == 0 && round < 20) gone.push_back(key);
      }
      filter.rotate();
      if (round <= 20 + generations) continue;
      std::vector<Verdict> verdicts(gone.size());
      filter.may_contain(gone, verdicts);
      ASSERT_EQ(std::ranges::count(verdicts, Verdict::duplicate), 0) << round;
    }
  }
}

}  // namespace
}  // namespace sluice
