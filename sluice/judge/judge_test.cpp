#include "sluice/judge/judge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/none.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

constexpr Nanoseconds kSecond = 1'000'000'000;

Hasher hasher() {
  return {HashKind::xxh3, Secret::from_seed(3)};
}

AnyFilter window(WindowSpec spec, double fpr = 1e-6) {
  return AnyFilter(Window::make({.spec = spec, .filter = "cohort", .fpr = fpr}));
}

constexpr WindowSpec kTenSeconds{WindowSpec::Kind::time, 10 * kSecond};

std::vector<std::string> some_keys(std::size_t count, std::uint64_t seed, std::uint64_t range) {
  SplitMix64 random(seed);
  std::vector<std::string> keys(count);
  std::ranges::generate(keys, [&] { return "key-" + std::to_string(random.next() % range); });
  return keys;
}

TEST(Judge, LetsEachKeyThroughOnce) {
  Judge judge(hasher(), make_filter("exact", {}));
  EXPECT_EQ(judge.judge("a"), Verdict::distinct);
  EXPECT_EQ(judge.judge("b"), Verdict::distinct);
  EXPECT_EQ(judge.judge("a"), Verdict::duplicate);
}

TEST(Judge, SpansOfOtherLengthsAreRefused) {
  Judge judge(hasher(), window(kTenSeconds));
  const std::vector<std::string_view> keys{"a", "b", "c"};
  const std::vector<Digest> digests(3);
  const std::vector<Nanoseconds> times(3, kSecond);
  std::vector<Verdict> verdicts(3);
  bool late[3] = {};
  const Judge::Batch right{.verdicts = verdicts, .times = times, .late = late};
  const auto refused = [&](Judge::Batch batch) {
    EXPECT_THROW((void)judge.judge(keys, batch), BadParameters);
    batch.digests = digests;
    EXPECT_THROW((void)judge.judge(batch), BadParameters);
  };
  Judge::Batch batch = right;
  batch.verdicts = batch.verdicts.first(2);
  refused(batch);
  batch = right;
  batch.times = batch.times.first(2);
  refused(batch);
  batch = right;
  batch.late = {};
  refused(batch);
  batch = right;
  std::vector<std::optional<double>> posteriors(2);
  batch.posteriors = posteriors;
  refused(batch);
  EXPECT_EQ(judge.filter().stats().keys, 0u);
  EXPECT_EQ(judge.judge(keys, right), 3u);
}

TEST(Judge, WithoutClaimsNothingCanBeClaimed) {
  Judge judge(hasher(), make_filter("exact", {}));
  const Claims::Request request{};
  EXPECT_THROW(judge.claim(request), BadParameters);
  EXPECT_THROW(judge.confirm(request), BadParameters);
  EXPECT_THROW(judge.release(request), BadParameters);
  EXPECT_FALSE(judge.is_pending({}, 0));
}

TEST(Judge, ATimeWindowRunsByWhenKeysArrive) {
  Judge judge(hasher(), window(kTenSeconds));
  EXPECT_EQ(judge.judge("a", 100 * kSecond), Verdict::distinct);
  EXPECT_EQ(judge.judge("a", 109 * kSecond), Verdict::duplicate);
  EXPECT_EQ(judge.judge("a", 121 * kSecond), Verdict::distinct);
}

