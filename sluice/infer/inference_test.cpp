#include "sluice/infer/inference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/infer/inferred.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::digest_of;

constexpr Nanoseconds kSecond = 1'000'000'000;

AnyFilter window_of(const char* filter, WindowSpec spec, Anchor anchor = Anchor::delivered) {
  return AnyFilter(
      Window::make({.spec = spec, .anchor = anchor, .filter = filter, .fpr = 0.1, .keys = 2000}));
}

constexpr WindowSpec kCount{WindowSpec::Kind::count, 2000};
constexpr WindowSpec kTime{WindowSpec::Kind::time, 20 * kSecond};

struct Judged {
  std::vector<Verdict> verdicts;
  std::vector<std::optional<double>> posteriors;
};

// 10,000 arrivals of 5,000 keys, 100 a second, in batches of up to `most`.
Judged run(AnyFilter& filter, bool learn, const Costs& costs, std::size_t most) {
  Inference inference(filter, nullptr, learn);
  SplitMix64 what(5), cut(most);
  const Prior prior = Prior::arrival(1.0 / 5000);
  const Inference::Known known{learn ? std::span<const Prior>() : std::span(&prior, 1),
                               {&costs, 1}};
  Judged all;
  Nanoseconds now = 1'000'000 * kSecond;
  for (std::size_t left = 10'000; left > 0;) {
    const std::size_t count = std::min<std::size_t>(left, 1 + cut.next() % most);
    std::vector<Digest> digests;
    std::vector<Nanoseconds> times;
    for (std::size_t i = 0; i < count; ++i) {
      digests.push_back(digest_of(what.next() % 5000));
      times.push_back(now += static_cast<Nanoseconds>(what.next() % (kSecond / 50)));
    }
    std::vector<Verdict> verdicts(count);
    std::vector<std::optional<double>> posteriors(count);
    const auto late = std::make_unique<bool[]>(count);
    const std::size_t judged = filter.window() != nullptr
                                   ? inference.judge(digests, times, known, verdicts,
                                                     std::span(late.get(), count), posteriors)
                                   : inference.observe(digests, known, verdicts, posteriors);
    EXPECT_EQ(judged, count);
    all.verdicts.insert(all.verdicts.end(), verdicts.begin(), verdicts.end());
    all.posteriors.insert(all.posteriors.end(), posteriors.begin(), posteriors.end());
    left -= count;
  }
  return all;
}

TEST(Inference, BatchesMakeNoDifference) {
  for (const WindowSpec& spec : {kCount, kTime})
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed})
      for (const bool learn : {false, true}) {
        AnyFilter whole = window_of("timing", spec, anchor),
                  cut = window_of("timing", spec, anchor);
        const Costs costs{3, 1};
        const Judged a = run(whole, learn, costs, 512), b = run(cut, learn, costs, 5);
        EXPECT_EQ(a.verdicts, b.verdicts);
        EXPECT_EQ(a.posteriors, b.posteriors);
        EXPECT_EQ(bytes_of(whole), bytes_of(cut));
        EXPECT_GT(std::ranges::count_if(a.posteriors, [](auto& p) { return p && *p > 0; }), 1000);
      }
}

TEST(Inference, BatchesMakeNoDifferenceToASet) {
  AnyFilter whole = make_filter("bloom,bytes=1KiB", {}), cut = make_filter("bloom,bytes=1KiB", {});
  const Costs costs{100, 1};
  EXPECT_EQ(run(whole, false, costs, 512).posteriors, run(cut, false, costs, 5).posteriors);
}

TEST(Inference, WithoutCostsTheFilterJudges) {
  for (const WindowSpec& spec : {kCount, kTime})
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
      AnyFilter asked = window_of("timing", spec, anchor),
                plain = window_of("timing", spec, anchor);
      const Judged judged = run(asked, false, Inference::kFilterAlone, 512);
      // The same arrivals.
      SplitMix64 what(5);
      Nanoseconds now = 1'000'000 * kSecond;
      std::vector<Verdict> expected(judged.verdicts.size());
      for (Verdict& verdict : expected) {
        const Digest digest = digest_of(what.next() % 5000);
        now += static_cast<Nanoseconds>(what.next() % (kSecond / 50));
        bool late = false;
        EXPECT_EQ(plain.window()->judge({&digest, 1}, {&now, 1}, {&verdict, 1}, {&late, 1}), 1u);
      }
      EXPECT_EQ(judged.verdicts, expected);
      EXPECT_EQ(bytes_of(asked), bytes_of(plain));
    }
}

