// Batches of a cohort: ages of many keys, posteriors by age, and verdicts of least cost.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/infer/inferred.hpp"
#include "sluice/kernels/simd.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using testing_support::digest_of;

// At every level of instructions, with keys that are not there, that share a fingerprint, and that
// found no room in the table.
TEST(InferredBatches, AgesOfManyAreThoseOfEach) {
  const std::string chosen(simd_level());
  std::size_t strays = 0;
  for (const char* settings :
       {"keys=2000,slot=16", "keys=2000,slot=24", "keys=2000,slot=32", "keys=2000,slot=40",
        "keys=2000,slot=48", "bytes=4096,keys=1944,slot=16,generations=12,fpr=0.1",
        "bytes=4096,keys=980,slot=32,generations=10,fpr=0.01"}) {
    Cohort filter = Cohort::make(Cohort::Params::from({}, Settings::parse(settings)));
    // More a generation than it could keep.
    const bool full = std::string_view(settings).starts_with("bytes");
    const std::uint64_t block =
        filter.params().live_capacity() * (full ? 3 : 2) / 2 / (filter.generations() + 1);
    std::vector<Digest> digests;
    for (unsigned generation = 0; generation < 40; ++generation) {
      for (std::uint64_t i = 0; i < block; ++i) {
        digests.push_back(digest_of(digests.size()));
        Verdict verdict;
        std::uint64_t budget = 1;
        if (i % 8 != 0 || full)
          filter.admit({&digests.back(), 1}, {&verdict, 1}, budget, Anchor::delivered);
      }
      strays = std::max(strays, filter.stray_count());
      if (generation < 39) filter.rotate();
    }
    std::vector<std::uint8_t> ages(digests.size());
    for (const std::string_view level : simd_levels()) {
      force_simd_level(level);
      filter.ages_of(digests, ages);
      for (std::size_t i = 0; i < digests.size(); ++i)
        ASSERT_EQ(ages[i], filter.age_of(digests[i]).value_or(kernels::kNoAge))
            << settings << ' ' << level << ' ' << i;
    }
    force_simd_level(chosen);
  }
  EXPECT_GT(strays, 0u);
}

// Posteriors by age are those of the evidence of that age.
TEST(AgePosteriors, AreThoseOfTheEvidence) {
  Cohort filter = Cohort::make(Cohort::Params::from({.keys = 2400}, Settings::parse("slot=16")));
  const Pace pace{2400, 200, 57};
  for (std::uint64_t key = 0; key < 2457; ++key) {
    filter.insert(digest_of(key));
    if (key % 200 == 199) filter.rotate();
  }
  const CohortReader reader(filter, pace, Anchor::delivered);
  PosteriorCache cache(2400, 200, filter.generations(), Anchor::delivered);
  AgePosteriors by_age;
  by_age.prepare(filter, reader, pace);
  for (const double chance : {1e-5, 1e-3}) {
    const Prior prior = Prior::arrival(chance);
    by_age.judge_all(prior, {10, 1}, cache.tail(prior, 57, 1.2));
    for (unsigned age = 0; age <= filter.generations(); ++age) {
      const double expected = cache.within(prior, reader.of_age(filter, age, pace), 57, 2400, 1.2);
      EXPECT_NEAR(*by_age.judgement(by_age.place(static_cast<std::uint8_t>(age))).posterior,
                  expected, 1e-12)
          << age;
    }
    EXPECT_EQ(*by_age.judgement(by_age.place(kernels::kNoAge)).posterior, 0);
  }
}

// Ages of a batch's keys, each with a prior of its own, or all with one: the same verdicts.
TEST(InferredBatches, OnePriorForAllIsThatOfEach) {
  const auto make = [] {
    return Cohort::make(Cohort::Params::from({.keys = 3000}, Settings::parse("slot=16")));
  };
  InferredWindow<Cohort> all(make(), {.window = 3000}), each(make(), {.window = 3000});
  const std::vector<Prior> one{Prior::arrival(1.0 / 8000)}, many(1000, one[0]);
  const std::vector<Costs> cost{{10, 1}}, costs(1000, cost[0]);
  SplitMix64 random(5);
  std::vector<Digest> digests(1000);
  std::vector<Judgement> first(1000), second(1000);
  for (int round = 0; round < 40; ++round) {
    for (Digest& digest : digests) digest = digest_of(random.next() % 8000);
    all.observe(digests, one, cost, first);
    each.observe(digests, many, round % 2 == 0 ? costs : cost, second);
    for (std::size_t i = 0; i < digests.size(); ++i) {
      ASSERT_EQ(first[i].verdict, second[i].verdict) << round << ' ' << i;
      ASSERT_NEAR(*first[i].posterior, *second[i].posterior, 1e-9);
    }
  }
  EXPECT_EQ(all.stats().inferred, each.stats().inferred);
  EXPECT_EQ(all.stats().passed, each.stats().passed);
  EXPECT_EQ(all.stats().delivered, each.stats().delivered);
  EXPECT_GT(all.stats().passed, 300u);
  EXPECT_NEAR(all.stats().cost / each.stats().cost, 1, 1e-9);
  EXPECT_NEAR(all.stats().filter_cost / each.stats().filter_cost, 1, 1e-9);
}

// The last tick of a generation fills the filter, and a key that is passed in the same batch finds
// no room but its own.
TEST(InferredBatches, BatchesPassKeysWhereTheFilterIsFull) {
  InferredWindow<Cohort> window(
      Cohort::make(Cohort::Params::from({.keys = 20'000}, Settings::parse("slot=24"))),
      {.window = 20'000});
  const std::vector<Prior> priors{Prior::arrival(1.0 / 200'000)};
  const std::vector<Costs> costs{{10, 1}};
  SplitMix64 random(1);
  std::vector<Digest> digests(4096);
  std::vector<Judgement> judgements(digests.size());
  for (int round = 0; round < 100; ++round) {
    for (Digest& digest : digests) digest = digest_of(random.next() % 200'000);
    ASSERT_NO_THROW(window.observe(digests, priors, costs, judgements));
  }
  EXPECT_GT(window.stats().passed, 1000u);
}

}  // namespace
}  // namespace sluice
