// Errors of slices with failed sites, under each rule, pinned to model/sliced.hpp.
//
// Each case fills kDraws filters of one size, fails sites drawn at random, and asks for every key
// that it holds and for as many that it does not. The standard error is taken between the draws: it
// holds the luck of which sites failed. All seeds are fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/cluster/local_site.hpp"
#include "sluice/cluster/slices.hpp"
#include "sluice/model/sliced.hpp"
#include "tests/support/counts.hpp"

namespace sluice::cluster {
namespace {

using model::FaultRule;

constexpr double kTolerance = 4;  // standard errors
constexpr std::size_t kKeys = 5700;

std::size_t draws() {
  return testing_support::full_counts() ? 100 : 12;
}

struct Case {
  Slicing slicing;
  unsigned slices, inner, failed, probes, least_live;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << name_of(c.slicing) << ", " << c.failed << " failed, at least " << c.least_live
               << " of " << c.probes << " live";
  }
};

struct Mean {
  double value = 0, squares = 0;
  std::size_t count = 0;
  void add(double x) { value += x, squares += x * x, ++count; }
  double mean() const { return value / static_cast<double>(count); }
  double standard_error() const {
    const double n = static_cast<double>(count);
    return std::sqrt(std::max(0.0, squares / n - mean() * mean()) / (n - 1));
  }
};

double share(Slices& slices, const std::vector<Digest>& keys, Verdict verdict) {
  std::vector<Verdict> verdicts(keys.size());
  slices.may_contain(keys, verdicts);
  return static_cast<double>(std::ranges::count(verdicts, verdict)) /
         static_cast<double>(keys.size());
}

model::SlicedFilter model_of(const SliceMap& map) {
  const SliceParams& params = map.params();
  return {params.slicing, static_cast<double>(map.site_bits() * map.sites()),
          params.probes,  static_cast<double>(kKeys),
          params.slices,  params.inner};
}

// What a mean of few draws may be off by when all of them had no error: three events in all.
double floor_of(std::size_t asked) {
  return 3.0 / static_cast<double>(asked);
}

class SlicedClusterError : public testing::TestWithParam<Case> {};

TEST_P(SlicedClusterError, IsTheModels) {
  const Case& c = GetParam();
  const SliceParams params{c.slicing, 48400, c.probes, c.slices, c.inner, 1};
  const SliceMap map(params);
  Mean fpr, fnr;
  for (std::size_t draw = 0; draw < draws(); ++draw) {
    SplitMix64 random(1000 + draw);
    const auto memories = local_memories(map.sites(), map.site_bits());
    Slices whole({.slices = params}, connect(memories));
    std::vector<Digest> held(kKeys), others(2 * kKeys);
    for (Digest& digest : held) digest = {random.next(), random.next()};
    for (Digest& digest : others) digest = {random.next(), random.next()};
    whole.insert(held);
    std::vector<std::size_t> order(map.sites());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (unsigned i = 0; i < c.failed; ++i) {
      std::swap(order[i], order[i + random.next() % (order.size() - i)]);
      memories[order[i]]->fail();
    }
    Slices slices({.slices = params, .rule = FaultRule::hybrid(c.least_live)}, connect(memories));
    fpr.add(share(slices, others, Verdict::duplicate));
    fnr.add(share(slices, held, Verdict::distinct));
  }
  const model::SlicedErrors expected =
      model::diced_errors(model_of(map), c.failed, FaultRule::hybrid(c.least_live));
  EXPECT_NEAR(fpr.mean(), expected.fpr,
              kTolerance * fpr.standard_error() + floor_of(2 * kKeys * draws()));
  EXPECT_NEAR(fnr.mean(), expected.fnr,
              kTolerance * fnr.standard_error() + floor_of(kKeys * draws()));
  if (c.failed == 0 || c.least_live == 0) {
    EXPECT_EQ(fnr.mean(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, SlicedClusterError,
                         testing::Values(Case{Slicing::horizontal, 40, 1, 0, 4, 0},
                                         Case{Slicing::horizontal, 40, 1, 8, 4, 0},
                                         Case{Slicing::horizontal, 40, 1, 8, 4, 4},
                                         Case{Slicing::vertical, 40, 1, 0, 4, 0},
                                         Case{Slicing::vertical, 40, 1, 8, 4, 0},
                                         Case{Slicing::vertical, 40, 1, 8, 4, 4},
                                         Case{Slicing::vertical, 40, 1, 8, 8, 3},
                                         Case{Slicing::vertical, 40, 1, 8, 8, 6},
                                         Case{Slicing::horizontal_vertical, 5, 8, 8, 4, 0},
                                         Case{Slicing::horizontal_vertical, 5, 8, 8, 4, 2},
                                         Case{Slicing::horizontal_vertical, 5, 8, 8, 4, 4},
                                         Case{Slicing::vertical_horizontal, 8, 5, 8, 4, 0},
                                         Case{Slicing::vertical_horizontal, 8, 5, 8, 4, 2},
                                         Case{Slicing::vertical_horizontal, 8, 5, 8, 4, 4}));

// Proposition 2: k1 slices per key and k2 bits in each, by the binomial load of each slice.
TEST(GeneralClusterError, IsTheModels) {
  for (const unsigned k1 : {1u, 2u, 4u}) {
    const SliceParams params{Slicing::general, 48400, 4, 100, 1, k1};
    const SliceMap map(params);
    Mean fpr;
    for (std::size_t draw = 0; draw < draws(); ++draw) {
      SplitMix64 random(2000 + draw);
      Slices slices({.slices = params}, connect(local_memories(map.sites(), map.site_bits())));
      std::vector<Digest> held(kKeys), others(4 * kKeys);
      for (Digest& digest : held) digest = {random.next(), random.next()};
      for (Digest& digest : others) digest = {random.next(), random.next()};
      slices.insert(held);
      fpr.add(share(slices, others, Verdict::duplicate));
    }
    EXPECT_NEAR(fpr.mean(), model::general_fpr({48400, kKeys, 100, k1, 4 / k1}),
                kTolerance * fpr.standard_error())
        << k1;
  }
}

// Messages of a lookup, as the filter fills with keys that are all new.
TEST(PipelinedClusterError, MessagesAreTheModels) {
  const SliceParams params{Slicing::vertical, 48400, 4, 40, 1, 1};
  const SliceMap map(params);
  Mean messages;
  for (std::size_t draw = 0; draw < draws(); ++draw) {
    SplitMix64 random(3000 + draw);
    Slices slices({.slices = params, .pipelined = true},
                  connect(local_memories(map.sites(), map.site_bits())));
    std::vector<Digest> keys(kKeys);
    for (Digest& digest : keys) digest = {random.next(), random.next()};
    std::vector<Verdict> verdicts(kKeys);
    slices.observe(keys, verdicts);
    messages.add(static_cast<double>(slices.traffic().lookups) / kKeys);
  }
  // A batch is asked before its own keys are set: 512 of 5700, which is a few thousandths.
  EXPECT_NEAR(messages.mean(), model::pipelined_sites_filling(model_of(map)),
              kTolerance * messages.standard_error() + 0.03);
}

}  // namespace
}  // namespace sluice::cluster
