#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/plan/plan.hpp"

namespace sluice {
namespace {

TEST(PlanCache, AnswersTheSameRequestWithTheSamePlan) {
  const PlanRequest request{.window = WindowSpec{WindowSpec::Kind::count, 4321}, .fpr = 1e-5};
  const auto first = planned(request);
  EXPECT_EQ(planned(request), first) << "planned again, or copied";
  EXPECT_EQ(first->choice().settings, plan(request).choice().settings);
  EXPECT_NE(planned(request, PlanScope::choice), first);
  PlanRequest other = request;
  other.anchor = Anchor::refreshed;
  EXPECT_NE(planned(other), first);
  EXPECT_EQ(planned(request), first);
}

TEST(PlanCache, IsBounded) {
  const auto first = planned({.expect = 1});
  const auto kept = planned({.expect = 2});
  for (std::uint64_t i = 0; i < kPlansKept - 1; ++i) {
    planned({.expect = 1000 + i});
    planned({.expect = 2});  // asked for again and again, so it stays
  }
  EXPECT_EQ(planned({.expect = 2}), kept);
  EXPECT_NE(planned({.expect = 1}), first) << "the oldest makes room";
}

// tests/integration/instructions.bats counts what this function takes.
[[gnu::noinline]] std::size_t count_plan_cache_hits(
    const std::vector<std::shared_ptr<const Planning>>& kept) {
  std::size_t hits = 0;
  for (const auto& each : kept) hits += planned(each->request) == each;
  return hits;
}

TEST(PlanCache, AllThatAreKeptAreFound) {
  std::vector<std::shared_ptr<const Planning>> kept;
  for (std::uint64_t i = 0; i < kPlansKept; ++i) kept.push_back(planned({.expect = 5000 + i}));
  EXPECT_EQ(count_plan_cache_hits(kept), kPlansKept);
}

TEST(PlanCache, RefusesNonsenseEveryTime) {
  for (int i = 0; i < 2; ++i) EXPECT_THROW(planned({.expect = 0}), BadParameters);
}

TEST(PlanCache, IsSharedByThreads) {
  std::array<std::array<std::shared_ptr<const Planning>, 60>, 4> seen;
  std::vector<std::thread> threads;
  for (auto& own : seen)
    threads.emplace_back([&own] {
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = planned({.expect = 77'000 + i % 3});
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& own : seen)
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(own[i]->request.expect, 77'000 + i % 3);
      EXPECT_EQ(own[i], seen[0][i % 3]) << "one plan for all, also for those who plan at once";
    }
}

}  // namespace
}  // namespace sluice
