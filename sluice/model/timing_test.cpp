#include "sluice/model/timing.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::model {
namespace {

TEST(TimingModel, BitsAndTimersAreByRule) {
  EXPECT_EQ(timing_bits(1), 3u);
  EXPECT_EQ(timing_bits(3), 3u);
  EXPECT_EQ(timing_bits(9), 9u);
  EXPECT_EQ(timing_timers(65536, 8, 3), 174762u);
  EXPECT_EQ(timing_padding(1000, 4, 1), 249u);
  EXPECT_EQ(timing_padding(1000, 4, 250), 0u);
  EXPECT_EQ(timing_padding(1000, 4, 249), 1u);
}

// Every block tried, smallest first.
TEST(TimingModel, TheBlockIsTheSmallestThatFits) {
  for (const std::uint64_t window : {50u, 1000u, 3001u}) {
    for (const double bits_per_key : {1.0, 4.0, 16.0, 64.0}) {
      for (unsigned probes = 1; probes <= 12; ++probes) {
        const unsigned bits = timing_bits(probes);
        const std::uint64_t timers = timing_timers(window, bits_per_key, bits);
        const TimingShape shape = timing_shape(window, timers, probes, bits);
        std::uint64_t block = 1;
        const auto numbers = [&] {
          const auto generations = std::ceil(double(window) / double(block));
          const auto padding =
              std::max(0.0, std::ceil(double(timers) / (probes * double(block))) - 1);
          return generations + 1 + padding + 2;
        };
        while (block < window && numbers() > std::pow(2, bits)) ++block;
        EXPECT_EQ(shape.block, block) << window << ' ' << bits_per_key << ' ' << probes;
        EXPECT_LE(shape.generations + shape.padding + 3, std::uint64_t{1} << bits);
      }
    }
  }
}

// A window of 2^20 with a timestamp for each insertion takes 21 bits with its padding, as in the
// first timing filter; with 20 the insertions must share.
TEST(TimingModel, ATimestampForEachInsertion) {
  const std::uint64_t window = 1u << 20;
  EXPECT_EQ(timing_shape(window, 15'112'980, 15, 21).block, 1u);
  EXPECT_EQ(timing_shape(window, 15'112'980, 15, 20).block, 2u);
}

TEST(TimingModel, SizesAndErrorsAreInverse) {
  for (const double fpr : {0.1, 0.01, 1e-4, 1e-6})
    for (const unsigned probes : {2u, 7u, 20u})
      EXPECT_NEAR(timing_window_fpr(timing_timers_for(probes, 1e5, fpr), probes, 1e5) / fpr, 1,
                  1e-5);
}

TEST(TimingModel, NotWritingFalseDuplicatesRaisesTheError) {
  const auto excess = [](unsigned probes, double fpr) {
    const double timers = timing_timers_for(probes, 1e5, fpr);
    return timing_window_fpr(timers, probes, 1e5) / timing_fpr(timers, probes, 1e5) - 1;
  };
  EXPECT_NEAR(excess(7, 0.01), 0.02, 0.005);
  EXPECT_NEAR(excess(4, 0.05), 0.065, 0.01);
  EXPECT_NEAR(excess(13, 1e-4), 0, 1e-3);
}

}  // namespace
}  // namespace sluice::model
