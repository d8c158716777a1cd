// The experiments that take no time, and what the others are made of.
#include <gtest/gtest.h>

#include "repro/papers.hpp"
#include "repro/run.hpp"
#include "repro/shtul/cells.hpp"
#include "repro/shtul/fresh_keys.hpp"
#include "repro/shtul/rows_of_tables.hpp"

namespace sluice::repro::shtul {
namespace {

Wish wish_of(std::vector<std::string> only, double scale) {
  return {.papers = {"shtul"}, .only = std::move(only), .scale = scale};
}

TEST(ReproShtul, CellsOfTablesAreAsPrintedOrSayWhyNot) {
  const std::vector<Task> tasks = tasks_of(wish_of({"table1", "table4"}, 0.1));
  const std::vector<Done> done = run(tasks, 1, {});
  const Score score = score_of(done);
  EXPECT_EQ(score.unexplained, 0u);
  EXPECT_EQ(score.explained, 1u);  // double hashing
  const auto& lines = done[0].result.table->lines;
  EXPECT_EQ(lines.size(), 25u);
  EXPECT_EQ(lines[1][1], "5.77");
  EXPECT_EQ(lines[1][3].substr(0, 6), "5.7707");
}

TEST(ReproShtul, ACellThatIsNeitherIsOutside) {
  const Published published = Published::parse(published_csv("shtul"));
  Rows rows(published, true);
  Cells cells(rows, "table1");
  cells.add("0.1.bits", 5.77);
  cells.add("0.01.bits", 10.0989);
  cells.add("0.001.bits", 20);
  cells.finish();
  EXPECT_EQ(cells.as_printed(), 1u);
  ASSERT_EQ(rows.all().size(), 3u);  // what is as printed has no row of its own
  EXPECT_EQ(rows.all()[0].verdict, Row::Verdict::corrected);
  EXPECT_EQ(rows.all()[1].verdict, Row::Verdict::outside);
  EXPECT_EQ(rows.all()[2].verdict, Row::Verdict::outside);
  EXPECT_EQ(rows.all()[2].ours, "1 as printed, 1 as recomputed, 1 as neither");
}

TEST(ReproShtul, FillsAreReadOffTheSlicesYoungestFirst) {
  const ApbfParams params = apbf_of(3, 4, 6000, 2);
  for (const unsigned generations : {7u, 8u, 12u}) {
    FreshKeys<ApbfParams> stream(params, generations);
    stream.run(generations);
    const std::vector<double> fills = slice_fills(stream.filter(), generations - 1);
    const std::vector<double> model = model::segment_matches(3, 4, model::Fills::exact);
    ASSERT_EQ(fills.size(), 14u);
    for (std::size_t i = 0; i < fills.size(); ++i)
      EXPECT_NEAR(fills[i], model[i / 2], 0.03) << generations << ' ' << i;
  }
}

TEST(ReproShtul, FiltersHoldTheWindowTheyWereAskedFor) {
  for (const Cut& cut : kTable2) {
    ApbfParams params = apbf_of(cut.k, cut.l, 1000);
    EXPECT_GE(params.capacity, 1000 - cut.l);
    params.part_bits -= kernels::kPartUnitBits;  // one cache line less would not hold it
    EXPECT_LT(cut.l * params.generation_keys(), 1000u) << cut.k << ',' << cut.l;
  }
  for (const BlockCut& cut : kTable3)
    EXPECT_NEAR(static_cast<double>(apbbf_of(cut.k, cut.l, cut.block, cut.bits, 65536).capacity),
                65536, 300);
}

TEST(ReproShtul, TheSameSeedGivesTheSameResults) {
  const std::vector<Task> tasks = tasks_of(wish_of({"fig2", "fig4", "fig9"}, 0.02));
  EXPECT_EQ(page_of(run(tasks, 1, {}), false), page_of(run(tasks, 2, {}), false));
}

}  // namespace
}  // namespace sluice::repro::shtul
