#include "sluice/model/offered.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sluice/model/bloom.hpp"

namespace sluice::model {
namespace {

// Key by key: each is taken with the chance that it is not lost.
double taken_one_by_one(double bits, unsigned probes, int offered) {
  double taken = 0;
  for (int key = 0; key < offered; ++key) taken += 1 - bloom_fpr(bits, probes, key);
  return taken;
}

TEST(OfferedKeys, AreThoseTakenAndThoseLost) {
  for (const double bits : {13'000.0, 24'000.0, 50'000.0, 200'000.0})
    for (const unsigned probes : {1u, 2u, 3u, 7u, 16u}) {
      const auto fpr = [&](double keys) { return bloom_fpr(bits, probes, keys); };
      const double taken = taken_one_by_one(bits, probes, 5000);
      // Half a key: one is counted before it is written.
      EXPECT_NEAR(taken_keys(5000, fpr), taken, 2e-4 * taken + 0.5) << bits << ' ' << probes;
      if (fpr(5000) < 0.9) {
        EXPECT_NEAR(offered_keys(taken, fpr), 5000, 2e-3 * 5000 + 2) << bits << ' ' << probes;
      }
      EXPECT_EQ(offered_keys(10, fpr), 10) << "nothing is lost yet";
    }
}

TEST(BlockedModel, OfFewBlocksSpreadsLess) {
  // One block holds all keys.
  EXPECT_NEAR(blocked_bloom_fpr_of_few(1, 8, 40), std::pow(1 - std::pow(63.0 / 64, 40), 8), 1e-15);
  // Two: a direct sum.
  double sum = 0, chance = std::exp2(-10.0);
  for (int x = 0; x <= 10; ++x) {
    sum += chance * std::pow(1 - std::pow(63.0 / 64, x), 8);
    chance *= (10.0 - x) / (x + 1);
  }
  EXPECT_NEAR(blocked_bloom_fpr_of_few(2, 8, 10) / sum, 1, 1e-9);
  // Many are as Poisson has them.
  EXPECT_NEAR(blocked_bloom_fpr_of_few(256, 8, 10'240) / blocked_bloom_fpr(256, 8, 10'240), 1,
              0.01);
  EXPECT_EQ(blocked_bloom_fpr_of_few(257, 8, 10'240), blocked_bloom_fpr(257, 8, 10'240));
  EXPECT_EQ(blocked_bloom_fpr_of_few(4, 8, 0), 0);
}

}  // namespace
}  // namespace sluice::model
