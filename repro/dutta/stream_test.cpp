#include "repro/dutta/stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <set>

#include "sluice/base/error.hpp"

namespace sluice::repro::dutta {
namespace {

struct Seen {
  std::vector<Digest> digests;
  std::vector<bool> seen;
  std::vector<std::size_t> ends;  // of the batches
};

Seen all_of(const StreamPlan& plan, std::uint64_t step) {
  Seen all;
  each_batch(plan, step, [&](const Batch& batch) {
    all.digests.insert(all.digests.end(), batch.digests.begin(), batch.digests.end());
    all.seen.insert(all.seen.end(), batch.seen.begin(), batch.seen.end());
    all.ends.push_back(all.digests.size());
  });
  return all;
}

double expect_true(const Seen& all) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> keys;
  for (std::size_t i = 0; i < all.digests.size(); ++i)
    EXPECT_EQ(!keys.emplace(all.digests[i].lo, all.digests[i].hi).second, all.seen[i]) << i;
  return static_cast<double>(keys.size());
}

TEST(DuttaStream, UniverseGivesTheShareOfDistinctRecords) {
  for (const double share : {0.1, 0.49, 0.76, 0.99}) {
    const double universe = static_cast<double>(universe_of(1e6, share));
    EXPECT_NEAR(universe * -std::expm1(-1e6 / universe), share * 1e6, 1);
  }
  EXPECT_THROW(universe_of(1e6, 0), BadParameters);
  EXPECT_THROW(universe_of(1e6, 1), BadParameters);
  EXPECT_THROW(universe_of(1e9, 0.9999999), BadParameters) << "a truth of too many bits";
}

TEST(DuttaStream, TruthIsExact) {
  const StreamPlan uniform{.records = 20'000, .distinct = 0.3, .seed = 5};
  EXPECT_NEAR(expect_true(all_of(uniform, 1000)), 6000, 200);
  const StreamPlan clicks{
      .kind = StreamPlan::Kind::clicks, .records = 20'000, .keys = 3000, .skew = 1.2, .seed = 5};
  EXPECT_GT(expect_true(all_of(clicks, 1000)), 500);
}

TEST(DuttaStream, ComesAgainWithItsSeedAndEndsBatchesAtSteps) {
  StreamPlan plan{.records = 5000, .distinct = 0.3, .seed = 7};
  const Seen first = all_of(plan, 1500), again = all_of(plan, 5000);
  EXPECT_EQ(first.digests, again.digests);
  EXPECT_EQ(first.digests.size(), 5000u);
  for (const std::size_t step : {1500u, 3000u, 4500u})
    EXPECT_NE(std::ranges::find(first.ends, step), first.ends.end()) << step;
  plan.seed = 8;
  EXPECT_NE(all_of(plan, 1500).digests, first.digests);
}

TEST(DuttaStream, OwnFile) {
  const std::string path = testing::TempDir() + "dutta_stream_test.txt";
  std::ofstream(path) << "a\nb\na\nc\nb\n";
  const Seen all = all_of({.input = path}, 2);
  std::remove(path.c_str());
  EXPECT_EQ(all.seen, (std::vector<bool>{false, false, true, false, true}));
  EXPECT_EQ(all.ends, (std::vector<std::size_t>{2, 4, 5}));
}

TEST(DuttaStream, AreNoneInALargeTable) {
  // A large table forgets nothing within a hundred records.
  Subject subject("reservoir", AnyFilter(Reservoir::make({.bits = 1 << 22,
                                                          .filters = 4,
                                                          .variant = Reservoir::Variant::biased,
                                                          .target_fpr = 0.01})));
  each_batch({.records = 100, .distinct = 0.5, .seed = 3}, 10,
             [&](const Batch& batch) { subject.take(batch); });
  EXPECT_EQ(subject.errors().records(), 100u);
  EXPECT_EQ(subject.errors().missed, 0u);
  EXPECT_EQ(subject.errors().lost, 0u);
  EXPECT_EQ(subject.ones(), 4.0 * static_cast<double>(subject.errors().distinct));
}

}  // namespace
}  // namespace sluice::repro::dutta
