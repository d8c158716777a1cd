// The errors of dynamic filters as measured, against the model and the paper (Guo et al. 2010,
// Table 1 and Figure 5).
//
// Each case fills independent series with keys of their own. The standard error is taken between
// the series, so it holds both kinds of luck: which bits were set, and which keys were asked for.
// All seeds are fixed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/model/bloom.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/dynamic_test_util.hpp"
#include "tests/support/mean.hpp"

namespace sluice {
namespace {

using testing_support::mean_of;
using testing_support::Measured;

using namespace dynamic_test;

constexpr double kTolerance = 4;  // standard errors
// The models take all filters for equally full of ones; uneven luck adds 2 to 3 % at m = 1280.
constexpr double kModel = 0.04;

int series_count() {
  return testing_support::full_counts() ? 1000 : 60;
}

double found_share(const Dynamic& filter, SplitMix64& random, int asked) {
  int found = 0;
  for (int i = 0; i < asked; ++i) found += filter.may_contain({random.next(), random.next()});
  return static_cast<double>(found) / asked;
}

double share_claimed_twice(const Dynamic& filter, const std::vector<Digest>& keys) {
  const std::vector<DynamicPiece> pieces = pieces_of(filter);
  std::size_t twice = 0;
  for (const Digest& key : keys) {
    int claimants = 0;
    for (const DynamicPiece& piece : pieces) claimants += piece.may_contain(key);
    twice += claimants > 1;
  }
  return static_cast<double>(twice) / static_cast<double>(keys.size());
}

// What the paper's experiment prints, for one way of filling a series with n = filters · 133 keys.
struct Outcome {
  std::vector<double> fpr, twice, left;
};

// `alone`: each filter by itself, without asking the others, as the paper's Algorithm 1 does; a
// union of full filters joins none of them.
Outcome experiment(int filters, bool alone) {
  Outcome outcome;
  SplitMix64 random(static_cast<std::uint64_t>(filters));
  for (int i = 0; i < series_count(); ++i) {
    Dynamic filter = make(kPaperCounted);
    std::vector<Digest> keys;
    if (alone) {
      keys = write(filter, random.next(), 133);
      for (int more = 1; more < filters; ++more) {
        Dynamic one = make(kPaperCounted);
        const std::vector<Digest> written = write(one, random.next(), 133);
        keys.insert(keys.end(), written.begin(), written.end());
        filter.merge(one);
      }
    } else {
      keys = write(filter, random.next(), static_cast<std::size_t>(133 * filters));
    }
    EXPECT_EQ(filter.series().filters, static_cast<std::uint64_t>(filters));
    outcome.fpr.push_back(found_share(filter, random, 10'000));
    outcome.twice.push_back(share_claimed_twice(filter, keys));
    for (const Digest& key : keys) filter.forget(key);  // in the order in which they were written
    outcome.left.push_back(static_cast<double>(filter.stats().keys) /
                           static_cast<double>(keys.size()));
  }
  return outcome;
}

// Printed from 100 rounds of this many keys each: has a standard error of its own.
void expect_as_printed(const std::vector<double>& samples, double printed, double keys,
                       const char* what) {
  const Measured measured = mean_of(samples);
  const double both = std::hypot(measured.standard_error, std::sqrt(printed / (100 * keys)));
  EXPECT_NEAR(measured.mean, printed, kTolerance * both) << what;
}

void expect_as_modelled(const std::vector<double>& samples, double model, const char* what) {
  const Measured measured = mean_of(samples);
  EXPECT_NEAR(measured.mean, model, kTolerance * measured.standard_error + kModel * model) << what;
}

struct Printed {
  int filters;  // n / c
  double fpr, twice, left;
};
void PrintTo(const Printed& row, std::ostream* out) {
  *out << "n/c = " << row.filters;
}

class DynamicError : public testing::TestWithParam<Printed> {};

TEST_P(DynamicError, IsThatOfThePaper) {
  const Printed& row = GetParam();
  const Outcome outcome = experiment(row.filters, true);
  const double keys = 133.0 * row.filters;
  expect_as_printed(outcome.fpr, row.fpr, keys, "false positives");
  expect_as_printed(outcome.twice, row.twice, keys, "claimed by several");
  expect_as_printed(outcome.left, row.left, keys, "left after all were forgotten");
  const double one = model::bloom_fpr(1280, 7, 133);
  expect_as_modelled(outcome.fpr, 1 - std::pow(1 - one, row.filters), "eq. 3");
  expect_as_modelled(outcome.twice, 1 - std::pow(1 - one, row.filters - 1), "eq. 10");
  EXPECT_LT(mean_of(outcome.left).mean, 1 - std::pow(1 - one, row.filters - 1));
}

// A key that is asked for before it is written is claimed by none of the filters before its own:
// only those that came later can err.
TEST_P(DynamicError, AskingFirstLeavesHalfAsManyClaimedTwice) {
  const Printed& row = GetParam();
  const Outcome outcome = experiment(row.filters, false);
  const double one = model::bloom_fpr(1280, 7, 133);
  double expected = 0;
  for (int later = 0; later < row.filters; ++later)
    expected += (1 - std::pow(1 - one, later)) / row.filters;
  expect_as_modelled(outcome.fpr, 1 - std::pow(1 - one, row.filters), "false positives");
  expect_as_modelled(outcome.twice, expected, "claimed by several");
}

INSTANTIATE_TEST_SUITE_P(Paper, DynamicError,
                         testing::Values(Printed{2, .0202, .0093, .0043},
                                         Printed{5, .0491, .0391, .0203},
                                         Printed{10, .0955, .0859, .0435}),
                         [](const auto& test) { return fmt::format("n{}", test.param.filters); });

class DynamicSeriesError : public testing::TestWithParam<const char*> {};

TEST_P(DynamicSeriesError, IsWhatTheFilterSaysOfItself) {
  std::vector<double> found, predicted;
  SplitMix64 random(3);
  for (int i = 0; i < 20; ++i) {
    Dynamic filter = make(GetParam());
    write(filter, random.next(), 13'000);
    found.push_back(found_share(filter, random, 40'000));
    predicted.push_back(filter.stats().predicted_fpr);
  }
  const double model = mean_of(predicted).mean;
  expect_as_modelled(found, model, GetParam());
  EXPECT_LT(mean_of(found).standard_error, 0.03 * model) << "too few probes to tell anything";
}

INSTANTIATE_TEST_SUITE_P(Series, DynamicSeriesError,
                         testing::Values("keys=2000,fpr=0.01", "keys=2000,fpr=0.01,layout=plain",
                                         "keys=4000,fpr=0.01,forget=yes",
                                         "keys=1000,fpr=0.05,tighten=0.5",
                                         "keys=2000,fpr=0.05,tighten=0.8,growth=1"));

}  // namespace
}  // namespace sluice
