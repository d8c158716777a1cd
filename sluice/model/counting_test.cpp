#include "sluice/model/counting.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::model {
namespace {

TEST(CountingModel, TheBoundOfFourBitsAsPrinted) {
  EXPECT_NEAR(counting_overflow_worst(1) / 1.37e-15, 1, 0.005);
  // A gigabit of counters: still one in a million.
  EXPECT_LT(counting_overflow_worst(1e9), 1.4e-6);
}

TEST(CountingModel, ChanceIsBelowBoundIsBelowWorst) {
  for (const double counters : {1e3, 1e6, 1e9})
    for (const unsigned probes : {1u, 4u, 7u, 13u})
      for (const unsigned limit : {4u, 8u, 16u}) {
        const double keys = counters * std::log(2.0) / probes;
        const double each = counter_overflow(counters, probes, keys, limit);
        const double bound = counting_overflow_bound(counters, probes, keys, limit);
        EXPECT_GT(each, 0);
        EXPECT_LE(bound, counting_overflow_worst(counters, limit));
        if (bound == 1) continue;
        EXPECT_LT(each * counters, bound);
        // Nor is it far above: most of the tail is its first term, less e^{−ln 2} for the misses.
        EXPECT_LT(bound, 2.1 * each * counters);
      }
}

TEST(CountingModel, TailIsThatOfThePoissonForManyCounters) {
  const double mean = 3;  // far past its capacity: overflow is no rarity any more
  double below = 0, term = std::exp(-mean);
  for (int raised = 0; raised < 16; ++raised, term *= mean / raised) below += term;
  EXPECT_NEAR(counter_overflow(1e8, 6, 0.5e8) / (1 - below), 1, 1e-5);
  EXPECT_NEAR(counter_overflow(10, 1, 1000), 1, 1e-9);  // a hundred each
  EXPECT_EQ(counter_overflow(10, 1, 15), 0);
  // Ten throws at two counters: all in one given counter, or nine.
  EXPECT_NEAR(counter_overflow(2, 1, 10, 9), 11.0 / 1024, 1e-12);
}

}  // namespace
}  // namespace sluice::model