// Left out, `now` would be 1970 for ever. Named, it may be.
TEST(Judge, ATimeWindowMustBeToldTheTime) {
  const std::vector<std::string_view> keys{"a", "b"};
  std::vector<Digest> digests(2);
  hasher().digest(keys, digests);
  std::vector<Verdict> verdicts(2);
  const Claims::Request untimed{.key = digests[0], .token = {1, 1}, .lease = kSecond};
  Claims::Request by_event = untimed, by_arrival = untimed;
  by_event.event_time = 0;
  by_arrival.now = 0;
  for (const bool by_time : {false, true}) {
    const WindowSpec last_keys{WindowSpec::Kind::count, 10};
    Judge judge(hasher(), window(by_time ? kTenSeconds : last_keys), {.claims = 4});
    const auto check = [&](const auto& call) {
      if (by_time)
        EXPECT_THROW((void)call(), BadParameters);
      else
        EXPECT_NO_THROW((void)call());
    };
    check([&] { return judge.claim(untimed); });
    check([&] { return judge.confirm(untimed); });
    check([&] { return judge.judge("a"); });
    check([&] { return judge.judge(keys, Judge::Batch{.verdicts = verdicts}); });
    check([&] { return judge.judge({.digests = digests, .verdicts = verdicts}); });
    EXPECT_EQ(judge.judge(Judge::Batch{}), 0u);
    EXPECT_EQ(judge.judge(Judge::Batch{.now = kSecond}), 0u) << "and it says nothing of the time";
    if (!by_time) continue;
    EXPECT_FALSE(judge.window()->clock().started());
    for (const Claims::Request& timed : {by_event, by_arrival}) {
      EXPECT_EQ(judge.claim(timed), ClaimAnswer::claimed);
      EXPECT_TRUE(judge.release(untimed));
    }
    EXPECT_EQ(judge.judge("a", 0), Verdict::distinct);
    EXPECT_EQ(judge.judge(keys, Judge::Batch{.verdicts = verdicts, .now = 0}), 2u);
    EXPECT_EQ(verdicts, (std::vector{Verdict::duplicate, Verdict::distinct}));
  }
}

TEST(Judge, ATimeWindowRunsByEventTimeWhereThereIsOne) {
  Judge judge(hasher(), window(kTenSeconds));
  const std::vector<std::string_view> keys{"a", "b", "a", "c", "a"};
  const std::vector<Nanoseconds> times{100 * kSecond, 103 * kSecond, 104 * kSecond, 80 * kSecond,
                                       112 * kSecond};
  std::vector<Verdict> verdicts(5);
  bool late[5] = {};
  const Judge::Batch batch{.verdicts = verdicts, .times = times, .late = late};
  EXPECT_EQ(judge.judge(keys, batch), 5u);
  EXPECT_EQ(verdicts, (std::vector{Verdict::distinct, Verdict::distinct, Verdict::duplicate,
                                   Verdict::distinct, Verdict::distinct}));
  EXPECT_TRUE(std::ranges::equal(late, std::vector{false, false, false, true, false}));
}

// For all sizes of batches, with keys or their digests.
TEST(Judge, KeysAreJudgedAsTheFilterJudgesTheirDigests) {
  const std::vector<std::string> texts = some_keys(5000, 1, 3000);
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  std::vector<Digest> digests(keys.size());
  hasher().digest(keys, digests);
  AnyFilter filter = make_filter("growing", {.fpr = 0.01});
  std::vector<Verdict> expected(keys.size()), verdicts(keys.size());
  ASSERT_EQ(filter.observe(digests, expected), keys.size());
  Judge judge(hasher(), make_filter("growing", {.fpr = 0.01}));
  const Judge::Batch batch{.verdicts = verdicts};
  std::size_t at = 0;
  for (const std::size_t count : {1u, 511u, 1500u, 2988u}) {
    EXPECT_EQ(judge.judge(std::span(keys).subspan(at, count), batch.subspan(at, count)), count);
    at += count;
  }
  ASSERT_EQ(at, keys.size());
  EXPECT_EQ(verdicts, expected);
}

TEST(Judge, TheAuditIsToldOfEveryVerdict) {
  const std::vector<std::string> texts = some_keys(20'000, 2, 10'000);
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  // So small that it errs often.
  Judge judge(hasher(), make_filter("bloom,bytes=2048", {}),
              {.audit = Audit::Params{.sample = 1, .most_bytes = 4 << 20}});
  std::vector<Verdict> verdicts(keys.size());
  ASSERT_EQ(judge.judge(keys, Judge::Batch{.verdicts = verdicts}), keys.size());
  const Audit::Report report = judge.audit()->report();
  EXPECT_EQ(report.positives.trials + report.negatives.trials + report.undecided, keys.size());
  EXPECT_GT(report.positives.errors, 100);
  EXPECT_EQ(report.negatives.errors, 0);
  EXPECT_TRUE(report.knows_all);
}

