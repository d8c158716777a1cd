#include "sluice/window/growth.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice {
namespace {

// A stage that is too large works, so a smaller one that cannot be had ends nothing.
TEST(Growth, RotatesOnWhenThereIsNoMemoryForASmallerStage) {
  bool no_memory = false;
  int refused = 0;
  Growth growth(
      [&](std::uint64_t keys, double fpr) {
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

}  // namespace
}  // namespace sluice
