#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/infer/inferred.hpp"
#include "sluice/infer/priors.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using testing_support::digest_of;

Timing timing(const char* settings) {
  return Timing::make(Timing::Params::from({}, Settings::parse(settings)));
}

TEST(Costs, TheCheaperErrorIsChosen) {
  EXPECT_EQ(least_cost(0.5, {1, 1}), Verdict::duplicate);
  EXPECT_EQ(least_cost(0.49, {1, 1}), Verdict::distinct);
  EXPECT_EQ(least_cost(0.98, {100, 1}), Verdict::distinct);
  EXPECT_EQ(least_cost(0.995, {100, 1}), Verdict::duplicate);
  EXPECT_EQ(least_cost(0.02, {1, 100}), Verdict::duplicate);
  EXPECT_THROW((Costs{-1, 1}.check()), BadParameters);
  EXPECT_THROW((Costs{1, std::nan("")}.check()), BadParameters);
  EXPECT_THROW((Costs{std::numeric_limits<double>::infinity(), 1}.check()), BadParameters);
  EXPECT_THROW((Costs{0, 0}.check()), BadParameters);
  EXPECT_NO_THROW((Costs{100, 1}.check()));
}

TEST(Prior, WhatIsNoChanceIsNotKnown) {
  for (const double wrong : {0.0, 1.0, -0.5, 2.0, std::nan("")}) {
    EXPECT_FALSE(Prior::arrival(wrong).known());
    EXPECT_FALSE(Prior::in_window(wrong).known());
  }
  EXPECT_TRUE(Prior::arrival(1e-9).known());
}

TEST(PriorTable, KnowsItsKeysAndARest) {
  PriorTable table(Prior::Kind::arrival, Prior::arrival(1e-7));
  EXPECT_EQ(table.of(digest_of(1)), Prior::arrival(1e-7));
  for (std::uint64_t key = 1; key <= 1000; ++key) table.add(digest_of(key), 1e-5 * double(key));
  table.add(digest_of(7), 0.5);
  EXPECT_EQ(table.size(), 1000u);
  EXPECT_EQ(table.of(digest_of(7)), Prior::arrival(0.5));
  for (std::uint64_t key = 8; key <= 1000; ++key)
    EXPECT_EQ(table.of(digest_of(key)), Prior::arrival(1e-5 * double(key)));
  EXPECT_EQ(table.of(digest_of(1001)), Prior::arrival(1e-7));
  EXPECT_THROW(table.add(digest_of(1), 0), BadParameters);
  EXPECT_THROW(table.add(digest_of(1), std::nan("")), BadParameters);
  EXPECT_FALSE(PriorTable(Prior::Kind::arrival).of(digest_of(1)).known());
}

// The quick way is the model's.
TEST(PosteriorCache, EqualsTheSumOverAges) {
  for (const Anchor anchor : {Anchor::refreshed, Anchor::delivered}) {
    PosteriorCache cache(90, 10, 9, anchor);
    for (int round = 0; round < 2; ++round) {
      for (const double chance : {1e-4, 0.003, 0.2, 0.9}) {
        for (const Prior& prior : {Prior::arrival(chance), Prior::in_window(chance)}) {
          for (const model::AgeEvidence& evidence :
               {model::AgeEvidence{0, 4, 0.3, 0.3}, model::AgeEvidence{14, 24, 0.01, 0.01},
                model::AgeEvidence{84, 94, 0.2, 0.2}, model::AgeEvidence{44, 54, 0, 0.1}}) {
            if (anchor == Anchor::refreshed && evidence.inside != evidence.beyond) continue;
            for (const double ticks : {3.0, 20.0, 50.0, 90.0}) {
              const double rate = anchor == Anchor::refreshed ? 1 : 1.3;
              EXPECT_NEAR(cache.within(prior, evidence, 4, ticks, rate),
                          model::posterior_within(cache.age_prior(prior, 4, rate), evidence, ticks),
                          1e-9)
                  << chance << ' ' << evidence.from << ' ' << ticks;
            }
          }
        }
      }
    }
  }
}

