#include "repro/row.hpp"

#include <gtest/gtest.h>

#include "sluice/base/error.hpp"

namespace sluice::repro {
namespace {

constexpr const char* kText =
    "id,where,what,printed,corrected,tolerance,why,basis\n"
    "a,Fig. 1,\"errors, in all\",0.02,,5%,chance,\n"
    "b,§3,slices,<20,,,too many,\n"
    "c,§3,slices,>30,,,too few,\n"
    "d,Table 2,bits,14300,143000,2%,misprint,\n"
    "e,Fig. 8,load,,0.063,0.01,,\n"
    "claim.f,§1,all of it,is better,,,it is not,\n"
    "g,Fig. 2,errors,0.3,,30%,,one digit\n";

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

TEST(Rows, ShowTheirToleranceWithTheReasonOfAWideOne) {
  const Published published = Published::parse(kText);
  Rows rows(published, true);
  rows.value("a", 0.02);
  rows.value("b", 19);
  rows.value("e", 0.06);
  rows.value("g", 0.31);
  rows.claim("claim.f", true, "0.1 against 0.2");
  rows.predicted("", "errors", 0.5, 0.51, {0.05, true}, "chance");
  rows.predicted("", "errors", 0.5, 0.51, {0.2, true}, "few events");
  const char* expected[] = {"± 5 %", "a bound",           "± 0.01", "± 30 %: one digit", "",
                            "± 5 %", "± 20 %: few events"};
  for (std::size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(rows.all()[i].tolerance, expected[i]) << i;
}

// The standard deviation of 0.02, 0.03 and 0.04 is 0.01.
TEST(Rows, HaveTheStandardErrorOfRunsWithOtherSeeds) {
  const Published published = Published::parse(kText);
  Rows first(published, true), second = first, third = first;
  const std::pair<Rows*, double> runs[] = {{&first, 0.02}, {&second, 0.03}, {&third, 0.04}};
  for (const auto& [rows, ours] : runs) {
    rows->value("a", ours);
    rows->value("b", 7);
    rows->claim("claim.f", true, "");
  }
  EXPECT_FALSE(first.all()[0].deviation);
  first.compare_with({&second, &third});
  EXPECT_NEAR(*first.all()[0].deviation, 0.01, 1e-12);
  EXPECT_EQ(*first.all()[1].deviation, 0);
  EXPECT_FALSE(first.all()[2].deviation);
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
  const std::string head = "id,where,what,printed,corrected,tolerance,why,basis\n";
  EXPECT_NO_THROW(Published::parse(head + "a,b,c,1,,5%,,\n"));
  EXPECT_THROW(Published::parse(head + "a,b,c\n"), BadParameters);
  EXPECT_THROW(Published::parse(head + "a,b,c,1,x,5%,,\n"), BadParameters);
  EXPECT_THROW(Published::parse(head + "a,b,c,1,,five,,\n"), BadParameters);
  EXPECT_THROW(Published::parse(head + "a,b,c,1,,5%,,\na,b,c,1,,5%,,\n"), BadParameters);
  // A wide tolerance needs a reason.
  EXPECT_THROW(Published::parse(head + "a,b,c,1,,11%,,\n"), BadParameters);
  EXPECT_NO_THROW(Published::parse(head + "a,b,c,1,,11%,,few events\n"));
  EXPECT_THROW(Published::parse(head)["nothing"], BadParameters);
}

}  // namespace
}  // namespace sluice::repro
