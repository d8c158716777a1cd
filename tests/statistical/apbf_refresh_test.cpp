// The error that age-partitioned filters predict of themselves while they run, against keys that never
// came: with repeats that restart their window and without, by count and by time. All seeds are fixed.
//
// Each case is the mean over kRuns streams of 6 windows each, and in each over 60 looks at the last 4.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/mean.hpp"

namespace sluice {
namespace {

using testing_support::count_of;
using testing_support::mean_of;
using testing_support::Measured;
using testing_support::random_digests;

constexpr double kTolerance = 4;  // standard errors
constexpr std::uint64_t kKeys = 2000;
constexpr std::size_t kGhosts = 4096;

struct Errors {
  double predicted = 0, measured = 0;
};

// Of records, a share repeats a key of the last half window, each as likely as another.
Errors run(const std::string& filter, Anchor anchor, bool by_time, double repeats,
           std::uint64_t seed) {
  // By time, chance needs room in each generation, and errors are far below their target.
  Window::Params params{.spec = by_time ? WindowSpec{WindowSpec::Kind::time, kKeys * 1000}
                                        : WindowSpec{WindowSpec::Kind::count, kKeys},
                        .anchor = anchor,
                        .filter = filter,
                        .fpr = by_time ? 0.3 : 0.01};
  if (by_time) params.keys = kKeys * 3 / 2;
  Window window = Window::make(params);
  SplitMix64 random(seed);
  std::vector<Verdict> verdicts(kGhosts);
  Errors errors;
  double now = 1e12;
  std::vector<Digest> keys;
  for (std::uint64_t i = 0; i < 6 * kKeys; ++i) {
    const bool again = !keys.empty() && random.next_unit() < repeats;
    const std::size_t back = 1 + random.next() % std::min<std::size_t>(kKeys / 2, i + 1);
    if (!again || back > keys.size()) keys.push_back({random.next(), random.next()});
    const Digest digest = again && back <= keys.size() ? keys[keys.size() - back] : keys.back();
    now += -std::log(1 - random.next_unit()) * 1000;
    const auto time = static_cast<Nanoseconds>(now);
    Verdict verdict{};
    bool late = false;
    EXPECT_EQ(window.judge({&digest, 1}, {&time, 1}, {&verdict, 1}, {&late, 1}), 1u);
    if (i < 2 * kKeys || i % (kKeys / 15 + 1) != 0) continue;
    errors.predicted += window.stats().predicted_fpr;
    window.may_contain(random_digests(random.next(), kGhosts), verdicts);
    errors.measured += static_cast<double>(count_duplicates(verdicts)) / kGhosts;
  }
  return errors;
}

struct Case {
  const char* filter;
  Anchor anchor;
  bool by_time;
  double repeats;
  double low = 0.9, high = 1.1;  // what the model may be off by
};

TEST(ApbfRunningError, IsWhatItPredicts) {
  constexpr Anchor kDelivered = Anchor::delivered, kRefreshed = Anchor::refreshed;
  std::vector<Case> cases;
  for (const char* filter : {"apbf", "apbbf", "apbbf,layout=column"}) {
    cases.push_back({filter, kRefreshed, false, 0.5});
    cases.push_back({filter, kRefreshed, false, 0.8});
    cases.push_back({filter, kRefreshed, true, 0.5});
    cases.push_back({filter, kDelivered, false, 0.3});
    cases.push_back({filter, kDelivered, true, 0.3});
  }
  // A key that is written again and again crowds its line in all segments, more than the model has it.
  cases.push_back({"apbbf,layout=line", kRefreshed, false, 0.5, 0.75});
  cases.push_back({"apbbf,layout=line", kRefreshed, false, 0.8, 0.65});
  cases.push_back({"apbbf,layout=line", kDelivered, false, 0.3});
  cases.push_back({"apbbf,layout=line", kDelivered, true, 0.3});
  for (const Case& it : cases) {
    SCOPED_TRACE(std::string(it.filter) + (it.anchor == kRefreshed ? " refreshed" : "") +
                 (it.by_time ? " time " : " count ") + std::to_string(it.repeats));
    std::vector<double> predicted, measured;
    for (std::uint64_t seed = 1; seed <= count_of(2u, 40u); ++seed) {
      const Errors errors = run(it.filter, it.anchor, it.by_time, it.repeats, seed);
      predicted.push_back(errors.predicted);
      measured.push_back(errors.measured);
    }
    const Measured truth = mean_of(measured);
    // Tables differ in their error by chance, and the sum of a few ghosts is a count.
    const double error =
        std::hypot(truth.standard_error, std::sqrt(truth.mean / kGhosts / count_of(2.0, 40.0)));
    const double mean = mean_of(predicted).mean;
    EXPECT_LT(mean, it.high * truth.mean + kTolerance * error);
    EXPECT_GT(mean, it.low * truth.mean - kTolerance * error);
  }
}

}  // namespace
}  // namespace sluice