// A chance to be in the window, told as such, comes out as such where the filter shows nothing.
TEST(PosteriorCache, AChanceToBeInTheWindowIsKept) {
  const model::AgeEvidence nothing{0, 0, 1, 1};
  for (const double chance : {0.01, 0.3, 0.8}) {
    PosteriorCache refreshed(1000, 10, 100, Anchor::refreshed);
    EXPECT_NEAR(refreshed.within(Prior::in_window(chance), nothing, 3, 1000, 1), chance, 1e-9);
    PosteriorCache delivered(1000, 10, 100, Anchor::delivered);
    EXPECT_NEAR(delivered.within(Prior::in_window(chance), nothing, 3, 1000, 1), chance, 1e-3);
  }
}

template <class F>
void expect_the_filters_verdicts(F made, F other, Anchor anchor) {
  InferredWindow<F> inferred(std::move(made), {.window = 600, .anchor = anchor});
  const std::uint64_t block = (600 + other.generations() - 1) / other.generations();
  std::uint64_t left = block;
  SplitMix64 random(1);
  unsigned duplicates = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Digest digest = digest_of(random.next() % 1500);
    Verdict verdict;
    const std::uint64_t before = left;
    other.admit(std::span(&digest, 1), std::span(&verdict, 1), left, anchor);
    if (left == 0) other.rotate(), left = block;
    const Judgement judgement = inferred.observe(digest, {}, {100, 1});
    ASSERT_EQ(judgement.verdict, verdict) << i << ' ' << before;
    EXPECT_EQ(judgement.posterior.has_value(), verdict == Verdict::distinct);
    duplicates += verdict == Verdict::duplicate;
  }
  EXPECT_GT(duplicates, 1000u);
  EXPECT_EQ(inferred.stats().inferred, 0u);
  EXPECT_EQ(inferred.stats().delivered, 20'000 - duplicates);
}

TEST(InferredWindow, WithoutAPriorVerdictsAreTheFilters) {
  const char* settings = "keys=600,fpr=0.05,generations=6";
  const auto cohort = [] {
    return Cohort::make(Cohort::Params::from({.keys = 600, .fpr = 0.02}, {}));
  };
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
    expect_the_filters_verdicts(timing(settings), timing(settings), anchor);
    expect_the_filters_verdicts(cohort(), cohort(), anchor);
  }
}

// Batches judge some keys ahead: without priors exactly as the filter does, with them as right as
// one by one.
template <class F>
void expect_batches_to_agree(const F& make) {
  using Window = InferredWindow<decltype(make())>;
  Window plain(make(), {.window = 3000}), batched(make(), {.window = 3000});
  Window inferred(make(), {.window = 3000}), one_by_one(make(), {.window = 3000});
  const std::vector<Prior> none(1), priors{Prior::arrival(1.0 / 8000)};
  const std::vector<Costs> costs{{10, 1}};
  SplitMix64 random(5);
  std::vector<Digest> digests(1000);
  std::vector<Judgement> judgements(1000);
  for (int round = 0; round < 60; ++round) {
    for (Digest& digest : digests) digest = digest_of(random.next() % 8000);
    batched.observe(digests, none, costs, judgements);
    for (std::size_t i = 0; i < digests.size(); ++i) {
      ASSERT_EQ(judgements[i].verdict, plain.observe(digests[i], {}, costs[0]).verdict);
      one_by_one.observe(digests[i], priors[0], costs[0]);
    }
    inferred.observe(digests, priors, costs, judgements);
  }
  const auto share = [](const Window& window) {
    EXPECT_EQ(window.stats().arrivals, 60'000u);
    EXPECT_GT(window.stats().passed, 100u);
    return window.stats().cost / double(window.stats().arrivals);
  };
  EXPECT_NEAR(share(inferred) / share(one_by_one), 1, 0.05);
}

TEST(InferredWindow, BatchesAreAsRight) {
  expect_batches_to_agree([] { return timing("keys=3000,fpr=0.2,generations=6"); });
  expect_batches_to_agree(
      [] { return Cohort::make(Cohort::Params::from({.keys = 3000, .fpr = 0.02}, {})); });
}

TEST(InferredWindow, ATableIsAskedForTheDuplicates) {
  const auto make = [] { return timing("keys=1000,fpr=0.3,generations=5"); };
  InferredWindow<Timing> by_table(make(), {.window = 1000}), by_prior(make(), {.window = 1000});
  PriorTable table(Prior::Kind::arrival);
  std::vector<Digest> digests;
  std::vector<Prior> priors;
  SplitMix64 random(6);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t key = random.next() % 2000;
    digests.push_back(digest_of(key));
    priors.push_back(key % 2 == 0 ? Prior::arrival(1e-5) : Prior{});
    if (key % 2 == 0) table.add(digests.back(), 1e-5);
  }
  const std::vector<Costs> costs{{1, 1}};
  std::vector<Judgement> first(5000), second(5000);
  by_table.observe(digests, table, costs, first);
  by_prior.observe(digests, priors, costs, second);
  for (std::size_t i = 0; i < digests.size(); ++i) ASSERT_EQ(first[i].verdict, second[i].verdict);
  EXPECT_GT(by_table.stats().passed, 10u);
}

