#include "sluice/cluster/filter_slices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/cluster/local_filter.hpp"
#include "sluice/cluster/slice_map.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_slices.hpp"

namespace sluice::cluster {
namespace {

using model::FaultRule;
using testing_support::digest_of;
using testing_support::expect_truth_forever;
using testing_support::expect_truth_in_window;
using testing_support::judge;
using testing_support::timed_stream;
using Filters = std::vector<std::shared_ptr<LocalFilter>>;

constexpr std::int64_t kStart = 1'700'000'000'000;
constexpr std::int64_t kWindowMs = 60'000;
// 1/24 of the window, and a bit.
constexpr double kSlack = 0.05;
constexpr std::int64_t kForgottenMs = 63'000;
constexpr WindowSpec kMinute = {WindowSpec::Kind::time, kWindowMs * 1'000'000};

AnyFilter exact_window(const WindowSpec& spec) {
  return AnyFilter(Window::make({.spec = spec, .filter = "exact-window"}));
}

Filters windows(std::size_t count) {
  Filters filters;
  for (std::size_t i = 0; i < count; ++i)
    filters.push_back(std::make_shared<LocalFilter>(exact_window(kMinute)));
  return filters;
}

Filters sets(std::size_t count, const char* name = "exact") {
  Filters filters;
  for (std::size_t i = 0; i < count; ++i)
    filters.push_back(std::make_shared<LocalFilter>(make_filter(name, {})));
  return filters;
}

FilterSlices slices_on(const Filters& filters, FaultRule rule = {},
                       std::optional<WindowSpec> window = {}) {
  return FilterSlices({.window = window, .slack = kSlack, .rule = rule}, connect(filters));
}

std::vector<Digest> keys(std::uint64_t first, std::size_t count) {
  std::vector<Digest> digests;
  for (std::size_t i = 0; i < count; ++i) digests.push_back(digest_of(first + i));
  return digests;
}

// All at one time; 0: none.
std::size_t duplicates(FilterSlices& slices, const std::vector<Digest>& digests,
                       std::int64_t at_ms = 0) {
  std::vector<Verdict> verdicts(digests.size());
  slices.may_contain(digests, std::vector(at_ms == 0 ? 0 : digests.size(), at_ms), verdicts);
  return count_duplicates(verdicts);
}

std::size_t observed(FilterSlices& slices, const std::vector<Digest>& digests,
                     std::int64_t at_ms = 0) {
  std::vector<Verdict> verdicts(digests.size());
  slices.observe(digests, std::vector(at_ms == 0 ? 0 : digests.size(), at_ms), verdicts);
  return count_duplicates(verdicts);
}

TEST(FilterSlices, JudgeAsExactTruthForever) {
  SplitMix64 random(11);
  std::vector<Digest> stream;
  for (int i = 0; i < 20'000; ++i) stream.push_back(digest_of(random.next() % 6000));
  for (const std::size_t sites : {1u, 3u, 16u})
    for (const std::size_t batch : {1u, 100u, 20'000u}) {
      FilterSlices slices = slices_on(sets(sites));
      expect_truth_forever(stream, judge(slices, stream, {}, batch));
      EXPECT_EQ(slices.traffic().keys, stream.size());
      EXPECT_EQ(slices.ruled(), 0u);
    }
}

// Repeats at all distances, and times that go back by up to five seconds.
TEST(FilterSlices, JudgeAsExactTruthInAWindowOfTime) {
  const auto stream = timed_stream({.seed = 5,
                                    .records = 30'000,
                                    .keys = 3000,
                                    .start_ms = kStart,
                                    .step_ms = 30,
                                    .jitter_ms = 5000});
  for (const std::size_t sites : {1u, 3u, 16u})
    for (const std::size_t batch : {1u, 500u, 30'000u}) {
      FilterSlices slices = slices_on(windows(sites), {}, kMinute);
      const auto verdicts = judge(slices, stream.digests, stream.times_ms, batch);
      expect_truth_in_window(stream, verdicts, kWindowMs, kForgottenMs);
    }
}

TEST(FilterSlices, AskingChangesNothingAndInsertingRemembers) {
  const Filters filters = windows(4);
  FilterSlices slices = slices_on(filters, {}, kMinute);
  const std::vector<Digest> some = keys(0, 100);
  EXPECT_EQ(duplicates(slices, some, kStart), 0u);
  EXPECT_EQ(duplicates(slices, some, kStart), 0u);
  slices.insert(some, std::vector(some.size(), kStart));
  EXPECT_EQ(duplicates(slices, some, kStart + 1), 100u);
  // Another producer sees the same, and asks at any time.
  FilterSlices other = slices_on(filters, {}, kMinute);
  EXPECT_EQ(duplicates(other, some, kStart + 1), 100u);
  EXPECT_EQ(duplicates(other, some, kStart + kForgottenMs), 0u);
  EXPECT_EQ(duplicates(other, some, kStart + 1), 100u);
}

TEST(FilterSlices, ShareTheKeysEvenlyAndCountThem) {
  const Filters filters = sets(8);
  FilterSlices slices = slices_on(filters);
  // 2000 per site, standard error 42.
  EXPECT_EQ(observed(slices, keys(0, 16'000)), 0u);
  for (const auto& filter : filters) EXPECT_NEAR(static_cast<double>(filter->keys()), 2000, 5 * 42);
  const auto load = slices.load();
  EXPECT_EQ(std::accumulate(load.begin(), load.end(), std::uint64_t{0}), 16'000u);
  for (std::size_t i = 0; i < filters.size(); ++i) EXPECT_EQ(load[i], filters[i]->keys());
  EXPECT_EQ(slices.traffic().lookups, 16'000u);
  EXPECT_EQ(slices.traffic().sets, 0u);
  EXPECT_EQ(slices.traffic().requests, 4u * 8);  // four batches
  slices.insert(keys(0, 10), {});
  EXPECT_EQ(slices.traffic().sets, 10u);
  // Where horizontal slices put it.
  const SliceMap map({Slicing::horizontal, 800, 4, 8, 1, 1});
  for (const Digest& digest : keys(0, 100)) EXPECT_EQ(map.claim_site(digest), site_of(digest, 8));
}

// --- sites that do not answer --------------------------------------------------------------------

TEST(FilterSlices, KeysOfAFailedSiteCountAsTheRuleSays) {
  for (const bool late : {false, true}) {
    const Filters filters = sets(5);
    FilterSlices as_duplicate = slices_on(filters);
    FilterSlices as_distinct = slices_on(filters, FaultRule::distinct(1));
    const std::vector<Digest> seen = keys(0, 500), fresh = keys(1000, 500);
    as_duplicate.insert(seen, {});
    const auto at_two = [](const Digest& digest) { return site_of(digest, 5) == 2; };
    const auto of_seen = static_cast<std::size_t>(std::ranges::count_if(seen, at_two));
    const auto of_fresh = static_cast<std::size_t>(std::ranges::count_if(fresh, at_two));
    late ? filters[2]->be_late(true) : filters[2]->fail();
    EXPECT_EQ(duplicates(as_duplicate, seen), 500u);
    EXPECT_EQ(duplicates(as_duplicate, fresh), of_fresh);
    EXPECT_EQ(duplicates(as_distinct, seen), 500u - of_seen);
    EXPECT_EQ(duplicates(as_distinct, fresh), 0u);
    EXPECT_EQ(as_distinct.ruled(), of_seen + of_fresh);
    EXPECT_EQ(as_distinct.traffic().unanswered, 2u);
    // Nothing was missed: it is believed as soon as it answers.
    late ? filters[2]->be_late(false) : filters[2]->come_back();
    EXPECT_EQ(duplicates(as_duplicate, fresh), 0u);
    EXPECT_EQ(duplicates(as_distinct, seen), 500u);
    EXPECT_TRUE(as_duplicate.trusted(2));
  }
}

// What was inserted or observed in vain is let through by a site that has never heard of it.
TEST(FilterSlices, ASiteThatMissedAKeyIsDoubtedForAWindow) {
  for (const bool insert : {false, true})
    for (const bool late : {false, true}) {
      const Filters filters = windows(3);
      FilterSlices slices = slices_on(filters, {}, kMinute);
      observed(slices, keys(0, 100), kStart);
      late ? filters[1]->be_late(true) : filters[1]->fail();
      if (insert)
        slices.insert(keys(100, 100), std::vector(100, kStart + 10));
      else
        observed(slices, keys(100, 100), kStart + 10);
      late ? filters[1]->be_late(false) : filters[1]->come_back();
      EXPECT_FALSE(slices.trusted(1));
      EXPECT_TRUE(slices.trusted(0) && slices.trusted(2));
      // It is not believed that these are new; and they are remembered.
      EXPECT_EQ(duplicates(slices, keys(100, 100), kStart + 20), 100u);
      const std::size_t held = observed(slices, keys(1000, 300), kStart + 10 + kForgottenMs - 1);
      EXPECT_EQ(held, static_cast<std::size_t>(std::ranges::count_if(
                          keys(1000, 300), [](const Digest& d) { return site_of(d, 3) == 1; })));
      EXPECT_FALSE(slices.trusted(1));
      EXPECT_EQ(observed(slices, keys(2000, 300), kStart + 10 + kForgottenMs), 0u);
      EXPECT_TRUE(slices.trusted(1));
      // An event of before is still doubted.
      EXPECT_GT(duplicates(slices, keys(3000, 100), kStart + 9 + kForgottenMs), 0u);
    }
}

TEST(FilterSlices, ASiteThatCameBackEmptyIsDoubtedForAWindow) {
  const Filters filters = windows(3);
  FilterSlices slices = slices_on(filters, {}, kMinute);
  FilterSlices careless = slices_on(filters, FaultRule::distinct(1), kMinute);
  const std::vector<Digest> seen = keys(0, 300);
  observed(slices, seen, kStart);
  filters[0]->come_back_empty();

  EXPECT_LT(duplicates(careless, seen, kStart + 5), 250u);
  // Its first answer already is not believed.
  EXPECT_EQ(observed(slices, seen, kStart + 5), 300u);
  EXPECT_FALSE(slices.trusted(0));
  EXPECT_FALSE(careless.trusted(0));
  // What it says to be a duplicate is one.
  EXPECT_EQ(duplicates(careless, seen, kStart + 6), 300u);
  EXPECT_EQ(observed(slices, keys(500, 300), kStart + 5 + kForgottenMs), 0u);
  EXPECT_TRUE(slices.trusted(0));
  EXPECT_EQ(observed(slices, keys(500, 300), kStart + 6 + kForgottenMs), 300u);
}

TEST(FilterSlices, WhatNeverForgetsIsDoubtedUntilItIsTrusted) {
  for (const bool counts : {false, true}) {
    const WindowSpec many = {WindowSpec::Kind::count, 100'000};
    const Filters filters =
        counts ? Filters{std::make_shared<LocalFilter>(exact_window(many))} : sets(2);
    FilterSlices slices =
        slices_on(filters, {}, counts ? std::optional(many) : std::optional<WindowSpec>());
    // Times are ignored.
    observed(slices, keys(0, 100), kStart);
    filters[0]->come_back_empty();
    EXPECT_EQ(observed(slices, keys(0, 100), kStart), 100u);
    observed(slices, keys(5000, 100), kStart * 2);
    EXPECT_FALSE(slices.trusted(0));
    slices.trust(0);
    EXPECT_TRUE(slices.trusted(0));
    EXPECT_EQ(duplicates(slices, keys(0, 100)), 100u);
    EXPECT_EQ(duplicates(slices, keys(9000, 100)), 0u);
  }
}

// One that could not be reached at first has lost nothing that this producer knows of.
TEST(FilterSlices, ASiteThatIsMetLaterIsBelieved) {
  const Filters filters = sets(2);
  filters[1]->fail();
  FilterSlices slices = slices_on(filters);
  filters[1]->come_back();
  EXPECT_EQ(duplicates(slices, keys(0, 100)), 0u);
  EXPECT_TRUE(slices.trusted(1));
}

// Half the keys of every request have another answer.
class HalfASite final : public FilterSite {
 public:
  HalfASite(std::shared_ptr<LocalFilter> filter, Answer answer)
      : site_(std::move(filter)), answer_(answer) {}
  void send(const Request& request) override { site_.send(request); }
  Reply receive(std::span<Answer> answers) override {
    const Reply reply = site_.receive(answers);
    for (std::size_t i = 0; i < answers.size(); i += 2) answers[i] = answer_;
    return reply;
  }

 private:
  LocalFilterSite site_;
  Answer answer_;
};

TEST(FilterSlices, AKeyWithoutAnAnswerCountsAsTheRuleSays) {
  for (const Answer answer : {Answer::none, Answer::refused})
    for (const FaultRule rule : {FaultRule::duplicate(), FaultRule::distinct(1)}) {
      std::vector<std::unique_ptr<FilterSite>> sites;
      sites.push_back(std::make_unique<HalfASite>(windows(1)[0], answer));
      FilterSlices slices({.window = kMinute, .slack = kSlack, .rule = rule}, std::move(sites));
      const std::size_t held = rule.least_live == 0 ? 50 : 0;
      EXPECT_EQ(duplicates(slices, keys(0, 100), kStart), held);
      EXPECT_EQ(slices.ruled(), 50u);
      EXPECT_TRUE(slices.trusted(0));
      // What it should remember and does not puts all in doubt; what it never takes does not.
      const bool doubted = answer == Answer::none;
      EXPECT_EQ(observed(slices, keys(0, 100), kStart), doubted ? 2 * held : held);
      EXPECT_NE(slices.trusted(0), doubted);
      EXPECT_EQ(slices.traffic().unanswered, 0u);
    }
}

// A clock that is wrong by years ends no doubt and makes none that lasts for years; nor does the
// first time of all.
TEST(FilterSlices, OneWrongClockMovesNoDoubt) {
  for (const std::int64_t wrong : {kStart * 2, kStart / 1000})
    for (const bool first : {false, true}) {
      const Filters filters = windows(1);
      FilterSlices slices = slices_on(filters, {}, kMinute);
      filters[0]->fail();
      if (first) observed(slices, keys(50, 1), wrong);
      observed(slices, keys(0, 10), kStart);
      if (!first) observed(slices, keys(50, 1), wrong);
      filters[0]->come_back();
      observed(slices, keys(100, 10), kStart + kForgottenMs - 1);
      EXPECT_FALSE(slices.trusted(0));
      observed(slices, keys(200, 10), kStart + kForgottenMs);
      EXPECT_TRUE(slices.trusted(0));
    }
}

std::string why_refused(const FilterSlices::Options& options, std::size_t sites) {
  try {
    FilterSlices(options, connect(sets(sites)));
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "not refused";
}

TEST(FilterSlices, RefuseWhatCannotBe) {
  EXPECT_EQ(why_refused({.window = WindowSpec{WindowSpec::Kind::count, 1000}}, 3),
            "filter slices: a window of a count over 3 sites: each would count only its own part "
            "of the stream; give a window of time, or one site");
  EXPECT_NE(why_refused({.rule = FaultRule::hybrid(2)}, 3).find("hybrid"), std::string::npos);
  EXPECT_NE(why_refused({}, 0).find("0 sites"), std::string::npos);
  EXPECT_NE(why_refused({.slack = -1}, 1).find("`slack`"), std::string::npos);
  FilterSlices slices = slices_on(windows(2), {}, kMinute);
  std::vector<Verdict> verdicts(3);
  const std::vector<std::int64_t> two(2, kStart), absurd(3, kStart * 1000);
  EXPECT_THROW(slices.observe(keys(0, 3), {}, verdicts), BadParameters);
  EXPECT_THROW(slices.observe(keys(0, 3), two, verdicts), BadParameters);
  EXPECT_THROW(slices.observe(keys(0, 3), absurd, verdicts), BadParameters);
  EXPECT_THROW(slices.observe(keys(0, 4), std::vector(4, kStart), verdicts), BadParameters);
  EXPECT_EQ(slices.traffic().keys, 0u);
}

}  // namespace
}  // namespace sluice::cluster
