#include "sluice/model/timer.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::model {
namespace {

// The table of the paper's experiment: 432 live events, 8 probes, 2 %.
constexpr TimerTable kVertical{.timers = 3638, .probes = 8, .vertical = true};
constexpr TimerTable kHorizontal{.timers = 3638, .probes = 8, .slices = 40};

TEST(TimerModel, EqualTimersOfThePaper) {
  EXPECT_NEAR(timer_fpr(kVertical, 432), 0.0201, 1e-4);
  EXPECT_NEAR(timer_equal_fpr(kVertical, 2, 432, 1000), 0.00136, 1e-5);
  EXPECT_NEAR(timer_fpr(kHorizontal, 432), 0.0339, 1e-4);
  EXPECT_NEAR(timer_equal_fpr(kHorizontal, 3, 432, 1000), 0.00908, 1e-5);
  // All equal: as printed for one live event, 5.42·10⁻²²; for all 432, as many times more.
  EXPECT_NEAR(timer_equal_bound(kVertical, 8, 432), 2.34e-19, 1e-21);
}

// The experiment itself, Zipf(1) over 5700 events and a window of 1000: known are .024 → .0013 at
// 1.0 % for at least 2 equal timers, and .044 → .014 at 3.7 % for 3 in horizontal slices. Measured
// with our filter (docs/filters/timer.md): .0240 → .0016 at .92 %, .0447 → .0137 at 3.21 %.
TEST(TimerModel, EqualTimersOnTheStreamOfThePaper) {
  const TimerStream stream{.keys = 5700, .skew = 1, .window = 1000};
  const TimerStreamErrors plain = timer_stream_errors(kVertical, 1, stream);
  EXPECT_NEAR(plain.live, 432, 1);
  EXPECT_NEAR(plain.fpr, 0.024, 0.001);
  EXPECT_EQ(plain.fnr, 0);
  const TimerStreamErrors vertical = timer_stream_errors(kVertical, 2, stream);
  EXPECT_NEAR(vertical.fpr, 0.0016, 0.0001);
  EXPECT_NEAR(vertical.fnr, 0.0092, 0.0008);
  EXPECT_NEAR(timer_stream_errors(kHorizontal, 1, stream).fpr, 0.0447, 0.003);
  // A horizontal slice holds eleven keys, and which ones matters: the model takes them for any, and
  // is a third too low with the test.
  const TimerStreamErrors horizontal = timer_stream_errors(kHorizontal, 3, stream);
  EXPECT_NEAR(horizontal.fpr, 0.0101, 0.0003);
  EXPECT_NEAR(horizontal.fnr, 0.0202, 0.0005);
}

// Keys that come once in many windows: nothing comes again, and it is the chance of one arrival.
TEST(TimerModel, AStreamOfRareKeysIsPlain) {
  const TimerStream stream{.keys = 1e6, .skew = 0, .window = 400};
  const TimerStreamErrors rare = timer_stream_errors(kVertical, 2, stream);
  EXPECT_NEAR(rare.live, 400, 1);
  EXPECT_NEAR(rare.fpr / timer_equal_fpr(kVertical, 2, rare.live, 400), 1, 0.01);
  EXPECT_NEAR(rare.fnr / timer_equal_fnr(kVertical, 2, rare.live, 400), 1, 0.05);
}

// With the binomial load of slices: m = 48400, k = 4, n = 5700, S = 400 is .0242; with an even load
// it would be .0202.
TEST(TimerModel, UnevenSlices) {
  const TimerTable sliced{.timers = 48400, .probes = 4, .slices = 400};
  EXPECT_NEAR(timer_fpr(sliced, 5700), 0.0242, 1e-4);
  // The same as an alternating sum over how many timers are not live.
  double sum = 0, ways = 1;
  const double kept = std::pow(1 - 400.0 / 48400, 4);
  for (int j = 0; j <= 4; ++j) {
    sum += (j % 2 == 0 ? 1 : -1) * ways * std::pow(1 - 1 / 400.0 + std::pow(kept, j) / 400, 5700);
    ways *= (4.0 - j) / (j + 1);
  }
  EXPECT_NEAR(timer_fpr(sliced, 5700), sum, 1e-6);
}

TEST(TimerModel, StricterTestsLoseMoreAndMistakeLess) {
  double positives = 1, negatives = -1;
  for (unsigned equal = 1; equal <= 8; ++equal) {
    const double positive = timer_equal_fpr(kVertical, equal, 432, 1000);
    const double negative = timer_equal_fnr(kVertical, equal, 432, 1000);
    EXPECT_LT(positive, positives);
    EXPECT_GT(negative, negatives);
    positives = positive;
    negatives = negative;
  }
  EXPECT_EQ(timer_equal_fnr(kVertical, 1, 432, 1000), 0);
  // All keys of one time: the test tells nothing.
  EXPECT_NEAR(timer_equal_fpr(kVertical, 4, 432, 1), timer_fpr(kVertical, 432), 1e-12);
}

TEST(TimerModel, SizesAndErrorsAreInverse) {
  for (const double fpr : {0.1, 0.01, 1e-4}) {
    for (TimerTable table : {TimerTable{.probes = 7, .vertical = true}, TimerTable{.probes = 7},
                             TimerTable{.probes = 7, .slices = 40}}) {
      table.timers = timer_timers_for(table, 1e4, fpr);
      EXPECT_NEAR(timer_window_fpr(table, 1e4) / fpr, 1, 1e-5);
    }
  }
}

}  // namespace
}  // namespace sluice::model
