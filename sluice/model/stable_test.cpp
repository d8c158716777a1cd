#include "sluice/model/stable.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::model {
namespace {

TEST(StableModel, KnownPoints) {
  // The parameters of Dutta et al.: a third of the bits set, 1/9 of false positives.
  const StableShape tables{.cells = 1e9, .probes = 2, .decrements = 4};
  EXPECT_NEAR(stable_zeros(tables), 2.0 / 3, 1e-6);
  EXPECT_NEAR(stable_fpr(tables), .11111, 1e-5);
  EXPECT_NEAR(stable_caught(tables, 1e12), .11111, 1e-5);
  EXPECT_EQ(stable_caught(tables, 0), 1);
  // Larger cells take longer to empty.
  EXPECT_NEAR(stable_zeros({.cells = 1e9, .probes = 2, .decrements = 4, .max = 3}), 8.0 / 27, 1e-6);
}

TEST(StableModel, DecrementsAndErrorsAreInverse) {
  for (const unsigned max : {1u, 3u, 15u}) {
    for (const unsigned probes : {1u, 4u, 10u}) {
      for (const double fpr : {0.1, 1e-3, 1e-6}) {
        StableShape shape{.cells = 1e7, .probes = probes, .max = max};
        shape.decrements = stable_decrements(shape, fpr);
        if (shape.decrements == kMostStableDecrements) continue;
        EXPECT_LE(stable_fpr(shape), fpr);
        --shape.decrements;
        if (shape.decrements > 0) {
          EXPECT_GT(stable_fpr(shape), fpr);
        }
      }
    }
  }
}

// Two ways to the same: Simpson's rule is used above max = 1 only.
TEST(StableModel, LargeCellsAgreeWithSums) {
  const StableShape shape{.cells = 1000, .probes = 3, .decrements = 8, .max = 3};
  const ForgettingPlan plan = stable_memory(shape);
  EXPECT_NEAR(plan.fpr, std::pow(1 - std::pow(8.0 / 11, 3), 3), 1e-9);
  double sum = 0;
  for (double d = 0.05; d < 20'000; d += 0.1)
    sum += 0.1 * (stable_caught(shape, d) - plan.fpr) / (1 - plan.fpr);
  EXPECT_NEAR(plan.mean_distance / sum, 1, 1e-4);
  EXPECT_NEAR((stable_caught(shape, plan.half_distance) - plan.fpr) / (1 - plan.fpr), .5, 1e-6);
}

// It looks at a few numbers of probes, and no other one is better: also where cells are few.
TEST(StableModel, TheShapeRemembersFarthest) {
  for (const double cells : {61.0, 64.0, 200.0, 3000.0, 1e6, 1e12})
    for (const double fpr : {0.9, 0.1, 0.01, 1e-4, 1e-6, 1e-11, 1e-30, 9.2e-96}) {
      const StableShape best = stable_shape(cells, 1, fpr);
      for (unsigned probes = 1; probes <= kMostStableProbes; ++probes) {
        StableShape other{.cells = cells, .probes = probes};
        other.decrements = stable_decrements(other, fpr);
        if (stable_fpr(other) > fpr) continue;
        ASSERT_GT(best.probes, 0u) << cells << " cells, " << fpr;
        EXPECT_LE(stable_memory(other).mean_distance, stable_memory(best).mean_distance)
            << cells << " cells, " << fpr << ", " << probes;
      }
      if (best.probes > 0) {
        EXPECT_LE(stable_fpr(best), fpr);
      }
    }
}

TEST(StableModel, DistancesAndFalseNegativesAreInverse) {
  for (const unsigned max : {1u, 3u})
    for (const double fnr : {1e-9, 1e-3, 0.1, 0.7}) {
      const StableShape shape{.cells = 1e6, .probes = 6, .decrements = 21, .max = max};
      const double distance = stable_distance(shape, fnr);
      EXPECT_NEAR((1 - stable_caught(shape, distance)) / fnr, 1, 1e-5) << max << ", " << fnr;
    }
  EXPECT_EQ(stable_distance({.cells = 1e6, .probes = 1, .decrements = 1}, 0.9999), INFINITY);
}

}  // namespace
}  // namespace sluice::model
