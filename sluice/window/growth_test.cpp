#include "sluice/window/growth.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

// A stage that is too large works, so a smaller one that cannot be had ends nothing.
TEST(Growth, RotatesOnWhenThereIsNoMemoryForASmallerStage) {
  bool no_memory = false;
  int refused = 0;
  Growth growth(
      [&](std::uint64_t keys, double fpr, MemoryResource&) {
        refused += no_memory;
        if (no_memory) throw NoMemory("there is none");
        return make_filter("cohort", {.keys = keys, .fpr = fpr, .generations = 4});
      },
      {.keys = 64, .fpr = 0.01});
  growth.start();
  SplitMix64 random(1);
  std::vector<Digest> digests(5000);
  for (Digest& digest : digests) digest = {random.next(), random.next()};
  std::vector<Verdict> verdicts(digests.size());
  std::uint64_t unlimited = ~std::uint64_t{0};
  growth.admit(digests, verdicts, unlimited, Anchor::delivered);
  const std::uint64_t written = growth.live_keys();
  no_memory = true;
  for (int generation = 0; generation < 4; ++generation) EXPECT_NO_THROW(growth.rotate());
  EXPECT_EQ(growth.live_keys(), written);
  EXPECT_NO_THROW(growth.rotate());
  EXPECT_EQ(growth.live_keys(), 0u);
  EXPECT_GT(refused, 0);
}

// Keys before the one that finds no memory are judged, and the batch can go on when there is some.
TEST(Growth, TellsHowManyWereJudgedWhenMemoryEnds) {
  bool no_memory = true;
  Growth growth(
      [&](std::uint64_t keys, double fpr, MemoryResource&) {
        if (no_memory && keys > 64) throw NoMemory("there is none");
        return make_filter("cohort", {.keys = keys, .fpr = fpr, .generations = 4});
      },
      {.keys = 64, .fpr = 0.01});
  growth.start();
  SplitMix64 random(2);
  std::vector<Digest> digests(500);
  for (Digest& digest : digests) digest = {random.next(), random.next()};
  std::vector<Verdict> verdicts(digests.size());
  std::uint64_t budget = 1000;
  const std::size_t judged = growth.admit(digests, verdicts, budget, Anchor::delivered);
  EXPECT_GE(judged, 64u);
  EXPECT_LT(judged, 200u);
  EXPECT_EQ(growth.live_keys(), 1000 - budget);
  EXPECT_EQ(growth.admit_aged(digests[judged], 1, Anchor::delivered), std::nullopt);
  std::vector<Verdict> asked(digests.size());
  growth.may_contain(digests, asked);
  EXPECT_EQ(count_duplicates(std::span(asked).first(judged)), judged);
  EXPECT_LT(count_duplicates(std::span(asked).subspan(judged)), 30u);
  no_memory = false;
  EXPECT_EQ(growth.admit(std::span(digests).subspan(judged), std::span(verdicts).subspan(judged),
                         budget, Anchor::delivered),
            digests.size() - judged);
}

// A record that comes after its generation, when the newest stage has no room: that stage is asked
// too, and a key that it knows makes no other stage, unless it has to be written again.
TEST(Growth, AFullStageIsAskedForARecordOutOfOrder) {
  const std::vector<Digest> digests = testing_support::random_digests(3, 2000);
  for (const char* filter : {"cohort", "exact-window", "timing", "timer", "apbf", "apbbf"})
    for (const Growth::By by : {Growth::By::density, Growth::By::cardinality})
      for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
        SCOPED_TRACE(fmt::format("{}, growth {}, anchor {}", filter, static_cast<int>(by),
                                 static_cast<int>(anchor)));
        Growth growth(
            [&](std::uint64_t keys, double fpr, MemoryResource&) {
              return make_filter(filter, {.keys = keys, .fpr = fpr});
            },
            {.keys = 100, .fpr = 1e-4, .by = by});
        growth.start();
        std::uint64_t unlimited = ~std::uint64_t{0};
        Verdict verdict{};
        for (const Digest& digest : digests) {
          ASSERT_EQ(growth.admit(std::span(&digest, 1), std::span(&verdict, 1), unlimited, anchor),
                    1u);
          const std::uint64_t stages = growth.growths();
          ASSERT_EQ(growth.admit_aged(digest, 1, anchor), Verdict::duplicate)
              << "key " << &digest - digests.data() << " of " << growth.live_keys() << " live";
          ASSERT_TRUE(anchor == Anchor::refreshed || growth.growths() == stages);
        }
      }
}

}  // namespace
}  // namespace sluice
