#include "sluice/model/bloom.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sluice::model {
namespace {

TEST(BloomModel, KnownPoints) {
  // 10 bits per key and 7 probes: (1 − e^{−0.7})^7 = .00819, the figure every text gives.
  EXPECT_NEAR(bloom_fpr(1e7, 7, 1e6), 0.00819, 1e-5);
  EXPECT_EQ(bloom_probes(1e7, 1e6), 7u);
  EXPECT_EQ(bloom_fpr(1000, 7, 0), 0);
  // A direct double sum for one small case: 4 keys per block of 8 lanes of 64 bits, Poisson.
  double sum = 0;
  double poisson = std::exp(-4.0);
  for (int x = 1; x < 60; ++x) {
    poisson *= 4.0 / x;
    sum += poisson * std::pow(1 - std::pow(63.0 / 64, x), 8);
  }
  EXPECT_NEAR(blocked_bloom_fpr(1000, 8, 4000) / sum, 1, 1e-9);
}

// The chance from the whole distribution of the number of set bits, throw by throw.
double fpr_by_chain(unsigned bits, unsigned probes, unsigned keys) {
  std::vector<double> set(bits + 1);
  set[0] = 1;
  for (unsigned thrown = 0; thrown < probes * keys; ++thrown)
    for (unsigned i = bits + 1; i-- > 0;)
      set[i] = (set[i] * i + (i > 0 ? set[i - 1] * (bits - i + 1) : 0)) / bits;
  double sum = 0;
  for (unsigned i = 0; i <= bits; ++i) sum += set[i] * std::pow(double{1} * i / bits, probes);
  return sum;
}

TEST(BloomModel, ExactIsTheWholeDistribution) {
  for (const unsigned bits : {30u, 100u, 1280u})
    for (const unsigned probes : {1u, 2u, 7u, 16u})
      for (const unsigned keys : {1u, 10u, 133u}) {
        const double chain = fpr_by_chain(bits, probes, keys);
        // Nearly empty filters have too small an error to be summed exactly.
        const double tolerance = chain > 1e-11 * std::exp2(probes) ? 1e-6 : 0.05;
        EXPECT_NEAR(bloom_fpr_exact(bits, probes, keys) / chain, 1, tolerance)
            << bits << ' ' << probes << ' ' << keys;
      }
  // More probes than the exact sum can bear: the second order is near enough.
  EXPECT_NEAR(bloom_fpr_exact(2000, 30, 50) / fpr_by_chain(2000, 30, 50), 1, 0.01);
}

TEST(BloomModel, TheThreeFormsMeet) {
  // Guo et al. 2010, §3.2: m = 1280, k = 7, c = 133.
  EXPECT_NEAR(bloom_fpr_limit(1280, 7, 133), 0.0098472, 1e-7);
  EXPECT_NEAR(bloom_fpr(1280, 7, 133), 0.0098655, 1e-7);
  EXPECT_NEAR(bloom_fpr_exact(1280, 7, 133), 0.0099140, 1e-7);
  EXPECT_NEAR(bloom_fpr_limit(1280, 7, 1330) / bloom_fpr_limit(1280, 7, 133), 101.06, 0.005);
  for (const double bits : {1e4, 1e6, 1e8}) {
    const double limit = bloom_fpr_limit(bits, 7, bits / 10);
    EXPECT_NEAR(bloom_fpr(bits, 7, bits / 10) / limit, 1, 10 / bits);
    EXPECT_NEAR(bloom_fpr_exact(bits, 7, bits / 10) / limit, 1, 20 / bits);
    EXPECT_NEAR(bloom_keys_limit(bits, 7, limit) / bits, 0.1, 1e-9);
  }
}

TEST(BloomModel, SizesAndErrorsAreInverse) {
  for (const double fpr : {0.3, 0.01, 1e-4, 1e-6, 1e-9}) {
    for (const double keys : {1.0, 1000.0, 8e6, 1e10}) {
      for (const unsigned probes : {4u, 8u, 16u, 30u}) {
        const double bits = bloom_bits(probes, keys, fpr);
        // A filter of a handful of bits has no room for the approximation; real ones are larger.
        if (bits < 64) continue;
        EXPECT_NEAR(bloom_fpr(bits, probes, keys) / fpr, 1, 1e-5) << keys << ' ' << probes;
        EXPECT_NEAR(bloom_keys(bits, probes, fpr) / keys, 1, 1e-5);
      }
      for (const unsigned probes : {8u, 16u}) {
        const double blocks = blocked_bloom_blocks(probes, keys, fpr);
        EXPECT_NEAR(blocked_bloom_fpr(blocks, probes, keys) / fpr, 1, 1e-6);
        EXPECT_NEAR(blocked_bloom_keys(blocks, probes, fpr) / keys, 1, 1e-6);
      }
    }
  }
}

TEST(BloomModel, BlockedCostsMoreThanClassical) {
  for (const double fpr : {0.01, 1e-4, 1e-6}) {
    const double classical = 1.4427 * std::log2(1 / fpr);
    const double blocked =
        512 * std::min(blocked_bloom_blocks(8, 1e6, fpr), blocked_bloom_blocks(16, 1e6, fpr)) / 1e6;
    EXPECT_GT(blocked, classical);
    EXPECT_LT(blocked, 1.4 * classical);
  }
}

// Where a double has no digits left there is an answer, too, and soon: the sums are bounded.
TEST(BloomModel, ExtremeErrorsHaveASizeAsWell) {
  for (const unsigned probes : {8u, 16u})
    for (const double fpr : {5e-324, 1e-310, 1e-307, 1 - 1e-15, 1 - 1e-16}) {
      const double keys = blocked_bloom_keys(1, probes, fpr);
      EXPECT_TRUE(keys >= 0 && keys <= 64 * 512) << fpr << ' ' << keys;
    }
}

TEST(BloomModel, KeysAreReadOffTheOnes) {
  for (const double keys : {1.0, 1000.0, 150'000.0}) {
    const double bits = 1 << 20;
    const double ones = -bits * std::expm1(7 * keys * std::log1p(-1 / bits));
    EXPECT_NEAR(bloom_keys_of_ones(bits, 7, ones), keys, 1e-6 * keys);
    const double blocked_ones = -bits * std::expm1(-keys / (bits / 512) / (512 / 8));
    EXPECT_NEAR(blocked_bloom_keys_of_ones(bits / 512, 8, blocked_ones), keys, 1e-6 * keys);
  }
  EXPECT_EQ(bloom_keys_of_ones(64, 3, 64), INFINITY);
}

TEST(BloomModel, MergedKeysStayWithinWhatCanBe) {
  EXPECT_EQ(merged_keys(10, 20, 1000, 25.4), 25u);
  EXPECT_EQ(merged_keys(10, 20, 1000, 3), 20u);
  EXPECT_EQ(merged_keys(10, 20, 1000, INFINITY), 30u);
  EXPECT_EQ(merged_keys(10, 20, 25, 28), 25u) << "each key set a bit";
}

}  // namespace
}  // namespace sluice::model
