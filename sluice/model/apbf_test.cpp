// The tables of Shtul, Baquero & Almeida (2020) as printed, against the model.
#include "sluice/model/apbf.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/counts.hpp"
#include "tests/support/shtul_tables.hpp"

namespace sluice::model {
namespace {

// Holds when `value`, rounded or cut off to the printed number of decimals, is `printed`. The
// tables do both.
void expect_printed(double value, double printed, int decimals, const char* what) {
  const double step = std::pow(10.0, -decimals);
  EXPECT_LT(std::abs(value - printed), step * 1.0001) << what;
}

using testing_support::count_of;
using testing_support::kTable2;
using testing_support::kTable3;
using testing_support::kTable4;
using testing_support::Row2;
using testing_support::Row3;
using testing_support::Row4;

TEST(ApbfModel, Table2) {
  for (const Row2& row : kTable2) {
    SCOPED_TRACE(testing::Message() << row.k << ',' << row.l << ' ' << row.misprint);
    const std::vector<double> matches = segment_matches(row.k, row.l, Fills::linear);
    const double fpr = run_of_matches(matches, row.k);
    const QueryAccesses accesses = query_accesses(matches, row.k);
    expect_printed(fpr, row.fpr, 6, "fpr");
    expect_printed(apbf_efficiency(row.k, row.l, fpr), row.efficiency, 2, "efficiency");
    expect_printed(accesses.window, row.window, 2, "window");
    expect_printed(accesses.positive, row.positive, 2, "positive");
    expect_printed(accesses.negative, row.negative, 2, "negative");
    expect_printed(apbf_npws(row.k, row.l), row.npws, 2, "npws");
  }
}

TEST(ApbfModel, Table3) {
  for (const Row3& row : kTable3) {
    SCOPED_TRACE(testing::Message()
                 << row.k << ',' << row.l << ',' << row.block << ',' << row.bits);
    const BlockShape shape{row.block, row.bits};
    const std::vector<double> matches = block_matches(row.k, row.l, shape);
    const QueryAccesses accesses = query_accesses(matches, row.k);
    EXPECT_NEAR(apbbf_fpr(row.k, row.l, shape), row.fpr, 0.51e-7);
    EXPECT_NEAR(apbf_fpr(row.k * row.bits, row.l * row.bits, Fills::linear), row.slices_fpr,
                0.51e-7);
    EXPECT_NEAR(block_capacity(shape) / (shape.lane() * std::log(2.0)), row.capacity, 0.00051);
    EXPECT_NEAR(accesses.window, row.window, 0.0051);
    EXPECT_NEAR(accesses.positive, row.positive, 0.0051);
    EXPECT_NEAR(accesses.negative, row.negative, 0.0051);
    EXPECT_NEAR(apbf_npws(row.k, row.l, matches.back()), row.npws, 0.0051);
  }
}

TEST(ApbfModel, Table4) {
  for (const Row4& row : kTable4)
    EXPECT_NEAR(apbbf_bits(row.k, row.l, {row.block, row.bits}), row.bits_per_key, 0.051);
}

// True fills lie above the printed, linear ones, and so does the error.
TEST(ApbfModel, ExactFillsErrMore) {
  EXPECT_NEAR(apbf_fpr(4, 3), 0.107402, 1e-6);
  EXPECT_NEAR(apbf_fpr(7, 5), 0.0128316, 1e-7);
  EXPECT_NEAR(apbf_fpr(10, 7), 0.00147355, 1e-8);
  EXPECT_NEAR(apbf_fpr(14, 11), 0.000119642, 1e-9);
  for (const Row2& row : kTable2)
    EXPECT_GT(apbf_fpr(row.k, row.l), apbf_fpr(row.k, row.l, Fills::linear));
}

TEST(ApbfModel, RunsByHand) {
  const double halves[] = {0.5, 0.5, 0.5};
  EXPECT_DOUBLE_EQ(run_of_matches(halves, 1), 7.0 / 8);
  EXPECT_DOUBLE_EQ(run_of_matches(halves, 2), 3.0 / 8);
  EXPECT_DOUBLE_EQ(run_of_matches(halves, 3), 1.0 / 8);
  EXPECT_DOUBLE_EQ(apbf_slack(3, 6), 0.5);
}

TEST(ApbfModel, SegmentsHoldTheGenerationsThatSetThem) {
  const double generations[] = {1, 2, 4, 8, 16};
  EXPECT_EQ(keys_in_segments(generations, 2), (std::vector<double>{1, 3, 6, 12, 24}));
  EXPECT_EQ(keys_in_segments(generations, 1), (std::vector<double>{1, 2, 4, 8, 16}));
}

// One segment per key: a column is a block, and there is nothing to correlate. With more, crowding
// costs.
TEST(ApbfModel, ColumnsErrLikeBlocksOrMore) {
  const BlockShape shape{512, 4};
  const double one[] = {5000};
  EXPECT_NEAR(column_fpr_at(one, 1, shape, 50) / block_match(shape, 5000, 50), 1, 0.01);
  EXPECT_GT(column_fpr(2, 5, {512, 8}), 1.2 * apbbf_fpr(2, 5, {512, 8}));
  EXPECT_NEAR(column_fpr(5, 11, {32, 2}), 0.0147, 0.0002);
  const double nothing[] = {0, 0, 0};
  EXPECT_EQ(column_fpr_at(nothing, 2, shape, 7), 0);
}

// The table that the planner reads against plain samples. A sample of 65536 has a standard error of
// 2 % at 10⁻⁴ and more below: 8 % are four of them, and smaller errors are left out.
TEST(ApbfModel, TabledColumnsAreWhatSamplesSay) {
  const auto compare = [](unsigned k, unsigned l, const BlockShape& shape) {
    const double tabled = column_fpr(k, l, shape);
    if (tabled < 1e-4) return;
    EXPECT_NEAR(tabled / sampled_column_fpr(k, l, shape), 1, tabled < 1e-2 ? 0.08 : 0.02)
        << k << ' ' << l << ' ' << shape.bits;
  };
  for (const unsigned bits : {4u, 8u})
    for (unsigned k = 1; k <= 4; k += count_of(3u, 1u, 1u))
      for (const unsigned l : {0u, 1u, k, 24u, count_of(40u, 128u, 128u)})
        compare(k, l, {512, bits});
  for (const unsigned segments : {8u, 16u, 32u})
    for (unsigned k = 1; k < segments; k += count_of(10u, 1u, 1u))
      compare(k, segments - k, {512 / segments, 32 / segments});
}

// Columns drawn where they are crowded, all generations full, against the table. Their standard error
// is 2 %, and 4 % where a key has many segments in a line: 3 of them.
TEST(ApbfModel, CrowdedColumnsAreWhatTheTableSays) {
  constexpr double kColumns = 1e5;  // as good as endless
  const auto compare = [](unsigned k, unsigned l, const BlockShape& shape) {
    const double tabled = column_fpr(k, l, shape);
    const std::vector<double> full(k + l, block_capacity(shape) / k * kColumns);
    EXPECT_NEAR(column_fpr_at(full, k, shape, kColumns) / tabled, 1, shape.bits < 4 ? 0.12 : 0.06)
        << k << ' ' << l << ' ' << shape.bits;
  };
  for (const unsigned bits : {4u, 8u})
    for (unsigned k = 1; k <= 7; k += count_of(3u, 2u, 1u))
      for (const unsigned l : {3u, 12u, 24u}) compare(k, l, {512, bits});
  for (const unsigned segments : {8u, 16u, 32u})
    for (unsigned k = 2; k < segments; k += segments / 4)
      compare(k, segments - k, {512 / segments, 32 / segments});
}

// One column of one generation: the keys of a block are known, and so is its error.
TEST(ApbfModel, FewBlocksFillMoreEvenly) {
  const BlockShape shape{512, 8};
  EXPECT_NEAR(block_match(shape, 44, 1), std::pow(1 - std::pow(63.0 / 64, 44), 8), 1e-12);
  EXPECT_LT(block_match(shape, 4 * 44, 4), 0.97 * block_match(shape, 44));
  EXPECT_NEAR(block_match(shape, 4000 * 44, 4000) / block_match(shape, 44), 1, 1e-3);
  const double one[] = {44};
  EXPECT_NEAR(column_fpr_at(one, 1, shape, 1), block_match(shape, 44, 1), 1e-9);
}

// Small errors, where samples say nothing: more than independent segments' and rising with l.
TEST(ApbfModel, TabledColumnsAreInOrder) {
  for (const unsigned bits : {4u, 8u})
    for (unsigned k = 2; k <= 8; ++k)
      for (unsigned l = 0; l < 128; ++l) {
        const BlockShape shape{512, bits};
        EXPECT_GT(column_fpr(k, l, shape), apbbf_fpr(k, l, shape)) << k << ' ' << l;
        EXPECT_LT(column_fpr(k, l, shape), column_fpr(k, l + 1, shape));
        EXPECT_LT(column_fpr(k, l, shape), column_fpr(k - 1, l, shape));
      }
}

}  // namespace
}  // namespace sluice::model
