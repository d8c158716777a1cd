#include "sluice/audit/key_sums.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

KeyCounts key_of(float duplicates, float passed) {
  return {.distinct = 1,
          .lost = 0,
          .duplicates = duplicates,
          .passed = passed,
          .let_through = 1 + passed,
          .held = duplicates - passed};
}

struct Sample {
  KeySums sums;
  Totals totals;  // of all keys, as if the rest were like the sample

  void add(const KeyCounts& key, double times) {
    for (double i = 0; i < times; ++i) sums.add(key);
    totals.let_through += times * key.let_through;
    totals.held += times * key.held;
  }
  Rate negatives(double one_in) const {
    return sums.negatives(one_in, {one_in * totals.let_through, one_in * totals.held});
  }
};

TEST(KeySums, OfAllKeysAreTheTruth) {
  Sample all;
  all.add(key_of(10, 3), 7);
  all.add(key_of(1, 0), 50);
  const Rate rate = all.negatives(1);
  EXPECT_DOUBLE_EQ(*rate.value(), 21.0 / 120);
  EXPECT_DOUBLE_EQ(rate.low(), *rate.value());
  EXPECT_DOUBLE_EQ(rate.high(), *rate.value());
  EXPECT_EQ(rate.errors, 21);
  EXPECT_EQ(rate.trials, 120);
}

// The same events make a wider interval if fewer keys have them.
TEST(KeySums, EventsOfOneKeyAreOneDraw) {
  const auto lost_of = [](float distinct, int keys) {
    KeySums sums;
    for (int i = 0; i < keys; ++i)
      sums.add({.distinct = distinct,
                .lost = i % 2 == 0 ? distinct : 0,
                .duplicates = 0,
                .passed = 0,
                .let_through = 0,
                .held = distinct});
    return sums.positives(16);
  };
  const Rate narrow = lost_of(1, 400), wide = lost_of(20, 20);
  EXPECT_DOUBLE_EQ(*narrow.value(), 0.5);
  EXPECT_DOUBLE_EQ(*wide.value(), 0.5);
  EXPECT_LT(narrow.high() - narrow.low(), 0.1);
  EXPECT_GT(wide.high() - wide.low(), 4 * (narrow.high() - narrow.low()));
}

// What sampled keys did may differ from key to key; the totals say how much passed in all.
TEST(KeySums, TheTotalsNarrowTheInterval) {
  Sample sample;
  sample.add(key_of(4, 4), 100);
  sample.add(key_of(4, 0), 300);
  const Rate with = sample.negatives(16), without = sample.sums.negatives(16, {});
  EXPECT_DOUBLE_EQ(*with.value(), 0.25);
  EXPECT_LT(with.low(), 0.25);
  EXPECT_GT(with.high(), 0.25);
  EXPECT_LT(2 * (with.high() - with.low()), without.high() - without.low());
}

// A key with 10,000 duplicates is not in the sample, and all of them were held back.
TEST(KeySums, AKeyThatIsMissingFromTheSampleIsKnownFromTheTotals) {
  Sample sample;
  sample.add(key_of(4, 1), 300);
  Totals totals{16 * sample.totals.let_through, 16 * sample.totals.held};
  const double truth = 16 * 300.0 / (16 * 1200.0 + 10'000);
  totals.held += 10'000;
  totals.let_through += 1;
  const Rate rate = sample.sums.negatives(16, totals);
  EXPECT_NEAR(*rate.value(), truth, 0.01 * truth);
  EXPECT_LT(rate.low(), truth);
  EXPECT_GT(rate.high(), truth);
  // One that always passes.
  Totals passing{16 * sample.totals.let_through + 10'001, 16 * sample.totals.held};
  const Rate passed = sample.sums.negatives(16, passing);
  EXPECT_GT(*passed.value(), 0.3);
}

// A key with half the counts and twice the weight is the same.
TEST(KeySums, HalvedKeysCountAsKeysOfASmallerSample) {
  KeySums early, late;
  KeyCounts key = key_of(6, 2);
  key.lost = 1;
  for (int i = 0; i < 100; ++i) early.add(key);
  early.halve();
  key.halve();
  for (int i = 0; i < 100; ++i) late.add(key);
  EXPECT_EQ(early.positives(32).errors, 50);
  EXPECT_EQ(early.positives(32).trials, 50);
  EXPECT_EQ(early.negatives(32, {}).errors, late.negatives(32, {}).errors);
  EXPECT_DOUBLE_EQ(early.negatives(32, {}).high(), late.negatives(32, {}).high());
  EXPECT_TRUE(early.plausible());
}

// Without an error the bound is about keys: three keys in a thousand may err, unseen.
TEST(KeySums, WithoutErrorsTheBoundIsAboutKeys) {
  Sample sample;
  sample.add(key_of(50, 0), 1000);
  const Rate rate = sample.negatives(16);
  EXPECT_FALSE(rate.value());
  EXPECT_NEAR(rate.high(), 3.8415 / 1003.8415, 1e-6);
  const Rate distinct = sample.sums.positives(16);
  EXPECT_FALSE(distinct.value());
  EXPECT_NEAR(distinct.high(), 3.8415 / 1003.8415, 1e-6);
  EXPECT_EQ(KeySums().positives(16).high(), 1);
  EXPECT_EQ(KeySums().negatives(16, {}).high(), 1);
}

TEST(KeySums, FewErringKeysHaveStudentsQuantile) {
  EXPECT_NEAR(student95(4), 2.776, 0.01);
  EXPECT_NEAR(student95(9), 2.262, 0.002);
  EXPECT_NEAR(student95(1e9), kNormal95, 1e-6);
}

}  // namespace
}  // namespace sluice
