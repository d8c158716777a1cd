#include "sluice/model/lower_bound.hpp"

#include <gtest/gtest.h>

namespace sluice::model {
namespace {

TEST(LowerBound, ByHand) {
  EXPECT_DOUBLE_EQ(set_lower_bound_bits(1.0 / 1024), 10);
  // 2^−16: the second logarithm is 4, which a slack of 1/4 does not reach and 1/256 passes.
  EXPECT_DOUBLE_EQ(window_lower_bound_bits(1.0 / 65536, 0.25), 16 + 4);
  EXPECT_DOUBLE_EQ(window_lower_bound_bits(1.0 / 65536, 1.0 / 256), 16 + 8);
  // 10⁻⁴ with a slack of 4 %: about 18.
  EXPECT_NEAR(window_lower_bound_bits(1e-4, 0.04), 17.93, 0.005);
}

TEST(LowerBound, InversesInTheError) {
  for (const double fpr : {0.4, 0.01, 1e-4, 1e-12}) {
    EXPECT_NEAR(set_lower_bound_fpr(set_lower_bound_bits(fpr)) / fpr, 1, 1e-12);
    for (const double slack : {1.0, 0.3, 1e-3, 1e-9})
      EXPECT_NEAR(window_lower_bound_fpr(window_lower_bound_bits(fpr, slack), slack) / fpr, 1,
                  1e-9);
  }
  EXPECT_EQ(window_lower_bound_fpr(1, 0.01), 0.5);
}

}  // namespace
}  // namespace sluice::model
