#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "sluice/base/error.hpp"
#include "sluice/plan/plan.hpp"

namespace sluice {
namespace {

WindowSpec seconds(std::uint64_t count) {
  return {WindowSpec::Kind::time, count * 1'000'000'000};
}

std::string error_of(const char* filter, const PlanRequest& request) {
  try {
    plan_named(filter, request);
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "none";
}

void expect_same(const Plan& named, const Plan& planned) {
  EXPECT_EQ(named.filter_text(), planned.filter_text());
  EXPECT_EQ(named.settings, planned.settings);
  EXPECT_EQ(named.target_fpr, planned.target_fpr);
  EXPECT_EQ(named.keys, planned.keys);
  EXPECT_EQ(named.generations, planned.generations);
  EXPECT_EQ(named.bytes, planned.bytes);
}

// Small ones and uneven ones get room for chance; naming them is no reason to leave it out.
TEST(PlanNamed, HasTheSizeThatThePlannerGivesIt) {
  const WindowSpec hour{WindowSpec::Kind::landmark, 3'600'000'000'000};
  for (const PlanRequest& request :
       {PlanRequest{.window = seconds(10), .rate = 200.0, .fpr = 0.01},
        PlanRequest{.window = seconds(600), .expect = 500, .fpr = 1e-4},
        PlanRequest{.window = seconds(600)}, PlanRequest{.window = hour, .rate = 1.0},
        PlanRequest{.window = WindowSpec{WindowSpec::Kind::count, 300}, .fpr = 0.02, .slack = 0.05},
        PlanRequest{.expect = 100, .fpr = 0.01}, PlanRequest{.expect = 5000}})
    for (const Plan& planned : plan(request).candidates) {
      if (!planned.feasible()) continue;
      SCOPED_TRACE(fmt::format("{}, {}", planned.filter, planned.settings));
      expect_same(plan_named(planned.filter, request), planned);
    }
}

// What `sluice plan` prints: with the rate and the error of a plan a filter that is named is that plan; if the
// size of its table is given, with its keys.
TEST(PlanNamed, CanBeNamedByWhatAPlanSays) {
  const PlanRequest request{.window = seconds(60), .rate = 200.0 / 60, .fpr = 0.05};
  for (const Plan& planned : plan(request).candidates) {
    if (!planned.feasible()) continue;
    SCOPED_TRACE(planned.filter);
    PlanRequest again{.window = planned.window, .fpr = planned.asked_fpr};
    if (planned.table.empty())
      again.rate = request.rate;
    else
      again.expect = planned.keys;
    const Plan named = plan_named(planned.filter, again);
    EXPECT_EQ(named.settings, planned.settings);
    EXPECT_EQ(named.target_fpr, planned.target_fpr);
  }
}

TEST(PlanNamed, AnErrorAmongItsParametersIsThatOfTheRequest) {
  for (PlanRequest request :
       {PlanRequest{.window = WindowSpec{WindowSpec::Kind::count, 4000}},
        PlanRequest{.window = seconds(10), .rate = 50.0}, PlanRequest{.expect = 1000}}) {
    const char* const filter = request.window ? "cohort" : "bloom";
    const Plan within = plan_named(std::string(filter) + ",fpr=2%", request);
    request.fpr = 0.02;
    expect_same(within, plan_named(filter, request));
    EXPECT_EQ(within.filter, filter) << "the stages of a window share the error";
    expect_same(plan_named(std::string(filter) + ",fpr=0.02", request), within);
    request.fpr = 0.01;
    EXPECT_EQ(error_of((std::string(filter) + ",fpr=2%").c_str(), request),
              "`filter` says fpr=2% and `fpr` says 0.01: give one of them");
  }
  EXPECT_EQ(error_of("bloom,keys=10", {.expect = 1'234'567}),
            "`filter` says keys=10 and `expect` says 1234567: give one of them");
  EXPECT_NE(error_of("bloom,fpr=2", {}).find("fpr of filter 'bloom'"), std::string::npos);
}

TEST(PlanNamed, SizesThatAreGivenAreTakenAsTheyAre) {
  const PlanRequest window{.window = seconds(10), .rate = 200.0, .fpr = 0.01};
  for (const char* filter : {"apbf,keys=5000", "apbf,bytes=64KiB", "cohort,keys=5000"}) {
    const Plan named = plan_named(filter, window);
    EXPECT_EQ(named.filter_text(), filter);
    EXPECT_EQ(named.target_fpr, 0.01);
    EXPECT_EQ(named.generations, std::nullopt);
  }
  EXPECT_EQ(plan_named("bloom,bytes=128,probes=5", {.expect = 100}).filter_text(),
            "bloom,bytes=128,probes=5");
  // Other parameters say nothing of the size.
  const Plan probes = plan_named("bloom,layout=classic,probes=5", {.expect = 100, .fpr = 0.05});
  EXPECT_EQ(probes.filter_text().find("bloom,layout=classic,probes=5,bytes="), 0u)
      << probes.filter_text();
}

TEST(PlanNamed, WhatThePlannerWouldNotTryIsTakenAsItIs) {
  EXPECT_EQ(plan_named("bloom", {}).filter_text(), "bloom");
  EXPECT_EQ(plan_named("sharded,of=bloom,shards=3", {.expect = 2000}).keys, 2000u);
  EXPECT_EQ(plan_named("exact", {.window = seconds(10)}).filter, "exact-window");
  EXPECT_NE(error_of("no-such", {}).find("no-such"), std::string::npos);
}

}  // namespace
}  // namespace sluice
