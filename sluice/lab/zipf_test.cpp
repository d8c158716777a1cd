#include "sluice/lab/zipf.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice {
namespace {

constexpr std::uint64_t kDraws = 400'000;

// Held constant: seed 7 and 400,000 draws. Ranks 1 to 127 follow the law exactly up to the
// truncation of the chances; each count must lie within 4.5 standard errors (binomial), since 127
// ranks are looked at for each skew.
void expect_law(std::uint64_t ranks, double skew) {
  const ZipfSampler sampler(ranks, skew);
  SplitMix64 random(7);
  std::vector<std::uint64_t> seen(ranks + 1);
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const std::uint64_t rank = sampler.draw(random);
    ASSERT_GE(rank, 1u);
    ASSERT_LE(rank, ranks);
    ++seen[rank];
  }
  double total = 0;
  for (std::uint64_t r = 1; r <= ranks; ++r) total += std::pow(static_cast<double>(r), -skew);
  for (std::uint64_t r = 1; r <= std::min<std::uint64_t>(ranks, 127); ++r) {
    const double p = std::pow(static_cast<double>(r), -skew) / total;
    const double expected = p * static_cast<double>(kDraws);
    if (expected < 30) break;  // too few for the normal approximation
    const double error = std::sqrt(expected * (1 - p));
    // The staircase beyond rank 127 shifts the total by less than one part in a hundred.
    EXPECT_NEAR(static_cast<double>(seen[r]), expected, 4.5 * error + 0.01 * expected)
        << "rank " << r << " of " << ranks << ", skew " << skew;
  }
}

TEST(Zipf, RanksFollowTheLaw) {
  expect_law(100, 1.0);
  expect_law(5'000, 0.75);
  expect_law(5'000, 1.3);
  expect_law(5'000, 4.0);
}

TEST(Zipf, WithoutSkewAllRanksAreAlike) {
  expect_law(100, 0.0);
  expect_law(127, 0.0);
}

TEST(Zipf, OneRankIsAlwaysThatOne) {
  const ZipfSampler sampler(1, 1.0);
  SplitMix64 random(7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(sampler.draw(random), 1u);
}

TEST(Zipf, ManyRanksCostNoMemory) {
  const ZipfSampler sampler(ZipfSampler::kRanksMost, 0.0);
  SplitMix64 random(7);
  std::uint64_t upper_half = 0;
  for (int i = 0; i < 10'000; ++i)
    if (sampler.draw(random) > ZipfSampler::kRanksMost / 2) ++upper_half;
  EXPECT_NEAR(static_cast<double>(upper_half), 5'000, 4 * 50);
}

}  // namespace
}  // namespace sluice