// A key that was just seen is surely in the window; one of small prior with the same trace less so;
// and what is asked of a shorter past is less likely.
TEST(InferredWindow, RetrospectiveQueriesAndAges) {
  InferredWindow<Timing> window(timing("keys=1000,fpr=0.3,generations=10"),
                                {.window = 1000, .anchor = Anchor::refreshed});
  for (std::uint64_t key = 0; key < 3000; ++key) window.observe(digest_of(key), {}, {});
  const Prior rare = Prior::arrival(1e-5), frequent = Prior::arrival(1e-3);
  const Digest recent = digest_of(2600);  // 400 ticks old
  double before = 0;
  for (const std::uint64_t ticks : {1u, 200u, 399u, 500u, 700u, 1000u}) {
    const double chance = *window.within(recent, frequent, ticks);
    EXPECT_GE(chance, before);
    before = chance;
  }
  EXPECT_LT(*window.within(recent, frequent, 300), 0.01);
  EXPECT_GT(*window.within(recent, frequent, 500), 0.4);
  EXPECT_GT(*window.posterior(recent, frequent), *window.posterior(recent, rare));
  EXPECT_FALSE(window.posterior(recent, {}).has_value());
  EXPECT_THROW(window.within(recent, rare, 1001), BadParameters);
  const auto age = window.age(recent, frequent);
  EXPECT_NEAR(age->mode, 300, 101);
  EXPECT_GT(age->mean, 300);
  // Long gone, or never seen: no trace.
  unsigned traces = 0;
  for (std::uint64_t key = 5000; key < 5200; ++key) {
    const auto posterior = window.posterior(digest_of(key), {});
    traces += !posterior.has_value();
    if (posterior) {
      EXPECT_EQ(*posterior, 0);
      EXPECT_GE(window.age(digest_of(key), rare)->mode, 1000);
    }
  }
  EXPECT_LT(traces, 100u);
}