TEST(Judge, WhatIsTakenBackIsDistinctAgain) {
  Judge judge(hasher(), make_filter("exact", {}), {.audit = Audit::Params{.sample = 1}});
  judge.judge("a");
  const std::vector<Digest> digests{judge.hasher().digest("a"), judge.hasher().digest("b")};
  std::vector<Verdict> found(2);
  judge.forget(digests, found);
  EXPECT_EQ(found, (std::vector{Verdict::duplicate, Verdict::distinct}));
  EXPECT_EQ(judge.judge("a"), Verdict::distinct);
  EXPECT_EQ(judge.audit()->report().positives.errors, 0);
}

// With costs that make a lost event dear, likely false positives pass; without costs none does.
TEST(Judge, InferenceWeighsWhatTheFilterTakesForADuplicate) {
  const std::vector<std::string> texts = some_keys(20'000, 4, 1'000'000);
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  std::vector<Verdict> verdicts(keys.size());
  const JudgeOptions options{.infer = JudgeOptions::Priors{}};
  const auto make = [] { return make_filter("bloom,bytes=4096", {.keys = 5'000, .fpr = 0.1}); };
  const Prior prior = Prior::arrival(1e-6);
  const Costs dear{.lost = 100, .duplicate = 1};

  Judge plain(hasher(), make());
  ASSERT_EQ(plain.judge(keys, Judge::Batch{.verdicts = verdicts}), keys.size());
  const std::size_t held = count_duplicates(verdicts);

  Judge without(hasher(), make(), options);
  ASSERT_EQ(
      without.judge(keys, Judge::Batch{.verdicts = verdicts, .known = {.priors = {&prior, 1}}}),
      keys.size());
  EXPECT_EQ(count_duplicates(verdicts), held);
  EXPECT_GT(without.inference()->stats().inferred, 0u);

  Judge with(hasher(), make(), options);
  std::vector<std::optional<double>> posteriors(keys.size());
  ASSERT_EQ(with.judge(keys, Judge::Batch{.verdicts = verdicts,
                                          .known = {.priors = {&prior, 1}, .costs = {&dear, 1}},
                                          .posteriors = posteriors}),
            keys.size());
  EXPECT_LT(count_duplicates(verdicts), held / 2);
  EXPECT_TRUE(std::ranges::all_of(posteriors, [](const auto& each) { return each.has_value(); }));
}

TEST(Judge, AFilterThatCannotBeInferredFromIsRefused) {
  EXPECT_THROW(Judge(hasher(), make_filter("exact", {}), {.infer = JudgeOptions::Priors{}}),
               BadParameters);
}

TEST(Judge, NobodyAsksForDigestsWithoutAFilterAndAnAudit) {
  EXPECT_FALSE(Judge(hasher(), AnyFilter(None::make({}))).asks_for_digests());
  EXPECT_TRUE(
      Judge(hasher(), AnyFilter(None::make({})), {.audit = Audit::Params{}}).asks_for_digests());
  EXPECT_TRUE(Judge(hasher(), make_filter("exact", {})).asks_for_digests());
}

Claims::Request request(const Judge& judge, std::string_view key, std::uint64_t token,
                        Nanoseconds now, std::optional<Nanoseconds> event_time = {}) {
  return {.key = judge.hasher().digest(key),
          .token = {token, token},
          .now = now,
          .lease = kSecond,
          .event_time = event_time};
}

TEST(Judge, AKeyIsRememberedWhenItWasDelivered) {
  for (const char* filter : {"exact", "growing", "bloom"}) {
    Judge judge(hasher(), make_filter(filter, {}), {.claims = 10});
    const Claims::Request ours = request(judge, "a", 1, 0);
    EXPECT_EQ(judge.claim(ours), ClaimAnswer::claimed) << filter;
    EXPECT_TRUE(judge.is_pending(ours.key, 0));
    EXPECT_EQ(judge.filter().stats().keys, 0u);
    EXPECT_TRUE(judge.release(ours));
    EXPECT_EQ(judge.claim(request(judge, "a", 2, 1)), ClaimAnswer::claimed);
    EXPECT_EQ(judge.claim(ours), ClaimAnswer::pending);
    EXPECT_EQ(judge.confirm(request(judge, "a", 2, 2)), ConfirmAnswer::confirmed);
    EXPECT_FALSE(judge.is_pending(ours.key, 2));
    EXPECT_EQ(judge.filter().stats().keys, 1u);
    EXPECT_EQ(judge.claim(ours), ClaimAnswer::duplicate);
    EXPECT_EQ(judge.confirm(ours), ConfirmAnswer::already);
    EXPECT_EQ(judge.judge("a"), Verdict::duplicate);
  }
}

// What a journal needs: the claim's time, also if its token claims again.
TEST(Judge, TellsTheEventTimeOfAPendingKey) {
  Judge judge(hasher(), window(kTenSeconds), {.claims = 10});
  const Claims::Request first = request(judge, "a", 1, 0, 5 * kSecond);
  EXPECT_EQ(judge.event_time_of(first.key), std::nullopt);
  ASSERT_EQ(judge.claim(first), ClaimAnswer::claimed);
  EXPECT_EQ(judge.event_time_of(first.key), 5 * kSecond);
  ASSERT_EQ(judge.claim(request(judge, "a", 1, 1, 7 * kSecond)), ClaimAnswer::claimed);
  EXPECT_EQ(judge.event_time_of(first.key), 5 * kSecond);
  ASSERT_EQ(judge.confirm(first), ConfirmAnswer::confirmed);
  EXPECT_EQ(judge.event_time_of(first.key), std::nullopt);
  EXPECT_EQ(Judge(hasher(), window(kTenSeconds)).event_time_of(first.key), std::nullopt);
}

// As one of judge() (claims.hpp). What is pending is no repeat.
TEST(Judge, AClaimThatFindsARepeatRestartsItsWindow) {
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed})
    for (const bool timed : {false, true}) {
      Window::Params params{.spec = kTenSeconds, .anchor = anchor, .filter = "exact-window"};
      Judge judge(hasher(), AnyFilter(Window::make(params)), {.claims = 10});
      const auto claim = [&](std::string_view key, std::uint64_t token, Nanoseconds time) {
        return judge.claim(
            request(judge, key, token, time, timed ? std::optional(time) : std::nullopt));
      };
      EXPECT_EQ(judge.judge("a", 100 * kSecond), Verdict::distinct);
      EXPECT_EQ(claim("b", 1, 106 * kSecond), ClaimAnswer::claimed);
      EXPECT_EQ(claim("a", 1, 106 * kSecond), ClaimAnswer::duplicate);
      EXPECT_EQ(judge.claim(request(judge, "b", 2, 106 * kSecond, 115 * kSecond)),
                ClaimAnswer::pending);
      EXPECT_EQ(claim("a", 1, 112 * kSecond),
                anchor == Anchor::refreshed ? ClaimAnswer::duplicate : ClaimAnswer::claimed);
    }
}

// Without an event time the window runs from the confirmation, not from the claim.
TEST(Judge, AWindowByArrivalRunsFromTheConfirmation) {
  Judge judge(hasher(), window(kTenSeconds), {.claims = 10});
  Claims::Request ours = request(judge, "a", 1, 100 * kSecond);
  ours.lease = 10 * kSecond;
  EXPECT_EQ(judge.claim(ours), ClaimAnswer::claimed);
  ours.now = 105 * kSecond;
  EXPECT_EQ(judge.confirm(ours), ConfirmAnswer::confirmed);
  EXPECT_EQ(judge.claim(request(judge, "a", 2, 114 * kSecond)), ClaimAnswer::duplicate);
  EXPECT_EQ(judge.claim(request(judge, "a", 2, 116 * kSecond)), ClaimAnswer::claimed);
}

// The clock of leases says nothing of the events'.
TEST(Judge, AWindowByEventTimeRunsFromTheEvent) {
  Judge judge(hasher(), window(kTenSeconds), {.claims = 10});
  const Nanoseconds now = 5000 * kSecond;
  const auto claim = [&](std::string_view key, Nanoseconds event_time) {
    return judge.claim(request(judge, key, 1, now, event_time));
  };
  EXPECT_EQ(claim("a", 100 * kSecond), ClaimAnswer::claimed);
  // The event time came with the claim: a confirmation need not repeat it.
  EXPECT_EQ(judge.confirm(request(judge, "a", 1, now)), ConfirmAnswer::confirmed);
  EXPECT_EQ(claim("a", 109 * kSecond), ClaimAnswer::duplicate);
  EXPECT_EQ(claim("a", 95 * kSecond), ClaimAnswer::duplicate);
  // A window or more after its time: let through, as judge() does.
  EXPECT_EQ(claim("a", 85 * kSecond), ClaimAnswer::claimed);
  EXPECT_TRUE(judge.release(request(judge, "a", 1, now)));
  // What is asked for does not move the window.
  EXPECT_EQ(judge.window()->clock().now(), 100 * kSecond);
  EXPECT_EQ(claim("a", 111 * kSecond), ClaimAnswer::claimed);
  EXPECT_EQ(judge.window()->clock().now(), 100 * kSecond);
  // Nor is it remembered.
  EXPECT_EQ(claim("b", 80 * kSecond), ClaimAnswer::claimed);
  EXPECT_EQ(judge.confirm(request(judge, "b", 1, now)), ConfirmAnswer::confirmed);
  EXPECT_EQ(claim("b", 99 * kSecond), ClaimAnswer::claimed);
}

// Confirmed while the filter had no memory: a duplicate for its window, and no longer.
TEST(Judge, AKeyThatWaitsForMemoryLeavesWithItsWindow) {
  TestMemory memory;
  const Window::Params params{.spec = kTenSeconds, .keys = 100, .listed = true};
  for (const bool in_batch : {false, true}) {
    Judge judge(hasher(), AnyFilter(Window::make(params, memory)), {.claims = 4});
    const Digest key{1, 2};
    const Nanoseconds start = 1'000 * kSecond;
    Claims::Request request{.key = key, .token = {3, 4}, .now = start, .lease = kSecond};
    EXPECT_EQ(judge.claim(request), ClaimAnswer::claimed);
    memory.fail_at(1);
    EXPECT_EQ(judge.confirm(request), ConfirmAnswer::confirmed);
    EXPECT_TRUE(memory.failed());
    memory.fail_at(0);
    const auto is_duplicate = [&](Nanoseconds now) {
      if (!in_batch) {
        request.now = now;
        const bool duplicate = judge.claim(request) == ClaimAnswer::duplicate;
        EXPECT_EQ(judge.release(request), !duplicate);
        return duplicate;
      }
      const Digest keys[] = {{5, 6}, key, key};
      Verdict verdicts[3]{};
      EXPECT_EQ(judge.judge({.digests = keys, .verdicts = verdicts, .now = now}), 3u);
      EXPECT_EQ(verdicts[2], Verdict::duplicate);
      return verdicts[1] == Verdict::duplicate;
    };
    EXPECT_TRUE(is_duplicate(start + 9 * kSecond));
    EXPECT_FALSE(is_duplicate(start + 10 * kSecond));
  }
}

TEST(Judge, TheAuditIsToldOfWhatWasConfirmedAndOfWhatIsHeldBack) {
  Judge judge(hasher(), make_filter("exact", {}),
              {.audit = Audit::Params{.sample = 1}, .claims = 10});
  const Claims::Request ours = request(judge, "a", 1, 0);
  judge.claim(ours);
  EXPECT_EQ(judge.audit()->report().positives.trials, 0);
  judge.confirm(ours);
  EXPECT_EQ(judge.audit()->report().positives.trials, 1);
  judge.claim(ours);
  EXPECT_EQ(judge.audit()->report().negatives.trials, 1);
  EXPECT_EQ(judge.audit()->report().negatives.errors, 0);
}

TEST(Judge, BytesAreThoseOfAllItsParts) {
  Judge plain(hasher(), make_filter("exact", {}));
  EXPECT_EQ(plain.bytes(), plain.filter().bytes());
  Judge full(hasher(), make_filter("exact", {}),
             {.audit = Audit::Params{.sample = 1}, .claims = 1000});
  EXPECT_EQ(full.bytes(), full.filter().bytes() + full.audit()->bytes() + full.claims()->bytes());
  EXPECT_GT(full.claims()->bytes(), 0u);
  EXPECT_GT(full.audit()->bytes(), 0u);
}

}  // namespace
}  // namespace sluice
