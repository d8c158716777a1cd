// Planned windows of time under random arrivals at the planned rate: every filter that a plan calls
// feasible, not only the chosen one, keeps to its bytes, its slack and its error, and adds no stage.
// Arrivals are Poisson, or come in bursts that are as fast as the plan and no faster. Seeds are fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/random.hpp"
#include "sluice/plan/plan.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/plan_requests.hpp"

namespace sluice {
namespace {

using testing_support::count_of;
using testing_support::random_request;
using testing_support::seconds;
using testing_support::text_of;

// With `bursty`, pauses of up to half a window between bursts of up to half a window.
class Arrivals {
 public:
  Arrivals(std::uint64_t seed, double rate, double window, bool bursty)
      : random_(seed), rate_(rate), window_(window), bursty_(bursty) {}

  Nanoseconds next() {
    if (bursty_ && now_ >= pause_) {
      now_ += window_ / 2 * random_.next_unit();
      pause_ = now_ + window_ / 2 * random_.next_unit();
    }
    now_ += -std::log(1 - random_.next_unit()) / rate_;
    return static_cast<Nanoseconds>((1.7e9 + now_) * 1e9);
  }

 private:
  SplitMix64 random_;
  double rate_, window_;
  bool bursty_;
  double now_ = 0, pause_ = 0;
};

// Every key comes once, and what is held back is lost.
void expect_promise(const Plan& plan, Arrivals arrivals, std::uint64_t seed, std::size_t records) {
  SplitMix64 random(seed);
  AnyFilter filter = plan.make();
  Window& window = *filter.window();
  std::uint64_t bytes = 0, lost = 0;
  double slack = 0;
  for (std::size_t i = 0; i < records; ++i) {
    const Digest digest{random.next(), random.next()};
    const Nanoseconds time = arrivals.next();
    Verdict verdict{};
    bool late = false;
    ASSERT_EQ(window.judge({&digest, 1}, {&time, 1}, {&verdict, 1}, {&late, 1}), 1u);
    lost += verdict == Verdict::duplicate;
    bytes = std::max(bytes, filter.bytes());
    slack = std::max(slack, window.slack());
  }
  EXPECT_EQ(window.growths(), 0u);
  EXPECT_LE(bytes, plan.bytes);
  EXPECT_LE(slack, plan.slack * (1 + 1e-5));
  // Five standard errors, and a few where none is expected.
  const double most = plan.fpr * static_cast<double>(records);
  EXPECT_LE(static_cast<double>(lost), most + 5 * std::sqrt(most) + 2);
}

TEST(PlannedArrivalsError, EveryFeasibleFilterKeepsItsPromise) {
  SplitMix64 random(11);
  for (int plans = 0; plans < count_of(8, 100);) {
    PlanRequest request = random_request(random);
    if (!request.window || !request.window->by_time() || request.fnr) continue;
    const double length = static_cast<double>(request.window->size) * 1e-9;
    const double keys = *request.rate * length;
    if (keys < 5 || keys > 20'000) continue;
    const Planning planning = plan(request);
    ++plans;
    for (const Plan& each : planning.candidates)
      for (const bool bursty : {false, true}) {
        if (!each.feasible()) continue;
        SCOPED_TRACE(text_of(request) + " " + each.filter + (bursty ? " bursty" : ""));
        const auto records = static_cast<std::size_t>(count_of(2, 6) * keys) + 1000;
        const std::uint64_t seed = random.next();
        expect_promise(each, Arrivals(seed, *request.rate, length, bursty), seed + 1, records);
      }
  }
}

// Generations of a few keys, which chance often doubles: these grew dozens of times.
TEST(PlannedArrivalsError, FewKeysPerGeneration) {
  for (const Plan& each :
       plan({.window = seconds(60), .rate = 5, .fpr = 1e-2, .slack = 0.3}).candidates) {
    if (!each.feasible()) continue;
    SCOPED_TRACE(each.filter);
    expect_promise(each, Arrivals(1, 5, 60, false), 2, count_of(10'000u, 100'000u));
  }
}

// Filters whose parts fill one by one, and keys that come evenly: the same room for chance as with a rate.
TEST(PlannedArrivalsError, ExpectedKeysInParts) {
  for (const char* const filter : {"apbf", "apbbf"})
    for (const std::uint64_t keys : {300, 20'000})
      for (const double fpr : {1e-2, 1e-4}) {
        SCOPED_TRACE(testing::Message() << filter << " " << keys << " " << fpr);
        const auto rate = static_cast<double>(keys) / 600;
        PlanRequest request{.window = seconds(600), .expect = keys, .fpr = fpr};
        const Plan plan = plan_named(filter, request);
        expect_promise(plan, Arrivals(keys, rate, 600, false), 3, (count_of(2u, 6u) + 1) * keys);
        request.expect.reset();
        request.rate = rate;
        EXPECT_EQ(plan.bytes, plan_named(filter, request).bytes);
      }
}

}  // namespace
}  // namespace sluice