TEST(InferredWindow, SaysWhatItExpectsToCost) {
  InferredWindow<Timing> window(timing("keys=1000,bytes=600,probes=2,generations=5,timer=4"),
                                {.window = 1000});
  SplitMix64 random(3);
  for (int i = 0; i < 20'000; ++i)
    window.observe(digest_of(random.next() % 4000), Prior::arrival(1.0 / 4000), {10, 1});
  EXPECT_EQ(window.stats().arrivals, 20'000u);
  EXPECT_GT(window.stats().inferred, 1000u);
  EXPECT_GT(window.stats().passed, 100u);
  EXPECT_LT(window.stats().cost, window.stats().filter_cost);
  EXPECT_GT(window.stats().cost, 0);
}

TEST(InferredWindow, RefusesWindowsThatTheFilterCannotCover) {
  const char* settings = "keys=1000,fpr=0.01,generations=10";
  using Window = InferredWindow<Timing>;
  EXPECT_THROW(Window(timing(settings), {.window = 0}), BadParameters);
  EXPECT_THROW(Window(timing(settings), {.window = 1000, .block = 99}), BadParameters);
  EXPECT_THROW(Window(timing(settings), {.window = 1000, .block = 1001}), BadParameters);
  EXPECT_NO_THROW(Window(timing(settings), {.window = 1000, .block = 100}));
}

TEST(InferredSet, IsTheoremOne) {
  InferredSet<Bloom> set(
      Bloom::make({.bits = 4096, .probes = 2, .capacity = 2000, .target_fpr = 0.3}));
  for (std::uint64_t key = 0; key < 2000; ++key) set.observe(digest_of(key), {}, {});
  const double fpr = set.filter().stats().predicted_fpr;
  const Prior prior = Prior::arrival(1e-4);
  EXPECT_NEAR(*set.posterior(digest_of(5), prior), model::classic_posterior(1e-4, 2000, fpr), 0.02);
  EXPECT_FALSE(set.posterior(digest_of(5), {}).has_value());
  EXPECT_EQ(set.observe(digest_of(5), {}, {100, 1}).verdict, Verdict::duplicate);
  EXPECT_EQ(set.observe(digest_of(5), prior, {100, 1}).verdict, Verdict::distinct);
  EXPECT_EQ(set.observe(digest_of(5), prior, {1, 100}).verdict, Verdict::duplicate);
  unsigned absent = 0;
  for (std::uint64_t key = 9000; key < 9100; ++key)
    absent += set.posterior(digest_of(key), prior) == 0.0;
  EXPECT_GT(absent, 30u);
}

TEST(LearntPriors, KeepToTheirMemory) {
  EXPECT_THROW(LearntPriors({.window = 0}), BadParameters);
  EXPECT_THROW(LearntPriors({.window = 10, .bytes = 100}), BadParameters);
  LearntPriors priors({.window = 100'000, .anchor = Anchor::refreshed, .bytes = 20'000});
  EXPECT_LE(priors.bytes(), 20'000u);
  // While nothing is known, the prior is so high that only a key whose trace is itself too old is
  // passed.
  EXPECT_GT(priors.of(digest_of(1)).chance, 0.999);
  EXPECT_EQ(priors.sample(), 1u);
  SplitMix64 random(1);
  for (int i = 0; i < 300'000; ++i) priors.learn(digest_of(random.next()), {.delivered = true});
  // 2^17 slots would hold the window; there are 2^8, at most three quarters full.
  EXPECT_GE(priors.sample(), 512u);
  EXPECT_LE(priors.sample(), 2048u);
  EXPECT_LT(priors.of(digest_of(1)).chance, 0.1);
}

TEST(LearntPriors, AreTheShareInTheWindow) {
  LearntPriors priors({.window = 1000, .anchor = Anchor::refreshed});
  SplitMix64 random(1);
  const double share = 1 - std::pow(1 - 1.0 / 2000, 1000);
  for (int i = 0; i < 60'000; ++i) priors.learn(digest_of(random.next() % 2000), {});
  EXPECT_EQ(priors.sample(), 2u);
  double sum = 0;
  for (std::uint64_t key = 0; key < 2000; ++key) sum += priors.of(digest_of(key)).chance;
  // On purpose a little too high, and no more than that.
  EXPECT_GT(sum / 2000, share);
  EXPECT_LT(sum / 2000, share + 0.2);
}

// When verdicts with priors cost more than those without, they are withheld; and given again when
// they would cost less.
TEST(LearntPriors, AreWithheldWhileTheyDoHarm) {
  LearntPriors priors({.window = 1000, .anchor = Anchor::refreshed});
  const auto feed = [&](Verdict filter, Verdict inferred, int count) {
    for (int i = 0; i < count; ++i)
      priors.learn(digest_of(static_cast<std::uint64_t>(i) % 100),
                   {.filter = filter, .inferred = inferred, .costs = {1, 1}});
  };
  feed(Verdict::duplicate, Verdict::duplicate, 500);
  EXPECT_FALSE(priors.withheld());
  EXPECT_TRUE(priors.of(digest_of(1)).known());
  feed(Verdict::duplicate, Verdict::distinct, 500);
  EXPECT_TRUE(priors.withheld());
  EXPECT_FALSE(priors.of(digest_of(1)).known());
  EXPECT_TRUE(priors.estimate(digest_of(1)).known());
  feed(Verdict::distinct, Verdict::duplicate, 1000);
  EXPECT_FALSE(priors.withheld());
}

}  // namespace
}  // namespace sluice
