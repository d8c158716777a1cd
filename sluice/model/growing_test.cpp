#include "sluice/model/growing.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace sluice::model {
namespace {

TEST(GrowingModel, AnErrorIsTheSumOfItsTraces) {
  std::array<std::uint64_t, 65> by_bits{};
  EXPECT_EQ(growing_fpr(12, by_bits), 0);
  by_bits[20] = 1024;
  EXPECT_NEAR(growing_fpr(12, by_bits), std::ldexp(1, -21), 1e-12);
  by_bits[21] = 2048;
  EXPECT_NEAR(growing_fpr(12, by_bits), std::ldexp(1, -20), 1e-12);
  by_bits[0] = 1 << 20;
  EXPECT_EQ(growing_fpr(12, by_bits), 1);
}

// Full growth by the rules: each doubling of 2^l buckets writes slots · load · 2^l keys, of which
// none knows less than l + hash bits.
TEST(GrowingModel, TheBoundHoldsForEveryDoublingAndIsNotFarOff) {
  constexpr unsigned kSlots = 16, kTag = 12, kHash = 19;
  constexpr double kLoad = 0.7;
  std::array<std::uint64_t, 65> by_bits{};
  by_bits[10 + kHash] = static_cast<std::uint64_t>(kSlots * kLoad * 1024);
  for (unsigned level = 10; level < 33; ++level) {
    const double bound = growing_fpr_bound(kSlots, kLoad, kTag, kHash, 1024, std::exp2(level));
    EXPECT_LE(growing_fpr(kTag, by_bits), bound);
    EXPECT_GE(growing_fpr(kTag, by_bits), bound / 3);
    by_bits[level + kHash] += static_cast<std::uint64_t>(kSlots * kLoad * std::exp2(level));
  }
}

// A doubling adds the same again, whatever the size: the error grows with the logarithm.
TEST(GrowingModel, AHundredfoldOfKeysCostsAFewUnits) {
  const auto at = [](double buckets) { return growing_fpr_bound(16, 0.68, 12, 19, 1024, buckets); };
  EXPECT_NEAR(at(4096) - at(2048), at(std::exp2(31)) - at(std::exp2(30)), 1e-15);
  EXPECT_LT(at(std::exp2(33)), 1e-6);
}

// What docs/filters/growing.md says of a series of Bloom filters that doubles, each with half of
// the error left: from 1 M to 200 M keys at 10⁻⁶.
TEST(GrowingModel, ATighteningSeriesTakesMore) {
  double least = 1e9, most = 0;
  for (double keys = 1.01e6; keys < 200e6; keys *= 1.01) {
    const double bits = tightening_series_bits_a_key(1e6, 2, 0.5, 1e-6, keys);
    least = std::min(least, bits);
    most = std::max(most, bits);
  }
  EXPECT_NEAR(least, 1, 0.5);
  EXPECT_NEAR(most, 1, 0.5);
}

}  // namespace
}  // namespace sluice::model
