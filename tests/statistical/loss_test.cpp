// Errors and losses that filters predict at high errors and in short runs, where a lost key leaves no
// trace, against what is measured. Every key is new, so all that are held back are lost. Seeds are fixed;
// tolerances are in standard errors of what is measured, between independent filters, and a share for the
// model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sluice/filters/catalogue.hpp"
#include "sluice/judge/judge.hpp"
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
constexpr const char* kFilters[] = {"bloom", "bloom,layout=classic", "counting", "dynamic"};

// The error of a filter that was offered so many keys, as ghosts tell it.
double error_after(AnyFilter& filter, std::size_t key_count, std::size_t ghost_count,
                   std::uint64_t seed) {
  const auto keys = random_digests(2 * seed, key_count);
  const auto ghosts = random_digests(2 * seed + 1, ghost_count);
  std::vector<Verdict> verdicts(key_count), asked(ghost_count);
  EXPECT_EQ(filter.observe(keys, verdicts), key_count);
  filter.may_contain(ghosts, asked);
  return static_cast<double>(count_duplicates(asked)) / static_cast<double>(ghost_count);
}

// Of a filter that was offered what it is made for, ghosts tell the error.
TEST(LossError, IsPredictedWhereManyKeysWereLost) {
  constexpr std::size_t kKeys = 5000, kGhosts = 60'000;
  for (const char* name : kFilters)
    for (const double fpr : {0.3, 0.1, 0.05, 0.01}) {
      SCOPED_TRACE(name + std::string(" at ") + std::to_string(fpr));
      std::vector<double> off, found;
      for (std::uint64_t seed = 1; seed <= count_of(20u, 200u); ++seed) {
        AnyFilter filter = make_filter(name, {.keys = kKeys, .fpr = fpr});
        found.push_back(error_after(filter, kKeys, kGhosts, seed));
        off.push_back(filter.stats().predicted_fpr - found.back());
        EXPECT_FALSE(filter.stats().over_target);
      }
      const Measured error = mean_of(off);
      EXPECT_NEAR(error.mean, 0, kTolerance * error.standard_error + 0.01 * mean_of(found).mean);
      EXPECT_LT(error.standard_error, 0.02 * mean_of(found).mean) << "too few to tell anything";
    }
}

// And of a series of filters that has grown.
TEST(LossError, OfASeriesOfFilters) {
  constexpr std::size_t kKeys = 8000, kGhosts = 20'000;
  std::vector<double> off, found;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    AnyFilter filter = make_filter("dynamic", {.keys = 2000, .fpr = 0.1});
    found.push_back(error_after(filter, kKeys, kGhosts, seed));
    off.push_back(filter.stats().predicted_fpr - found.back());
  }
  const Measured error = mean_of(off);
  EXPECT_NEAR(error.mean, 0, kTolerance * error.standard_error + 0.01 * mean_of(found).mean);
}

struct Outcome {
  double lost, expected;
  bool over;
};

Outcome run(const std::string& filter, std::uint64_t planned, double fpr, std::size_t keys,
            std::uint64_t seed) {
  Judge judge({HashKind::xxh3, Secret::from_seed(1)},
              make_filter(filter, {.keys = planned, .fpr = fpr}));
  const auto digests = random_digests(seed, keys);
  std::vector<Verdict> verdicts(keys);
  EXPECT_EQ(judge.judge({.digests = digests, .verdicts = verdicts}), keys);
  const FilterStats stats = judge.filter().stats();
  return {static_cast<double>(count_duplicates(verdicts)), judge.meter().expected_lost(stats),
          judge.meter().over_target(stats) > 0};
}

// 5 %: in a small table the probes of a key are not quite independent.
TEST(LossError, OfShortRunsIsExpected) {
  for (const char* name : kFilters)
    for (const std::uint64_t keys : {20u, 50u, 200u, 1000u})
      for (const double fpr : {0.1, 0.3}) {
        SCOPED_TRACE(name + std::string(" ") + std::to_string(keys) + " at " + std::to_string(fpr));
        std::vector<double> off;
        double lost = 0, expected = 0;
        const std::uint64_t runs = count_of(40'000u, 400'000u) / keys;
        for (std::uint64_t seed = 1; seed <= runs; ++seed) {
          const Outcome one = run(name, keys, fpr, keys, seed);
          off.push_back(one.expected - one.lost);
          lost += one.lost;
          expected += one.expected;
          EXPECT_FALSE(one.over);
        }
        // Where next to nothing is lost, no less than of a count.
        const auto count = static_cast<double>(runs);
        const double chance = std::max(mean_of(off).standard_error, std::sqrt(expected) / count);
        EXPECT_NEAR(expected / count, lost / count, kTolerance * chance + 0.05 * lost / count);
      }
}

// What chance adds to the fill of a small table is no reason to warn.
TEST(LossError, WithinThePlanNothingIsOverTheTarget) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed)
    for (const auto& [keys, fpr] :
         {std::pair<std::uint64_t, double>(300, 0.02), {40, 0.1}, {600, 1e-3}})
      for (const char* name : kFilters)
        EXPECT_FALSE(run(name, keys, fpr, keys, seed).over) << name << ' ' << keys << ' ' << seed;
  for (const char* size : {"bytes=2048", "bytes=16384"})
    for (const char* max : {"1", "3", "7", "15"})
      for (const double fpr : {0.05, 0.01}) {
        const std::string spec = std::string("stable,") + size + ",max=" + max;
        Judge judge({HashKind::xxh3, Secret::from_seed(1)}, make_filter(spec, {.fpr = fpr}));
        for (std::uint64_t part = 1; part <= count_of(300u, 3000u); ++part) {
          const auto digests = random_digests(part, 1000);
          std::vector<Verdict> verdicts(1000);
          ASSERT_EQ(judge.judge({.digests = digests, .verdicts = verdicts}), 1000u);
        }
        const FilterStats stats = judge.filter().stats();
        EXPECT_EQ(judge.meter().over_target(stats), 0u)
            << spec << ' ' << fpr << ' ' << judge.meter().worst_fpr(stats);
        // At no great cost.
        EXPECT_GT(stats.planned_fpr, 0.6 * fpr) << spec;
      }
}

}  // namespace
}  // namespace sluice
