// Planned windows of time under arrivals that no plan foresaw: none stops, and none loses more than
// its statistics say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

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

constexpr std::size_t kBatch = 100;

// Arrivals in order, of a mean rate, or by turns twenty times as many and a tenth for a while.
class Arrivals {
 public:
  Arrivals(std::uint64_t seed, double rate, double window, bool bursty)
      : random_(seed), rate_(rate), window_(window), bursty_(bursty) {}

  Nanoseconds next() {
    if (bursty_ && now_ >= turn_) {
      burst_ = !burst_;
      turn_ = now_ + window_ * (burst_ ? 0.2 : 1.5) * random_.next_unit();
    }
    const double rate = !bursty_ ? rate_ : burst_ ? 20 * rate_ : rate_ / 10;
    now_ += -std::log(1 - random_.next_unit()) / rate;
    return static_cast<Nanoseconds>((1.7e9 + now_) * 1e9);
  }

 private:
  SplitMix64 random_;
  double rate_, window_;
  bool bursty_, burst_ = false;
  double now_ = 0, turn_ = 0;
};

struct Outcome {
  std::size_t judged = 0;
  double lost = 0, expected = 0;
  bool over_target = false;
};

// Every key comes once: a key that is held back is lost.
Outcome run(Window& window, Arrivals arrivals, std::uint64_t seed, std::size_t records) {
  SplitMix64 random(seed);
  std::vector<Digest> digests(kBatch);
  std::vector<Nanoseconds> times(kBatch);
  std::vector<Verdict> verdicts(kBatch);
  const auto late = std::make_unique<bool[]>(kBatch);
  Outcome outcome;
  double before = window.stats().predicted_fpr;
  while (outcome.judged < records) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      digests[i] = {random.next(), random.next()};
      times[i] = arrivals.next();
    }
    const std::size_t judged = window.judge(digests, times, verdicts, {late.get(), kBatch});
    outcome.judged += judged;
    if (judged < kBatch) break;
    const FilterStats stats = window.stats();
    outcome.lost += static_cast<double>(count_duplicates(verdicts));
    outcome.expected += kBatch * std::max(before, stats.predicted_fpr);
    outcome.over_target |= stats.over_target;
    before = stats.predicted_fpr;
  }
  return outcome;
}

void expect_whole(const PlanRequest& request, std::uint64_t seed, std::size_t records) {
  const Planning planning = plan(request, PlanScope::choice);
  if (!planning.chosen) return;
  for (const bool bursty : {false, true}) {
    SCOPED_TRACE(text_of(request) + " " + planning.choice().filter + (bursty ? " bursty" : ""));
    Window window = Window::make(planning.choice().window_params());
    const double length = static_cast<double>(request.window->size) * 1e-9;
    const Outcome outcome =
        run(window, Arrivals(seed, *request.rate, length, bursty), seed + 1, records);
    EXPECT_EQ(outcome.judged, records);
    // A plan leaves room for what Poisson arrivals bring beyond their mean.
    if (!bursty) {
      EXPECT_EQ(window.growths(), 0u);
    }
    // Five standard errors, and a few for those that are not expected at all.
    EXPECT_LE(outcome.lost, outcome.expected + 5 * std::sqrt(outcome.expected) + 4);
  }
}

TEST(PlannedGrowthError, NoneStopsOrLosesMoreThanItSays) {
  SplitMix64 random(14);
  for (int plans = 0; plans < 100;) {
    PlanRequest request = random_request(random);
    if (!request.window || !request.window->by_time() || request.fnr) continue;
    if (*request.rate * static_cast<double>(request.window->size) * 1e-9 > 20'000) continue;
    try {
      static_cast<void>(plan(request, PlanScope::choice));
    } catch (const Error&) {
      continue;  // what makes no sense is refused
    }
    expect_whole(request, random.next(), count_of(2'000, 50'000));
    ++plans;
  }
}

// Commands that used to end with exit 2 in mid-stream.
TEST(PlannedGrowthError, AFilterThatCannotReachItsShareGoesOn) {
  expect_whole({.window = seconds(60), .rate = 5, .fpr = 1e-4, .lines = 1}, 1, 20'000);
  const PlanRequest memory{.window = seconds(300),
                           .rate = 5,
                           .fpr = 4e-12,
                           .slack = 0.103,
                           .memory = std::uint64_t{2083} << 10};
  expect_whole(memory, 2, 30'000);
  Window window = Window::make(plan(memory).choice().window_params());
  EXPECT_TRUE(run(window, Arrivals(3, 5, 300, true), 4, 30'000).over_target);
}

}  // namespace
}  // namespace sluice
