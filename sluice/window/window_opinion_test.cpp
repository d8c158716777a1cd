// A second opinion on what the filter takes for duplicates.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/cohort/cohort.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::digest_of;

constexpr Nanoseconds kSecond = 1'000'000'000;

struct Case {
  const char* filter;
  WindowSpec spec;
  Anchor anchor;
};

Window make(const Case& each) {
  return Window::make({.spec = each.spec, .anchor = each.anchor, .filter = each.filter});
}

// A stream of few keys, with times that go back now and then, be it a tick or too far.
struct Batch {
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
};

std::vector<Batch> stream(std::uint64_t seed, std::size_t records, std::size_t most) {
  SplitMix64 what(1), cut(seed);
  std::vector<Batch> batches;
  Nanoseconds now = 1'000'000 * kSecond;
  for (std::size_t left = records; left > 0;) {
    Batch& batch = batches.emplace_back();
    const std::size_t count = std::min<std::size_t>(left, 1 + cut.next() % most);
    for (std::size_t i = 0; i < count; ++i) {
      now += static_cast<Nanoseconds>(what.next() % (kSecond / 50));
      const std::uint64_t odd = what.next() % 200;
      batch.digests.push_back(digest_of(what.next() % 1500));
      batch.times.push_back(odd == 0 ? now - 30 * kSecond : odd < 20 ? now - kSecond / 2 : now);
    }
    left -= count;
  }
  return batches;
}

struct Outcome {
  std::vector<Verdict> verdicts;
  std::vector<bool> late;
};

Outcome judge(Window& window, const std::vector<Batch>& batches,
              const Window::SecondOpinion* opinion) {
  Outcome all;
  for (const Batch& batch : batches) {
    const std::size_t count = batch.digests.size();
    std::vector<Verdict> verdicts(count);
    const auto late = std::make_unique<bool[]>(count);
    if (opinion == nullptr)
      EXPECT_EQ(window.judge(batch.digests, batch.times, verdicts, std::span(late.get(), count)),
                count);
    else
      EXPECT_EQ(window.judge(batch.digests, batch.times, verdicts, std::span(late.get(), count),
                             *opinion),
                count);
    all.verdicts.insert(all.verdicts.end(), verdicts.begin(), verdicts.end());
    all.late.insert(all.late.end(), late.get(), late.get() + count);
  }
  return all;
}

class SecondOpinion : public testing::TestWithParam<Case> {};

TEST_P(SecondOpinion, ThatAgreesChangesNothing) {
  Window plain = make(GetParam()), asked = make(GetParam());
  std::size_t asks = 0;
  const Window::SecondOpinion agree = [&](std::size_t) {
    ++asks;
    return Verdict::duplicate;
  };
  const Outcome expected = judge(plain, stream(2, 20'000, 400), nullptr);
  const Outcome outcome = judge(asked, stream(3, 20'000, 30), &agree);
  EXPECT_EQ(outcome.verdicts, expected.verdicts);
  EXPECT_EQ(outcome.late, expected.late);
  EXPECT_GT(asks, 1000u);
  // Where a cohort puts a key depends on the batch; what it knows does not.
  EXPECT_EQ(asked.stats().keys, plain.stats().keys);
  for (std::uint64_t key = 0; key < 1500; ++key)
    EXPECT_EQ(asked.may_contain(digest_of(key)), plain.may_contain(digest_of(key)));
}

// From then on: the window runs from the record that was let through.
TEST_P(SecondOpinion, ThatDisagreesLetsThroughAndIsRemembered) {
  Window window = make(GetParam());
  const Window::SecondOpinion disagree = [](std::size_t) { return Verdict::distinct; };
  Nanoseconds now = 1'000'000 * kSecond;
  std::uint64_t other = 10'000;
  const auto judge_key = [&](const Window::SecondOpinion* opinion) {
    return judge(window, {{{digest_of(1)}, {now}}}, opinion).verdicts.front();
  };
  // Nearly a window of others.
  const auto pass = [&] {
    for (int i = 0; i < 480; ++i)
      judge(window, {{{digest_of(++other)}, {now += kSecond / 50}}}, &disagree);
  };
  EXPECT_EQ(judge_key(nullptr), Verdict::distinct);
  pass();
  EXPECT_EQ(judge_key(&disagree), Verdict::distinct);
  pass();
  EXPECT_EQ(judge_key(nullptr), Verdict::duplicate);
}

TEST_P(SecondOpinion, IsAskedInOrderHoweverBatchesAreCut) {
  const auto run = [&](std::uint64_t seed, std::size_t most) {
    Window window = make(GetParam());
    // Every third is let through: what follows depends on it.
    std::size_t asks = 0;
    const Window::SecondOpinion third = [&](std::size_t) {
      return ++asks % 3 == 0 ? Verdict::distinct : Verdict::duplicate;
    };
    const Outcome outcome = judge(window, stream(seed, 10'000, most), &third);
    return std::pair(outcome.verdicts, bytes_of(window));
  };
  const auto whole = run(2, 512), cut = run(3, 7);
  EXPECT_EQ(whole.first, cut.first);
  EXPECT_EQ(whole.second, cut.second);
}

constexpr WindowSpec kCount{WindowSpec::Kind::count, 500};
constexpr WindowSpec kTiny{WindowSpec::Kind::count, 1};
constexpr WindowSpec kTime{WindowSpec::Kind::time, 10 * kSecond};

INSTANTIATE_TEST_SUITE_P(, SecondOpinion,
                         testing::Values(Case{"cohort", kCount, Anchor::delivered},
                                         Case{"cohort", kCount, Anchor::refreshed},
                                         Case{"timing,fpr=0.1", kCount, Anchor::delivered},
                                         Case{"timing,fpr=0.1", kCount, Anchor::refreshed},
                                         Case{"exact-window", kCount, Anchor::delivered},
                                         Case{"cohort", kTime, Anchor::delivered},
                                         Case{"cohort", kTime, Anchor::refreshed},
                                         Case{"timing,fpr=0.1", kTime, Anchor::delivered},
                                         Case{"exact-window", kTime, Anchor::refreshed}));

TEST(SecondOpinionOnce, SeesTheKeyAsItIsRemembered) {
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
    Window window = make({"cohort,generations=4", {WindowSpec::Kind::count, 8}, anchor});
    std::vector<Digest> digests;
    for (const std::uint64_t key : {1, 2, 3, 4, 5, 1, 1}) digests.push_back(digest_of(key));
    std::vector<Verdict> verdicts(digests.size());
    std::vector<std::pair<std::size_t, unsigned>> seen;
    window.observe(digests, verdicts, [&](std::size_t i) {
      const auto* cohort = window.growth().newest().as<Cohort>();
      seen.emplace_back(i, *cohort->age_of(digests[i]));
      return Verdict::duplicate;
    });
    // Two keys per generation: the first is two generations old, and new only if repeats restart
    // it.
    const bool refreshed = anchor == Anchor::refreshed;
    EXPECT_EQ(seen,
              (std::vector<std::pair<std::size_t, unsigned>>{{5, 2}, {6, refreshed ? 1u : 2u}}));
  }
}

TEST(SecondOpinionOnce, AWindowOfOneKeyGoesOn) {
  Window window = make({"cohort", kTiny, Anchor::delivered});
  std::vector<Digest> digests(10, digest_of(1));
  std::vector<Verdict> verdicts(digests.size());
  window.observe(digests, verdicts, [](std::size_t) { return Verdict::distinct; });
  EXPECT_EQ(verdicts, std::vector<Verdict>(10, Verdict::distinct));
}

}  // namespace
}  // namespace sluice
