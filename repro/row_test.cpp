#include "repro/row.hpp"

#include <gtest/gtest.h>

#include "sluice/base/error.hpp"

namespace sluice::repro {
namespace {

constexpr const char* kText =
    "id,where,what,printed,corrected,tolerance,why\n"
    "a,Fig. 1,\"errors, in all\",0.02,,5%,chance\n"
    "b,§3,slices,<20,,,too many\n"
    "c,§3,slices,>30,,,too few\n"
    "d,Table 2,bits,14300,143000,2%,misprint\n"
    "e,Fig. 8,load,,0.063,0.01,\n"
    "claim.f,§1,all of it,is better,,,it is not\n";

TEST(Rows, JudgeByWhatIsPrinted) {
  const Published published = Published::parse(kText);
  Rows rows(published, true);
  rows.value("a", 0.0209);
  rows.value("a", 0.0211);
  rows.value("b", 19.9);
  rows.value("b", 20);
  rows.value("c", 30.2);
  rows.value("c", 30);
  using enum Row::Verdict;
  const Row::Verdict expected[] = {within, outside, within, outside, within, outside};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(rows.all()[i].verdict, expected[i]) << i;
    EXPECT_EQ(rows.all()[i].why.empty(), expected[i] == within) << i;
  }
  EXPECT_EQ(rows.all()[0].difference, "+4.5 %");
  EXPECT_EQ(rows.all()[0].what, "errors, in all");
}

TEST(Rows, JudgeByWhatItMustBe) {
  const Published published = Published::parse(kText);
  Rows rows(published, true);
  rows.value("d", 142000);
  rows.value("d", 14300);
  rows.value("d", 150000);
  rows.value("e", 0.07);
  rows.value("e", 0.08);
  using enum Row::Verdict;
  EXPECT_EQ(rows.all()[0].verdict, corrected);
  EXPECT_EQ(rows.all()[0].why, "misprint");
  EXPECT_EQ(rows.all()[0].paper, "14300 (143000)");
  EXPECT_EQ(rows.all()[1].verdict, within);
  EXPECT_EQ(rows.all()[2].verdict, outside);
  EXPECT_EQ(rows.all()[3].verdict, corrected);
  EXPECT_EQ(rows.all()[3].paper, "(0.063)");
  EXPECT_EQ(rows.all()[4].verdict, outside);
}

TEST(Rows, ClaimsAndPredictions) {
  const Published published = Published::parse(kText);
  Rows rows(published, true);
  rows.claim("claim.f", true, "0.1 against 0.2");
  rows.claim("claim.f", false, "0.3 against 0.2");
  rows.predicted("Fig. 9", "errors", 0.5, 0.51, {0.05, true}, "chance");
  rows.predicted("Fig. 9", "errors", 0.5, 0.6, {0.05, true}, "chance");
  rows.predicted("Fig. 9", "errors", 0.5, 0.6, {0.05, true});
  using enum Row::Verdict;
  EXPECT_EQ(rows.all()[0].verdict, within);
  EXPECT_EQ(rows.all()[1].verdict, outside);
  EXPECT_EQ(rows.all()[1].why, "it is not");
  EXPECT_EQ(rows.all()[2].verdict, predicted);
  EXPECT_EQ(rows.all()[2].paper, "[0.5]");
  EXPECT_EQ(rows.all()[3].verdict, outside);
  EXPECT_EQ(rows.all()[3].why, "chance");
  EXPECT_NE(rows.all()[4].why.find("--seed"), std::string::npos);
}

// The paper says nothing about other parameters; our models do.
TEST(Rows, AreNotJudgedByThePaperWithOtherParameters) {
  const Published published = Published::parse(kText);
  Rows rows(published, false);
  rows.value("a", 0.5);
  rows.predicted("", "errors", 0.5, 0.51, {0.05, true});
  rows.claim("claim.f", false, "0.3 against 0.2");
  rows.claim("claim.f", true, "0.1 against 0.2");
  EXPECT_EQ(rows.all()[1].verdict, Row::Verdict::predicted);
  for (const std::size_t i : {0u, 2u, 3u}) {
    EXPECT_EQ(rows.all()[i].verdict, Row::Verdict::shown) << i;
    EXPECT_EQ(rows.all()[i].difference, "") << i;
    EXPECT_NE(rows.all()[i].why.find("other parameters"), std::string::npos) << i;
  }
}

TEST(Rows, HaveTheRunsExcuse) {
  const Published published = Published::parse(kText);
  Rows rows(published, true, "small");
  rows.value("e", 0.5);
  rows.value("a", 0.5);
  EXPECT_EQ(rows.all()[0].why, "small");
  EXPECT_EQ(rows.all()[1].why, "small; otherwise: chance");
}

TEST(Published, RefusesLinesThatCannotBe) {
  const std::string head = "id,where,what,printed,corrected,tolerance,why\n";
  EXPECT_THROW(Published::parse(head + "a,b,c\n"), BadParameters);
  EXPECT_THROW(Published::parse(head + "a,b,c,1,x,5%,\n"), BadParameters);
  EXPECT_THROW(Published::parse(head + "a,b,c,1,,five,\n"), BadParameters);
  EXPECT_THROW(Published::parse(head + "a,b,c,1,,5%,\na,b,c,1,,5%,\n"), BadParameters);
  EXPECT_THROW(Published::parse(head)["nothing"], BadParameters);
}

}  // namespace
}  // namespace sluice::repro
