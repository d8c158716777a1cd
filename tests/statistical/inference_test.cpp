// Inference over running windows and sets: whether a posterior of x is right x of the time, and
// what verdicts of least cost come to against the filter's own. Keys come uniformly, so that priors
// are known. Seeds are fixed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/infer/inference.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using testing_support::digest_of;
using testing_support::full_counts;

constexpr std::uint64_t kKeys = 1u << 14;
constexpr std::size_t kBatch = 512;
constexpr Nanoseconds kSecond = 1'000'000'000;

// Posteriors in 20 bins: the greatest part of them by which the sum of a bin misses the truth.
class Calibration {
 public:
  void add(double posterior, bool in_window) {
    const auto bin = std::min<std::size_t>(19, static_cast<std::size_t>(posterior * 20));
    ++asked_;
    expected_[bin] += posterior;
    true_[bin] += in_window;
  }
  // Of all that were asked.
  double error() const {
    double sum = 0;
    for (std::size_t bin = 0; bin < 20; ++bin) sum += std::abs(true_[bin] - expected_[bin]);
    return sum / asked_;
  }
  double asked() const { return asked_; }

 private:
  double asked_ = 0, expected_[20] = {}, true_[20] = {};
};

struct Stream {
  std::uint64_t records = 0;
  // How many come in a second, by the second, over and over: bursts make stages.
  std::vector<double> rates = {1000};
  std::uint64_t universe = kKeys;
};

struct Outcome {
  Calibration calibration;  // of what the filter takes for duplicates
  double cost = 0, expected = 0;
  std::uint64_t passed = 0;
  std::size_t most_stages = 1;
};

// `prices` are what errors cost, `costs` what the verdicts take them to.
Outcome run(AnyFilter filter, const Stream& stream, const Costs& costs, const Costs& prices) {
  Window* window = filter.window();
  const bool by_time = window != nullptr && window->params().spec.by_time();
  const bool refreshed = window == nullptr || window->params().anchor == Anchor::refreshed;
  const std::uint64_t size = window == nullptr ? ~std::uint64_t{0} : window->params().spec.size;
  Inference inference(filter, nullptr, false);
  SplitMix64 random(17);
  std::unordered_map<std::uint64_t, std::uint64_t> last;  // in ticks
  std::vector<std::uint64_t> keys(kBatch);
  std::vector<Digest> digests(kBatch);
  std::vector<Nanoseconds> times(kBatch);
  std::vector<Verdict> verdicts(kBatch);
  std::vector<std::optional<double>> posteriors(kBatch);
  bool late[kBatch];
  const Prior prior = Prior::arrival(1.0 / static_cast<double>(stream.universe));
  Outcome outcome;
  double now = 1e9 * double(kSecond);
  std::uint64_t tick = 1;
  for (std::uint64_t at = 0; at < stream.records; at += kBatch) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      const auto second = static_cast<std::size_t>(now / double(kSecond) - 1e9);
      const double rate = stream.rates[second % stream.rates.size()];
      now += -std::log(1 - random.next_unit()) / rate * double(kSecond);
      times[i] = static_cast<Nanoseconds>(now);
      keys[i] = random.next() % stream.universe;
      digests[i] = digest_of(keys[i]);
    }
    const Inference::Known known{{&prior, 1}, {&costs, 1}};
    EXPECT_EQ(window != nullptr ? inference.judge(digests, times, known, verdicts, late, posteriors)
                                : inference.observe(digests, known, verdicts, posteriors),
              kBatch);
    if (window != nullptr)
      outcome.most_stages = std::max(outcome.most_stages, window->growth().stage_count());
    for (std::size_t i = 0; i < kBatch; ++i) {
      const std::uint64_t present = by_time ? static_cast<std::uint64_t>(times[i]) : tick;
      const auto known_last = last.find(keys[i]);
      const bool in_window = known_last != last.end() && present - known_last->second < size;
      const bool delivered = verdicts[i] == Verdict::distinct;
      if (delivered || refreshed) last[keys[i]] = present, ++tick;
      if (at < stream.records / 4) continue;
      if (delivered == in_window) outcome.cost += in_window ? prices.duplicate : prices.lost;
      if (posteriors[i] && *posteriors[i] > 0) {
        outcome.calibration.add(*posteriors[i], in_window);
        outcome.expected +=
            delivered ? *posteriors[i] * prices.duplicate : (1 - *posteriors[i]) * prices.lost;
      }
    }
  }
  outcome.passed = inference.stats().passed;
  return outcome;
}

struct Case {
  std::string name;
  WindowSpec spec;
  Anchor anchor;
  std::string filter;
  double tolerance;
  std::vector<double> rates = {1000};
  std::optional<std::uint64_t> keys = {};
  std::size_t stages = 1;  // at least, for a while
  std::uint64_t universe = kKeys;
};

void PrintTo(const Case& each, std::ostream* to) {
  *to << each.name;
}

class InferenceError : public testing::TestWithParam<Case> {};

