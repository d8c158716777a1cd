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

// A doubling adds the same amount at every size: the error grows with the logarithm.
TEST(GrowingModel, AHundredfoldOfKeysCostsAFewUnits) {
  const auto at = [](double buckets) { return growing_fpr_bound(16, 0.68, 12, 19, 1024, buckets); };
  EXPECT_NEAR(at(4096) - at(2048), at(std::exp2(31)) - at(std::exp2(30)), 1e-15);
  EXPECT_LT(at(std::exp2(33)), 1e-6);
}

// What docs/filters/growing.md says of a series of Bloom filters that doubles from 1 M keys on,
// each with 0.8 of the error of the one before, at 10⁻⁶: best when the newest is full, worst when
// it is new.
TEST(GrowingModel, ATighteningSeriesTakesMore) {
  const auto bits = [](double keys) {
    return tightening_series_bits_per_key(1e6, 2, 0.8, 1e-6, keys);
  };
  EXPECT_NEAR(bits(255e6), 54.8, 0.1);
  EXPECT_NEAR(bits(200e6), 69.9, 0.1);
  EXPECT_NEAR(bits(129e6), 108.4, 0.1);
  EXPECT_LT(growing_bits_per_key(32, 174 / 256.0), bits(255e6));
}

}  // namespace
}  // namespace sluice::model
