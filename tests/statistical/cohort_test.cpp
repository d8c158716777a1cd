// Measured errors of the cohort filter against its model, and its space against the promise:
// windows of a million keys at steady state, everything counted. Seeds are fixed; tolerances are
// four standard errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

using testing_support::full_counts;

constexpr std::uint64_t kWindow = 1'000'000;

// Two windows of distinct keys: every generation has been written and some have been forgotten.
Window steady_window(const std::string& filter, double fpr, std::uint64_t seed) {
  Window window =
      Window::make({.spec = {WindowSpec::Kind::count, kWindow}, .filter = filter, .fpr = fpr});
  SplitMix64 random(seed);
  std::vector<Digest> digests(1000);
  for (std::uint64_t written = 0; written < 2 * kWindow + kWindow / 3; written += digests.size()) {
    for (Digest& digest : digests) digest = {random.next(), random.next()};
    window.insert(digests);
  }
  return window;
}

double measured_fpr(const Window& window, std::uint64_t probes, std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<Digest> digests(1000);
  std::vector<Verdict> verdicts(digests.size());
  std::uint64_t wrong = 0;
  for (std::uint64_t asked = 0; asked < probes; asked += digests.size()) {
    for (Digest& digest : digests) digest = {random.next(), random.next()};
    window.may_contain(digests, verdicts);
    wrong += static_cast<std::uint64_t>(std::ranges::count(verdicts, Verdict::duplicate));
  }
  return static_cast<double>(wrong) / static_cast<double>(probes);
}

struct Case {
  const char* filter;
  double fpr;
  double most_bits_per_key;
  double most_slack;
  std::uint64_t probes;
};

class CohortError : public testing::TestWithParam<Case> {};

TEST_P(CohortError, IsWhatTheModelSaysInTheSpacePromised) {
  const Case& it = GetParam();
  const Window window = steady_window(it.filter, it.fpr, 1);
  const FilterStats stats = window.stats();
  // Below 10⁻⁶ there is little to count: more probes at the full counts.
  const std::uint64_t probes = full_counts() ? 20 * it.probes : it.probes;
  const double measured = measured_fpr(window, probes, 2);
  const double error = std::sqrt(stats.predicted_fpr / static_cast<double>(probes));
  EXPECT_NEAR(measured, stats.predicted_fpr, 4 * error + 1e-9);
  EXPECT_LE(measured, it.fpr);
  EXPECT_LE(8.0 * static_cast<double>(stats.bytes) / kWindow, it.most_bits_per_key);
  EXPECT_LE(window.slack(), it.most_slack);
  EXPECT_EQ(window.growth().growths(), 0u);
  EXPECT_EQ(stats.stash, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Slots, CohortError,
    testing::Values(Case{"cohort", 2e-2, 20, 0.09, 2'000'000},
                    Case{"cohort", 1e-4, 29, 0.05, 10'000'000},
                    Case{"cohort", 1e-6, 37, 0.05, 20'000'000},
                    Case{"cohort,slot=16,generations=8", 2e-2, 21, 0.13, 2'000'000},
                    Case{"cohort,slot=24,generations=50", 2e-4, 29, 0.021, 5'000'000}),
    [](const auto& test) { return std::to_string(test.index); });

}  // namespace
}  // namespace sluice