TEST_P(InferenceError, PosteriorsAreRightAndCostsFall) {
  const Case& each = GetParam();
  const Stream stream{full_counts() ? 1u << 21 : 1u << 16, each.rates, each.universe};
  const auto make = [&] {
    return AnyFilter(Window::make({.spec = each.spec,
                                   .anchor = each.anchor,
                                   .filter = each.filter,
                                   .fpr = 0.5,
                                   .keys = each.keys}));
  };
  const Costs prices{.lost = 3, .duplicate = 1};
  const Outcome filter = run(make(), stream, Inference::kFilterAlone, prices);
  const Outcome least = run(make(), stream, prices, prices);
  const std::string measured = fmt::format(
      "{:.0f} asked, posterior error {:.3f}, where the filter judges {:.3f}; cost {:.3f} of the "
      "filter's, expected {:.3f}; {} passed, {} stages",
      least.calibration.asked(), least.calibration.error(), filter.calibration.error(),
      least.cost / filter.cost, least.expected / filter.cost, least.passed, least.most_stages);
  fmt::print("{}: {}\n", each.name, measured);
  EXPECT_GT(least.calibration.asked(), 1000);
  EXPECT_LT(least.calibration.error(), each.tolerance);
  EXPECT_LT(filter.calibration.error(), each.tolerance);
  EXPECT_LT(least.cost, filter.cost);
  EXPECT_NEAR(least.expected / least.cost, 1, each.stages > 1 ? 0.3 : 0.15);
  EXPECT_GE(least.most_stages, each.stages);
  EXPECT_GT(least.passed, 0u);
  EXPECT_EQ(filter.passed, 0u);
}

constexpr WindowSpec kCount{WindowSpec::Kind::count, 1u << 12};
constexpr WindowSpec kTime{WindowSpec::Kind::time, 4 * kSecond};

const std::vector<double> kBursts = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000,
                                     8000, 8000, 8000, 8000, 8000, 8000, 8000, 1000};

// In a burst the recent rate differs from the earlier one, and ages are assumed to be as likely as
// before.
INSTANTIATE_TEST_SUITE_P(
    , InferenceError,
    testing::Values(
        Case{"count_cohort", kCount, Anchor::delivered, "cohort,slot=16", 0.05},
        Case{"count_cohort_refreshed", kCount, Anchor::refreshed, "cohort,slot=16", 0.05},
        Case{"count_timing", kCount, Anchor::delivered, "timing,bytes=8KiB", 0.05},
        Case{"count_timing_refreshed", kCount, Anchor::refreshed, "timing,bytes=8KiB", 0.05},
        Case{"time_cohort", kTime, Anchor::delivered, "cohort,slot=16", 0.05, {1000}, 8000},
        Case{"time_cohort_refreshed",
             kTime,
             Anchor::refreshed,
             "cohort,slot=16",
             0.05,
             {1000},
             8000},
        Case{"time_timing", kTime, Anchor::delivered, "timing,fpr=0.3", 0.05, {1000}, 4000},
        Case{"time_timing_refreshed",
             kTime,
             Anchor::refreshed,
             "timing,fpr=0.3",
             0.05,
             {1000},
             4000},
        // Most keys come again within the window, and are stamped again.
        Case{"time_cohort_repeats",
             kTime,
             Anchor::refreshed,
             "cohort,slot=16",
             0.05,
             {1000},
             8000,
             1,
             1u << 11},
        Case{"time_timing_repeats",
             kTime,
             Anchor::refreshed,
             "timing,fpr=0.3",
             0.05,
             {1000},
             4000,
             1,
             1u << 11},
        Case{"burst_cohort", kTime, Anchor::delivered, "cohort,slot=16", 0.05, kBursts, 4000, 2},
        Case{"burst_timing", kTime, Anchor::delivered, "timing,fpr=0.3", 0.1, kBursts, 4000, 2}),
    [](const auto& each) { return each.param.name; });

// A filter that is asked for more keys than it was planned for.
TEST(InferenceSetError, PosteriorsAreRightAndCostsFall) {
  for (const char* layout : {"classic", "blocked"}) {
    const auto make = [&] {
      return make_filter(fmt::format("bloom,layout={},bytes=4KiB", layout), {.fpr = 0.1});
    };
    const Stream stream{1u << 15};
    const Costs prices{.lost = 100, .duplicate = 1};
    const Outcome filter = run(make(), stream, Inference::kFilterAlone, prices);
    const Outcome least = run(make(), stream, prices, prices);
    fmt::print("{}: {:.0f} asked, posterior error {:.3f}; cost {:.3f} of the filter's\n", layout,
               least.calibration.asked(), least.calibration.error(), least.cost / filter.cost);
    EXPECT_GT(least.calibration.asked(), 1000);
    EXPECT_LT(least.calibration.error(), 0.03) << layout;
    EXPECT_LT(least.cost, filter.cost) << layout;
  }
}

}  // namespace
}  // namespace sluice
