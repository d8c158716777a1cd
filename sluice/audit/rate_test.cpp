#include "sluice/audit/rate.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice {
namespace {

// The interval is where (share − p)² = z² p (1 − p) / n.
TEST(Rate, IsWilsons) {
  constexpr double kZ = 1.959963984540054;
  for (const Rate& rate : {Rate{10, 100}, Rate{1, 1000}, Rate{0.5, 20}, Rate{999, 1000}}) {
    for (const double end : {rate.low(), rate.high()}) {
      const double off = rate.errors / rate.trials - end;
      EXPECT_NEAR(off * off, kZ * kZ * end * (1 - end) / rate.trials, 1e-12);
    }
    EXPECT_LT(rate.low(), *rate.value());
    EXPECT_GT(rate.high(), *rate.value());
  }
  // As printed in many places: 10 of 100 is 5.52 % to 17.44 %.
  EXPECT_NEAR((Rate{10, 100}.low()), 0.0552, 5e-5);
  EXPECT_NEAR((Rate{10, 100}.high()), 0.1744, 5e-5);
}

TEST(Rate, NeverIsNothing) {
  const Rate none{0, 1000};
  EXPECT_FALSE(none.value());
  EXPECT_EQ(none.low(), 0);
  EXPECT_NEAR(none.high(), 3.8415 / 1003.8415, 1e-6);
  EXPECT_EQ(describe(none), "< 0.0038");
  EXPECT_EQ(describe(Rate{}), "unknown");
  EXPECT_EQ(Rate{}.low(), 0);
  EXPECT_EQ(Rate{}.high(), 1);
  EXPECT_EQ((Rate{5, 5}.high()), 1);
  EXPECT_GT((Rate{5, 5}.low()), 0.5);
  EXPECT_EQ(describe({10, 100}), "0.1 (0.055 to 0.17)");
}

// Hits that count the same: the exact interval for a Poisson count (Garwood 1936), within 1 % above, and below not
// more than the exact one.
TEST(Rate, TheIntervalOfAWeightedSumIsTheExactOneWhereAllCountTheSame) {
  struct Exact {
    double hits, low, high;
  };
  constexpr double kGhosts = 1e6;
  for (const Exact& exact :
       {Exact{1, 0.0253, 5.572}, Exact{3, 0.619, 8.767}, Exact{10, 4.795, 18.39},
        Exact{20, 12.22, 30.89}, Exact{100, 81.36, 121.63}}) {
    const double share = exact.hits / kGhosts;
    const Interval of = interval95(share, share / kGhosts, 1 / kGhosts);
    EXPECT_NEAR(of.high * kGhosts, exact.high, 0.01 * exact.high) << exact.hits;
    EXPECT_LE(of.low * kGhosts, 1.01 * exact.low) << exact.hits;
    EXPECT_GE(of.low * kGhosts, 0.97 * exact.low - 0.1) << exact.hits;
    // Where nearly all are hits, the misses count.
    const Interval misses = interval95(1 - share, share / kGhosts, 1 / kGhosts);
    EXPECT_NEAR(1 - misses.low, of.high, 1e-9);
  }
}

}  // namespace
}  // namespace sluice
