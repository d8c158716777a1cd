#include "sluice/model/reservoir.hpp"

#include <gtest/gtest.h>

#include "sluice/model/stable.hpp"

namespace sluice::model {
namespace {

ReservoirShape shape_of(unsigned filters, unsigned resets, double size = 1e6) {
  return {.size = size, .filters = filters, .resets = resets};
}

ReservoirShape paper_of(unsigned filters, double size = 1e6) {
  return {.size = size, .filters = filters, .variant = ReservoirVariant::paper};
}

TEST(ReservoirModel, ThePapersRuleForFilters) {
  EXPECT_NEAR(reservoir_filters(.1), 5.02, .005);  // eq. 5.27
  EXPECT_EQ(reservoir_most_filters(.1), 5u);
  EXPECT_EQ(reservoir_mean_filters(.1), 3u);
  EXPECT_EQ(reservoir_mean_filters(.99), 1u);
  EXPECT_EQ(reservoir_mean_filters(1e-300), kMostReservoirFilters);
}

TEST(ReservoirModel, KnownPoints) {
  EXPECT_EQ(reservoir_fpr(paper_of(3)), .125);
  EXPECT_NEAR(reservoir_fill(shape_of(2, 1)), (std::sqrt(5.0) - 1) / 2, 1e-9);
  EXPECT_NEAR(reservoir_fill(shape_of(3, 1)), .543689, 1e-6);
  EXPECT_NEAR(reservoir_fill(shape_of(20, 3)), .25, 1e-6);
  EXPECT_NEAR(reservoir_fpr(shape_of(1, 10)), .1, 1e-9);  // up at 1 − ρ, down at 10ρ(1 − ρ)
  EXPECT_EQ(reservoir_fill(shape_of(1, 1)), 1);
  EXPECT_EQ(reservoir_caught(shape_of(3, 1), 0), 1);
}

TEST(ReservoirModel, ResetsAndErrorsAreInverse) {
  for (const double fpr : {.2, .01, 1e-5}) {
    for (const unsigned filters : {1u, 2u, 5u, 9u}) {
      const unsigned resets = reservoir_resets(shape_of(filters, 0), fpr);
      if (resets == 0) {
        EXPECT_GT(reservoir_fpr(shape_of(filters, kMostReservoirResets)), fpr);
        continue;
      }
      EXPECT_LE(reservoir_fpr(shape_of(filters, resets)), fpr);
      if (resets > 1) {
        EXPECT_GT(reservoir_fpr(shape_of(filters, resets - 1)), fpr);
      }
    }
  }
}

// On new keys the paper's rule is stable's with as many decrements as probes.
TEST(ReservoirModel, ThePapersRuleIsStablesWithEqualNumbers) {
  for (const unsigned k : {1u, 2u, 3u, 7u}) {
    const StableShape stable{.cells = 1e6 * k, .probes = k, .decrements = k};
    for (const double distance : {1e3, 1e5, 1e6})
      EXPECT_NEAR(reservoir_caught(paper_of(k), distance), stable_caught(stable, distance), 1e-9);
    EXPECT_NEAR(reservoir_memory(paper_of(k)).mean_distance / stable_memory(stable).mean_distance,
                1, 1e-9);
  }
}

TEST(ReservoirModel, DistancesAndFalseNegativesAreInverse) {
  for (const double fnr : {1e-9, 1e-3, 0.1, 0.7}) {
    const double distance = reservoir_distance(shape_of(5, 3), fnr);
    EXPECT_NEAR((1 - reservoir_caught(shape_of(5, 3), distance)) / fnr, 1, 1e-5) << fnr;
  }
}

TEST(ReservoirModel, DistancesAgreeWithSums) {
  for (const ReservoirShape& shape :
       {shape_of(3, 1, 1000), shape_of(6, 4, 1000), paper_of(2, 1000)}) {
    const ForgettingPlan plan = reservoir_memory(shape);
    double sum = 0;
    for (double d = 0.5; d < 40'000; d += 1)
      sum += (reservoir_caught(shape, d) - plan.fpr) / (1 - plan.fpr);
    EXPECT_NEAR(plan.mean_distance / sum, 1, 1e-4);
    EXPECT_NEAR((reservoir_caught(shape, plan.half_distance) - plan.fpr) / (1 - plan.fpr), .5,
                1e-9);
  }
}

TEST(ReservoirModel, ThePlanRemembersFarthestAndInProportionToBits) {
  for (const double fpr : {.3, .1, .01, 1e-6}) {
    const ForgettingPlan plan = reservoir_plan(1e7, fpr, ReservoirVariant::biased);
    EXPECT_LE(plan.fpr, fpr);
    for (unsigned filters = 1; filters <= 30; ++filters)
      for (unsigned resets = 1; resets <= 20; ++resets) {
        const ForgettingPlan other = reservoir_memory(shape_of(filters, resets, 1e7 / filters));
        if (other.fpr <= fpr) {
          EXPECT_LE(other.mean_distance, plan.mean_distance);
        }
      }
    EXPECT_GE(plan.mean_distance, reservoir_plan(1e7, fpr, ReservoirVariant::paper).mean_distance);
    EXPECT_NEAR(reservoir_plan(1e8, fpr, ReservoirVariant::biased).mean_distance,
                10 * plan.mean_distance, 1e-6 * plan.mean_distance);
  }
  EXPECT_EQ(reservoir_plan(1e7, 1e-200, ReservoirVariant::biased).filters, 0u);
}

TEST(ReservoirModel, UniformStreams) {
  // A universe without end is a stream of new keys: what is caught is caught by chance.
  EXPECT_NEAR(reservoir_uniform_fnr(shape_of(3, 1), 1e12), 1 - reservoir_fpr(shape_of(3, 1)), 1e-4);
  EXPECT_NEAR(reservoir_uniform_fnr(paper_of(3), 1e12), .875, 1e-4);
  // The paper's is stable's with equal numbers here, too.
  EXPECT_NEAR(reservoir_uniform_fnr(paper_of(3), 5e5),
              stable_uniform_fnr({.cells = 3e6, .probes = 3, .decrements = 3}, 5e5), 1e-9);
  // At rest while k·r·(fill of the whole universe) is below 1.
  EXPECT_EQ(reservoir_uniform_fnr(shape_of(3, 1), .3e6), 0);
  EXPECT_GT(reservoir_uniform_fnr(shape_of(3, 1), .45e6), .01);
}

// What the paper's equations say of its Table 4, where 7 to 88 % were measured.
TEST(ReservoirModel, ThePapersEquations) {
  const double universe = 1.0438e8, records = 6.95e8;
  EXPECT_NEAR(dutta_fnr_5_17(2, universe), 1.9e-8, 1e-9);
  EXPECT_NEAR(dutta_fnr_5_14(3.3e7, 2, universe, records), 1.8e-8, 1e-9);
  EXPECT_NEAR(dutta_last_insertion_5_15(universe), 9.6e-9, 1e-10);
  EXPECT_NEAR(dutta_some_bit_zero_5_16(3.3e7, 2, records), .0927, 1e-3);
  EXPECT_NEAR(dutta_fpr_5_7(3.3e7, 2, universe, records), .00116, 1e-4);
}

}  // namespace
}  // namespace sluice::model
