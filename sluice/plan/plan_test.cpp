#include "sluice/plan/plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/plan/sizing.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

WindowSpec last(std::uint64_t keys) {
  return {WindowSpec::Kind::count, keys};
}

WindowSpec seconds(std::uint64_t count) {
  return {WindowSpec::Kind::time, count * 1'000'000'000};
}

std::string name_of(const Plan& plan) {
  return plan.filter.substr(0, plan.filter.find(','));
}

void expect_finite(const Plan& plan) {
  for (const double value : {plan.bits_per_key, plan.fpr, plan.fnr, plan.slack, plan.npws,
                             plan.lines, plan.over_bound.value_or(0)})
    EXPECT_TRUE(std::isfinite(value) && value >= 0) << plan.filter;
}

// --- what the defaults are ----------------------------------------------------------------------

TEST(Plan, TakesTheDefaultWhereItIsFeasible) {
  EXPECT_EQ(plan({}).choice().filter, "growing");
  EXPECT_EQ(plan({.expect = 1'000'000}).choice().filter, "bloom");
  EXPECT_EQ(plan({.window = last(1'000'000)}).choice().filter, "cohort");
  EXPECT_EQ(plan({.window = seconds(600), .rate = 50'000}).choice().filter, "cohort");
  EXPECT_EQ(plan({.window = WindowSpec{WindowSpec::Kind::landmark, 3'600'000'000'000}, .rate = 100})
                .choice()
                .filter,
            "cohort");
}

TEST(Plan, TakesAnotherWhereTheDefaultIsNot) {
  EXPECT_EQ(plan({.window = last(100'000), .fpr = 0.05, .lines = 1}).choice().filter,
            "apbbf,layout=line");
  EXPECT_EQ(plan({.expect = 1'000'000, .fpr = 1e-9, .lines = 1}).choice().filter,
            "bloom,layout=blocked");
  // A classical filter takes three quarters of a blocked one's memory at 10⁻⁶.
  EXPECT_EQ(plan({.expect = 8'000'000, .fpr = 1e-6, .memory = 32 * kMiB}).choice().filter,
            "bloom,layout=classic");
  EXPECT_EQ(name_of(plan({.window = last(10'000), .slack = 1e-3}).choice()), "timing");
}

// A plan's description of its table must give that table, even if the error alone would choose
// another layout.
TEST(Plan, CanBeMadeWhateverTheKeysAndTheError) {
  for (const std::uint64_t keys : {10u, 74u, 100u, 1000u, 1147u, 5000u, 49'507u, 100'000u}) {
    for (const double fpr : {0.1, 1e-3, 1e-6, 2.15e-7, 1e-7, 6.677e-8, 5e-8, 4e-8, 1e-8, 1e-12}) {
      SCOPED_TRACE(fmt::format("{} keys, {}", keys, fpr));
      const Planning planning = plan({.expect = keys, .fpr = fpr}, PlanScope::all);
      ASSERT_TRUE(planning.chosen);
      for (const Plan& candidate : planning.candidates)
        if (candidate.feasible() && candidate.bytes < kMiB) {
          EXPECT_LE(candidate.make().bytes(), candidate.bytes);
        }
    }
  }
}

TEST(Plan, ErrsAsLittleAsFitsWhereOnlyMemoryIsGiven) {
  double fpr = 1;
  for (const std::uint64_t memory : {2 * kMiB, 4 * kMiB, 8 * kMiB}) {
    const Planning planning = plan({.expect = 1'000'000, .memory = memory});
    ASSERT_TRUE(planning.chosen);
    EXPECT_LT(planning.choice().fpr, fpr);
    EXPECT_LE(planning.choice().bytes, memory);
    fpr = planning.choice().fpr;
    for (const Plan& other : planning.candidates)
      EXPECT_TRUE(!other.feasible() || other.fpr >= fpr || fpr <= 1e-6) << other.filter;
  }
  // Below the standard error the default is good enough: it keeps to its memory in any case.
  EXPECT_EQ(plan({.expect = 1000, .memory = 64 * kMiB}).choice().filter, "bloom");
  EXPECT_EQ(plan({.window = last(1'000'000), .memory = 16 * kMiB}).choice().filter, "cohort");
}

// A window of time grows: what its memory leaves beyond the standard error is room for more keys.
TEST(Plan, AWindowOfTimeDoesNotSpendItsRoomOnAnErrorThatNobodyAskedFor) {
  for (const PlanRequest& request :
       {PlanRequest{.window = seconds(600), .expect = 1000, .memory = 2 * kMiB},
        PlanRequest{.window = seconds(600), .rate = 2.0, .memory = 2 * kMiB},
        PlanRequest{.window = WindowSpec{WindowSpec::Kind::landmark, 3'600'000'000'000},
        .expect = 1000,
        .memory = 2 * kMiB}})
    for (const PlanScope scope : {PlanScope::all, PlanScope::choice}) {
      const Plan choice = plan(request, scope).choice();
      EXPECT_EQ(choice.filter, "cohort");
      EXPECT_EQ(choice.target_fpr, 1e-6);
    }
  // Where that does not fit, it is the lowest that does.
  const Plan tight = plan({.window = seconds(600), .expect = 500'000, .memory = 2 * kMiB}).choice();
  EXPECT_GT(tight.fpr, 1e-6);
  EXPECT_LE(tight.fpr, 0.01);
  EXPECT_GT(static_cast<double>(tight.bytes), 0.8 * 2 * kMiB);
}

TEST(Plan, MoreThanOneInAHundredIsLostOnlyIfThatIsSaid) {
  for (const PlanRequest& request :
       {PlanRequest{.expect = 100'000, .memory = 1 << 16},
        PlanRequest{.window = last(100'000), .memory = 240'000},
        PlanRequest{.window = seconds(600), .expect = 100'000, .memory = 350'000}})
    for (const PlanScope scope : {PlanScope::all, PlanScope::choice}) {
      const Planning none = plan(request, scope);
      ASSERT_FALSE(none.chosen);
      EXPECT_NE(none.reason.find("has to be asked for with `fpr`"), std::string::npos)
          << none.reason;
      EXPECT_GE(none.nearest.size(), 3u) << none.reason;
      for (const NearRequest& near : none.nearest) {
        const Planning met = plan(near.request, scope);
        ASSERT_TRUE(met.chosen) << near.field << " " << near.value;
        EXPECT_EQ(met.choice().fpr > 0.01, near.field == "fpr") << near.value;
      }
    }
}

// --- memory alone -------------------------------------------------------------------------------

TEST(Plan, KeepsWithinMemoryAlone) {
  for (const std::uint64_t memory : {14 * kMiB, 64 * kMiB, 1000 * kMiB})
    for (const double fpr : {1e-9, 1e-6, 1e-4, 1e-2, 0.05, 0.1, 0.3}) {
      const Planning planning =
          plan({.fpr = fpr, .memory = memory, .beside = kProcessBytes}, PlanScope::choice);
      const Plan& choice = planning.choice();
      EXPECT_LE(choice.bytes + kProcessBytes, memory);
      // A hundredth goes to a readable number of keys, the rest to whole buckets.
      EXPECT_GE(static_cast<double>(choice.bytes),
                0.97 * static_cast<double>(memory - kProcessBytes));
      const FilterStats stats = choice.make().stats();
      // The plan is of what grows with the keys: without the objects themselves.
      EXPECT_LE(stats.bytes, choice.bytes);
      EXPECT_LE(std::max(stats.planned_fpr, stats.predicted_fpr), fpr * (1 + 1e-9));
    }
}

// Bits hold more keys at random than slots hold for sure only where large errors are allowed.
TEST(Plan, ForgetsAtRandomWhereThatReachesFurther) {
  const auto at = [](double fpr) {
    return plan({.fpr = fpr, .memory = 64 * kMiB}, PlanScope::choice).choice();
  };
  for (const double fpr : {1e-9, 1e-6, 1e-3, 0.02}) EXPECT_EQ(at(fpr).filter, "cohort") << fpr;
  for (const double fpr : {0.1, 0.2, 0.4}) EXPECT_FALSE(at(fpr).window) << fpr;
}

TEST(Plan, RemembersMoreInMoreMemory) {
  std::uint64_t before = 0;
  for (std::uint64_t memory = 2 * kMiB; memory < 4000 * kMiB; memory *= 2) {
    const std::uint64_t holds = plan({.memory = memory}, PlanScope::choice).choice().holds;
    EXPECT_GT(holds, before);
    before = holds;
  }
}

// --- nonsense -----------------------------------------------------------------------------------

TEST(Plan, RefusesWhatMakesNoSense) {
  const PlanRequest requests[] = {
      {.rate = 10},
      {.window = last(10), .rate = 10},
      {.window = last(10), .expect = 10},
      {.window = seconds(10), .rate = 10, .expect = 10},
      {.window = seconds(10), .memory = 64 * kMiB},
      {.window = last(0)},
      {.expect = 0},
      {.expect = 10, .slack = 0.1},
      {.expect = 10, .fpr = 0.0},
      {.expect = 10, .fpr = 1.0},
      {.expect = 10, .fpr = std::nan("")},
      {.expect = 5, .fpr = 5e-324},
      {.window = last(1'000'000), .fpr = 1e-307},
      {.window = seconds(600), .fpr = 1e-307},
      {.fpr = 1e-307, .memory = 64 * kMiB},
      {.expect = 264, .fpr = 0.9999999999999999},
      {.window = last(10), .npws = 5e-324},
      {.expect = 10, .lines = 0.0},
      {.lines = 0.99, .memory = 64 * kMiB},
      {.fnr = 0.1},
      {.memory = 1000},
      {.window = WindowSpec{static_cast<WindowSpec::Kind>(13), 5}},
      {.window = WindowSpec{WindowSpec::Kind::landmark, kLongestWindow + 1}},
      {.memory = kMostMemory + 1},
      {.window = seconds(1'000'000'000), .rate = 1e9},
  };
  for (const PlanRequest& request : requests) EXPECT_THROW(plan(request), BadParameters);
}

// At both ends of the range there is a plan, and it errs no more than was asked for.
TEST(Plan, TheEndsOfTheRangeCanBePlanned) {
  for (const double fpr : {1e-300, 2e-300, 0.999999})
    for (PlanRequest request :
         {PlanRequest{.window = last(1'000'000)}, PlanRequest{.window = seconds(600)},
          PlanRequest{.window = seconds(600), .rate = 5}, PlanRequest{.expect = 5},
          PlanRequest{.expect = 264}, PlanRequest{.expect = 1'000'000}, PlanRequest{}}) {
      request.fpr = fpr;
      const Planning planning = plan(request);
      ASSERT_TRUE(planning.chosen) << planning.reason;
      EXPECT_LE(planning.choice().fpr, fpr) << planning.choice().filter;
      if (planning.choice().bytes < 64 * kMiB) {
        EXPECT_GT(planning.choice().make().bytes(), 0u);
      }
    }
}

TEST(Plan, SaysThatNothingForgetsSoLittle) {
  const PlanRequest requests[] = {
      {.window = last(68'432'244'793), .fnr = 1e-8, .npws = 1e-300},
      {.window = last(1'000'000'000), .fnr = 1e-9, .slack = 1e-300},
      {.window = WindowSpec{WindowSpec::Kind::time, std::uint64_t{1} << 61},
       .anchor = Anchor::refreshed,
       .rate = 1.25,
       .fnr = 6.5e-6,
       .npws = 8e-193},
  };
  for (const PlanRequest& request : requests) EXPECT_FALSE(plan(request).chosen);
}

// What is listed as feasible holds as many keys, and lets as few repeats through, as was asked for.
TEST(Plan, NothingIsFeasibleThatHoldsLess) {
  for (const std::uint64_t keys : {std::uint64_t{100'000'000'000}, ~std::uint64_t{0}})
    for (const Plan& candidate : plan({.expect = keys}).candidates)
      EXPECT_TRUE(!candidate.feasible() || candidate.holds >= keys) << candidate.filter;
  for (const Plan& candidate : plan({.fnr = 0.05, .memory = 64 * kMiB}).candidates)
    EXPECT_TRUE(!candidate.feasible() || candidate.fnr <= 0.05) << candidate.filter;
}

// The table that a plan speaks of is the one that it makes, however small, and it errs as promised.
TEST(Plan, WhatForgetsAtRandomIsMadeAsPlanned) {
  for (const std::uint64_t keys : {1u, 4u, 30u, 1000u})
    for (const double fpr : {0.1, 1.87e-4, 1e-9})
      for (const double fnr : {0.001, 0.134, 0.6})
        for (const Plan& candidate :
             plan({.window = last(keys), .fpr = fpr, .fnr = fnr, .slack = 1e-300}).candidates) {
          if (!candidate.feasible() || candidate.window) continue;
          SCOPED_TRACE(fmt::format("{} of {} keys, {}, {}", candidate.filter, keys, fpr, fnr));
          EXPECT_EQ(candidate.make().bytes(), candidate.bytes);
          EXPECT_LE(candidate.fnr, fnr);
          const Forecast made = forecast_filter(candidate.filter + "," + candidate.settings,
                                                {.keys = keys, .fpr = candidate.target_fpr});
          EXPECT_LE(made.fnr, fnr);
          EXPECT_LE(made.fpr, fpr * (1 + 1e-9));
        }
}

// A window that is cut finer for its slack is still made for the error that the plan names.
TEST(Plan, WindowsThatAreCutAreMadeAsPlanned) {
  const PlanRequest request{.window = WindowSpec{WindowSpec::Kind::time, 3'832'828'877},
                            .expect = 1,
                            .fpr = 0.312,
                            .npws = 0.0782};
  for (const Plan& candidate : plan(request).candidates) {
    if (!candidate.feasible() || !candidate.window) continue;
    EXPECT_EQ(Window::forecast(candidate.window_params()).bytes, candidate.bytes)
        << candidate.filter;
  }
}

// The planner knows from which error on eight probes are better than sixteen: so does the model.
TEST(Plan, BlockedFiltersHaveTheBetterNumberOfProbes) {
  for (const double fpr : {0.5, 0.01, 1e-3, 1.65e-4, 1.6456e-4, 1.6455e-4, 1.64e-4, 1e-5, 1e-9}) {
    const Forecast made = forecast_filter("bloom,layout=blocked", {.keys = 1000, .fpr = fpr});
    const bool eight =
        model::blocked_bloom_keys(1, 8, fpr) >= model::blocked_bloom_keys(1, 16, fpr);
    EXPECT_NE(made.settings.text().find(eight ? "probes=8" : "probes=16"), std::string::npos)
        << fpr;
  }
}

TEST(Plan, ProposesLines) {
  const Planning none = plan({.window = last(83), .npws = 0.19, .lines = 1.0});
  ASSERT_FALSE(none.chosen);
  const auto lines =
      std::ranges::find(none.nearest, "lines", [](const auto& near) { return near.field; });
  ASSERT_NE(lines, none.nearest.end());
  EXPECT_TRUE(plan(lines->request).chosen);
}

// What fills up part by part holds its keys only at an even pace, and a limit leaves it no way out.
TEST(Plan, WithMemoryAndNoRateKeysMayComeAtAnyPace) {
  const auto choice = [](PlanRequest request) { return plan(request).choice().filter; };
  const PlanRequest even{.window = seconds(600), .rate = 500.0, .memory = 1 << 20};
  const PlanRequest any{.window = seconds(600), .expect = 280'000, .memory = 1 << 20};
  EXPECT_EQ(choice(even).substr(0, 5), "apbbf");
  EXPECT_EQ(choice(any), "cohort");
  // What is promised can be asked for.
  const Planning lines = plan({.window = seconds(60), .expect = 387, .fpr = 0.05, .lines = 1.0});
  ASSERT_EQ(lines.choice().filter.substr(0, 5), "apbbf");
  EXPECT_EQ(plan(promised(lines)).choice().filter, lines.choice().filter);
}

// What a plan promises, and what it proposes instead, can be asked for.
TEST(Plan, PromisesAndProposalsCanBePlanned) {
  for (const std::uint64_t size : {std::uint64_t{12}, std::uint64_t{600'000'000'000}}) {
    const Planning first = plan({.window = WindowSpec{WindowSpec::Kind::time, size}});
    ASSERT_TRUE(first.chosen);
    const Planning again = plan(promised(first));
    ASSERT_TRUE(again.chosen);
    EXPECT_EQ(again.choice().filter, first.choice().filter);
    EXPECT_EQ(again.choice().bytes, first.choice().bytes);
  }
  for (const PlanRequest& request :
       {PlanRequest{}, PlanRequest{.window = last(17'592'186'044'416), .fpr = 0.9},
        PlanRequest{.window = seconds(168), .fpr = 0.999, .fnr = 0.999, .slack = 4.5e-6},
        PlanRequest{.window = last(100), .lines = 1.5}}) {
    const Planning first = plan(request);
    ASSERT_TRUE(first.chosen);
    EXPECT_EQ(plan(promised(first)).choice().filter, first.choice().filter);
    EXPECT_EQ(plan(promised(first)).choice().settings, first.choice().settings);
  }
  const Planning none = plan({.window = last(1),
                              .npws = 1e-50,
                              .memory = 9'000'000'000'000,
                              .beside = std::uint64_t{2} << 20});
  for (const NearRequest& near : none.nearest) EXPECT_TRUE(plan(near.request).chosen) << near.value;
}

// Where nearly all that is new is lost, nothing is delivered and nothing ages.
TEST(Plan, KeepsWindowsOfDeliveriesGoing) {
  for (const double fpr : {0.2, 0.5, 0.9, 0.99}) {
    for (const Plan& plan : sluice::plan({.window = last(10'000), .fpr = fpr}).candidates) {
      EXPECT_TRUE(!plan.feasible() || plan.fpr <= kMostDeliveredFpr) << plan.filter;
      expect_finite(plan);
    }
    for (const Plan& plan :
         sluice::plan({.window = last(10'000), .anchor = Anchor::refreshed, .fpr = fpr}).candidates)
      expect_finite(plan);
  }
}

TEST(Plan, SaysWhatItAssumed) {
  EXPECT_NE(plan({.window = seconds(600)}).assumed.find("`rate`"), std::string::npos);
  EXPECT_NE(plan({}).assumed.find("`expect`"), std::string::npos);
  EXPECT_TRUE(plan({.expect = 10}).assumed.empty());
}

TEST(Plan, RoundsToWhatIsPrinted) {
  using planning::ceil3, planning::floor3, planning::ceil6;
  EXPECT_EQ(floor3(1e-6), 1e-6);
  EXPECT_EQ(ceil3(1e-6), 1e-6);
  EXPECT_EQ(ceil3(2.1301e-7), 2.14e-7);
  EXPECT_EQ(floor3(0.12399), 0.123);
  EXPECT_EQ(ceil6(1.0 / 24), 0.0416667);
  EXPECT_EQ(ceil3(12.0), 12.0);
  for (int i = 0; i < planning::kShareIndices; i += 7) {
    const double share = planning::share_at(i);
    EXPECT_EQ(planning::index_of_share(share), i);
    EXPECT_EQ(floor3(share), share);
    EXPECT_EQ(ceil3(share), share);
  }
}

TEST(Plan, WithNothingChosenTheReasonIsThrown) {
  const Planning none = plan({.expect = 1'000'000, .fpr = 1e-9, .memory = 1000});
  ASSERT_FALSE(none.chosen);
  try {
    (void)none.choice();
    FAIL();
  } catch (const BadParameters& error) {
    EXPECT_EQ(error.what(), none.reason);
  }
}

TEST(Plan, SaysThatAnErrorWasLowered) {
  const Planning planning = plan({.window = last(1000), .fpr = 0.5});
  EXPECT_EQ(planning.choice().target_fpr, kMostDeliveredFpr);
  EXPECT_NE(planning.assumed.find("`fpr` 0.1"), std::string::npos) << planning.assumed;
  EXPECT_TRUE(plan({.window = last(1000), .fpr = 0.05}).assumed.empty());
}

}  // namespace
}  // namespace sluice