// One layer says what the other does: a window by name, and one of a filter's own type.
template <class F>
void expect_as_inferred_window(const char* settings, Anchor anchor, bool learn) {
  AnyFilter any = window_of(settings, kCount, anchor);
  const F& same = *any.window()->growth().newest().as<F>();
  InferredWindow<F> window(F::make(same.params()), {.window = kCount.size, .anchor = anchor});
  LearntPriors learnt({.window = kCount.size, .anchor = anchor});
  const Costs costs{3, 1};
  const Judged judged = run(any, learn, costs, 512);
  SplitMix64 what(5);
  std::size_t passed = 0;
  for (std::size_t i = 0; i < judged.verdicts.size(); ++i) {
    const Digest digest = digest_of(what.next() % 5000);
    what.next();
    const Judgement judgement = learn ? window.observe(digest, learnt, costs)
                                      : window.observe(digest, Prior::arrival(1.0 / 5000), costs);
    ASSERT_EQ(judged.verdicts[i], judgement.verdict) << settings << ' ' << i;
    ASSERT_EQ(judged.posteriors[i].has_value(), judgement.posterior.has_value()) << i;
    ASSERT_NEAR(judged.posteriors[i].value_or(-1), judgement.posterior.value_or(-1), 1e-9) << i;
    passed += judgement.posterior > 0.0 && judgement.verdict == Verdict::distinct;
  }
  EXPECT_GT(passed, 50u) << settings;
}

TEST(Inference, IsThatOfInferredWindow) {
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed})
    for (const bool learn : {false, true}) {
      expect_as_inferred_window<Timing>("timing", anchor, learn);
      expect_as_inferred_window<Cohort>("cohort,slot=16", anchor, learn);
    }
}

TEST(Inference, OfASetIsThatOfInferredSet) {
  AnyFilter any = make_filter("bloom,layout=classic,bytes=1KiB", {.fpr = 0.1});
  InferredSet<Bloom> set(Bloom::make(any.as<Bloom>()->params()));
  const Costs costs{100, 1};
  const Judged judged = run(any, false, costs, 512);
  SplitMix64 what(5);
  for (std::size_t i = 0; i < judged.verdicts.size(); ++i) {
    const Digest digest = digest_of(what.next() % 5000);
    what.next();
    const Judgement judgement = set.observe(digest, Prior::arrival(1.0 / 5000), costs);
    ASSERT_EQ(judged.verdicts[i], judgement.verdict) << i;
    ASSERT_EQ(judged.posteriors[i].value(), judgement.posterior.value()) << i;
  }
}

TEST(Inference, RecordsAndTablesGivePriorsAndWithoutThemTheFilterJudges) {
  AnyFilter filter = window_of("cohort", kCount);
  PriorTable table(Prior::Kind::arrival);
  table.add(digest_of(1), 1e-3);
  Inference inference(filter, &table, false);
  const std::vector<Digest> digests = {digest_of(1), digest_of(2), digest_of(3),
                                       digest_of(1), digest_of(2), digest_of(3)};
  const std::vector<Prior> priors = {{}, {}, {}, {}, Prior::arrival(1e-4), {}};
  const std::vector<Costs> costs(6, Costs{1, 1});
  std::vector<Verdict> verdicts(6);
  std::vector<std::optional<double>> posteriors(6);
  inference.observe(digests, {priors, costs}, verdicts, posteriors);
  EXPECT_EQ(posteriors[0], 0.0);
  EXPECT_GT(posteriors[3].value(), 0.9);
  EXPECT_GT(posteriors[4].value(), 0.9);
  EXPECT_FALSE(posteriors[5].has_value());
  EXPECT_EQ(verdicts[5], Verdict::duplicate);
  EXPECT_EQ(inference.stats().inferred, 2u);
  EXPECT_EQ(inference.stats().without_prior, 1u);
}

