// The planner against what its plans turn out to be: what is foretold of a filter is what it says
// of itself when it is made; a plan for what a plan promises is that plan; a request that is called
// the nearest can be met. Seeds are fixed. In plan_error_test.cpp plans are measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/random.hpp"
#include "sluice/plan/plan.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/plan_requests.hpp"

namespace sluice {
namespace {

using testing_support::last;
using testing_support::random_request;
using testing_support::seconds;
using testing_support::text_of;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::string name_of(const Plan& plan) {
  return plan.filter.substr(0, plan.filter.find(','));
}

// --- forecasts ----------------------------------------------------------------------------------

// What is foretold of a filter is what its own statistics say when it is made.
TEST(PlanPromiseError, ForetellsWhatIsMade) {
  const std::vector<PlanRequest> requests = {
      {.expect = 1},
      {.expect = 12'345, .fpr = 1e-4, .fnr = 0.5},
      {.expect = 300'000, .fpr = 1e-3},
      {.window = last(1), .fpr = 1e-3},
      {.window = last(777), .fpr = 1e-2},
      {.window = last(100'000), .fpr = 1e-5},
      {.window = last(50'000), .anchor = Anchor::refreshed, .fpr = 0.2},
      {.window = seconds(60), .rate = 1000, .fpr = 1e-4},
      {.window = last(100'000), .fpr = 1e-4, .slack = 0.03},
      {.window = WindowSpec{WindowSpec::Kind::landmark, 3'600'000'000'000}, .rate = 10}};
  for (const PlanRequest& request : requests)
    for (const Plan& plan : sluice::plan(request).candidates) {
      if (!plan.feasible()) continue;
      SCOPED_TRACE(plan.filter + "," + plan.settings);
      const AnyFilter made = plan.make();
      const FilterStats stats = made.stats();
      EXPECT_LE(stats.bytes, plan.bytes);
      EXPECT_LE(stats.planned_fpr, std::max(plan.fpr, plan.target_fpr) * (1 + 1e-9));
      const Window* window = made.window();
      ASSERT_EQ(window != nullptr, plan.window.has_value());
      if (window == nullptr) continue;
      EXPECT_LE(window->slack(), plan.slack * (1 + 1e-9));
      EXPECT_GE(window->slack(), plan.slack * (1 - 1e-5));
      EXPECT_NEAR(window->npws(), plan.npws, 1e-5 * plan.npws);
    }
}

// --- inverse ------------------------------------------------------------------------------------

TEST(PlanPromiseError, OfWhatAPlanPromisesIsThatPlan) {
  SplitMix64 random(20'251'115);
  const int count = testing_support::full_counts() ? 150 : 6;
  int planned = 0, impossible = 0;
  for (int i = 0; i < count; ++i) {
    const PlanRequest request = random_request(random);
    SCOPED_TRACE(text_of(request));
    const Planning first = plan(request, PlanScope::choice);
    if (!first.chosen) {
      ++impossible;
      continue;
    }
    ++planned;
    const PlanRequest promise = promised(first);
    SCOPED_TRACE(text_of(promise));
    const Planning second = plan(promise);
    ASSERT_TRUE(second.chosen) << second.reason;
    EXPECT_EQ(second.choice().settings, first.choice().settings);
    EXPECT_EQ(name_of(second.choice()), name_of(first.choice()));
    EXPECT_EQ(second.choice().bytes, first.choice().bytes);
    EXPECT_EQ(second.choice().fpr, first.choice().fpr);
    // And the short way chooses as the long one does.
    const Planning third = plan(promise, PlanScope::choice);
    ASSERT_TRUE(third.chosen);
    EXPECT_EQ(third.choice().settings, second.choice().settings);
  }
  EXPECT_GT(planned, count / 2);
  EXPECT_TRUE(!testing_support::full_counts() || impossible > 0);
}

// --- the nearest --------------------------------------------------------------------------------

TEST(PlanPromiseError, NamesTheNearestThatCanBeHad) {
  const PlanRequest requests[] = {
      {.window = last(1'000'000), .fpr = 1e-6, .memory = 4 * kMiB},
      {.expect = 1'000'000, .fpr = 1e-6, .memory = 3 * kMiB},
      {.window = last(1'000'000), .memory = kMiB},
      {.window = last(10'000), .fpr = 1e-6, .slack = 1e-5, .lines = 2},
      {.window = seconds(600), .rate = 50'000, .fpr = 1e-6, .memory = 64 * kMiB},
      // What comes into question with a limit is not what does without.
      {.window = seconds(3600), .expect = 1'000'000, .memory = kMiB / 2},
      {.window = seconds(600), .expect = 1'000'000, .fpr = 1e-3, .memory = kMiB},
      {.window = last(std::uint64_t{1} << 40),
       .fpr = 1e-250,
       .slack = 0.1,
       .lines = 2,
       .memory = 16 * 1024 * kMiB},
  };
  const std::size_t count = testing_support::full_counts() ? std::size(requests) : 2;
  for (const PlanRequest& request : std::span(requests).first(count)) {
    SCOPED_TRACE(text_of(request));
    const Planning planning = plan(request);
    EXPECT_FALSE(planning.chosen);
    EXPECT_FALSE(planning.nearest.empty());
    for (const NearRequest& near : planning.nearest) {
      EXPECT_TRUE(plan(near.request, PlanScope::choice).chosen) << near.field << near.value;
      EXPECT_NE(planning.reason.find("`" + near.field + "` " + near.value), std::string::npos)
          << planning.reason;
    }
  }
}

TEST(PlanPromiseError, GivesUpNoMoreThanItMust) {
  const PlanRequest request{.window = last(1'000'000), .fpr = 1e-6, .memory = 4 * kMiB};
  const Planning planning = plan(request);
  const auto near = [&](std::string_view field) {
    return std::ranges::find(planning.nearest, field, &NearRequest::field)->request;
  };
  // A hundredth less would not do; sizes are told in quarters.
  PlanRequest less = near("memory");
  *less.memory -= kMiB / 2;
  EXPECT_FALSE(plan(less, PlanScope::choice).chosen);
  less = near("fpr");
  *less.fpr *= 0.99;
  EXPECT_FALSE(plan(less, PlanScope::choice).chosen);
  less = near("window");
  less.window->size += less.window->size / 100 + 1;
  EXPECT_FALSE(plan(less, PlanScope::choice).chosen);
}

}  // namespace
}  // namespace sluice