// Records of one moment: a key that came in the same second is no stranger's for that.
TEST(Inference, ClocksMayBeCoarse) {
  AnyFilter filter = window_of("cohort,slot=16", kTime);
  Inference inference(filter, nullptr, false);
  SplitMix64 random(3);
  const Costs costs{1, 1};
  const Prior prior = Prior::arrival(1e-3);
  std::size_t repeats = 0, passed = 0;
  for (Nanoseconds second = 0; second < 200; ++second) {
    std::vector<Digest> digests;
    for (int i = 0; i < 50; ++i) digests.push_back(digest_of(random.next() % 1000));
    // Each a second time at once.
    for (int i = 0; i < 50; ++i) digests.push_back(digests[static_cast<std::size_t>(i)]);
    const std::vector<Nanoseconds> times(digests.size(), second * kSecond);
    std::vector<Verdict> verdicts(digests.size());
    std::vector<std::optional<double>> posteriors(digests.size());
    const auto late = std::make_unique<bool[]>(digests.size());
    EXPECT_EQ(inference.judge(digests, times, {{&prior, 1}, {&costs, 1}}, verdicts,
                              std::span(late.get(), digests.size()), posteriors),
              digests.size());
    for (std::size_t i = 50; i < 100; ++i)
      if (verdicts[i - 50] == Verdict::distinct) {
        ++repeats;
        passed += verdicts[i] == Verdict::distinct;
      }
  }
  EXPECT_GT(repeats, 1000u);
  EXPECT_EQ(passed, 0u);
}

TEST(Inference, NamesTheFiltersThatCan) {
  const auto refused = [](AnyFilter filter, const char* words) {
    const auto why = Inference::refusal(filter);
    ASSERT_TRUE(why.has_value());
    EXPECT_NE(why->find(words), std::string::npos) << *why;
    EXPECT_THROW(Inference(filter, nullptr, true), BadParameters);
  };
  refused(make_filter("growing", {}), "bloom");
  refused(make_filter("exact", {}), "'exact'");
  refused(window_of("apbf", kCount), "cohort and timing");
  refused(window_of("cohort", {WindowSpec::Kind::landmark, 3600u * 1'000'000'000u}), "slides");
  EXPECT_FALSE(Inference::refusal(window_of("timing", kTime)).has_value());
  EXPECT_FALSE(Inference::refusal(make_filter("bloom", {.keys = 100})).has_value());
}

TEST(WindowEvidence, TwoTracesAreTheKeysOrStrangers) {
  const model::AgeEvidence young{.from = 10, .to = 20, .inside = 0, .beyond = 0.01};
  const model::AgeEvidence old{.from = 50, .to = 60, .inside = 0, .beyond = 0.04};
  const model::AgeEvidence all = both(old, young, Anchor::delivered, 120);
  EXPECT_EQ(all.from, 10);
  EXPECT_EQ(all.to, 20);
  EXPECT_EQ(all.beyond, 0.01);
  // As old as the other, with the young one a stranger's: .01 against .04, over 10 ages of 100.
  EXPECT_NEAR(all.inside, 0.01 / 0.04 * 10 / 100, 1e-12);
  EXPECT_EQ(both(young, old, Anchor::refreshed, 120).inside, 0);
}

TEST(LearntPriors, TimePassesByTheClock) {
  LearntPriors priors({.window = 1000, .bytes = 4 << 10, .by_time = true});
  // All keys of a round come again in the next, 2,000 ticks later: never inside.
  for (std::uint64_t round = 1; round <= 50; ++round) {
    priors.arrive(round * 2000);
    for (std::uint64_t key = 0; key < 40; ++key) priors.learn(digest_of(key), {.delivered = true});
  }
  priors.arrive(51 * 2000);
  ASSERT_TRUE(priors.estimate(digest_of(1)).known());
  EXPECT_LT(priors.estimate(digest_of(1)).chance, 0.05);
  // Then they come again at once.
  for (int again = 0; again < 60; ++again)
    for (std::uint64_t key = 0; key < 40; ++key) priors.learn(digest_of(key), {.delivered = true});
  EXPECT_GT(priors.estimate(digest_of(1)).chance, 0.9);
  priors.arrive(1);  // back: not followed
  EXPECT_GT(priors.estimate(digest_of(1)).chance, 0.9);
}

}  // namespace
}  // namespace sluice
