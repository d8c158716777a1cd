// A judge in one record, and verdicts on keys that are claimed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/judge/judge.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/forged_fields.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::count_of;
using testing_support::digest_of;

constexpr Nanoseconds kSecond = 1'000'000'000;

Hasher hasher() {
  return Hasher(HashKind::xxh3, Secret::from_seed(3));
}

AnyFilter ten_seconds() {
  return AnyFilter(
      Window::make({.spec = {WindowSpec::Kind::time, 10 * kSecond}, .keys = 200, .listed = true}));
}

Claims::Request request(std::uint64_t key, std::uint64_t token, Nanoseconds now) {
  return {.key = digest_of(key), .token = {token, token}, .now = now, .lease = 5 * kSecond};
}

Verdict judged(Judge& judge, std::uint64_t key, Nanoseconds now) {
  const Digest digest = digest_of(key);
  Verdict verdict{};
  EXPECT_EQ(judge.judge({.digests = {&digest, 1}, .verdicts = {&verdict, 1}, .now = now}), 1u);
  return verdict;
}

const JudgeOptions kAll{.audit = Audit::Params{.sample = 4}, .claims = 64};

// Judges, claims, confirms and releases as a host would; all answers.
std::string played(Judge& judge, std::uint64_t from, std::uint64_t to) {
  std::string answers;
  for (std::uint64_t i = from; i < to; ++i) {
    const Nanoseconds now = (1'700'000'000 + Nanoseconds(i) / 20) * kSecond;
    switch (i % 5) {
      case 0:
        answers += std::to_string(static_cast<int>(judge.claim(request(i, i, now))));
        break;
      case 1:
        if (i % 3 == 0)
          answers += std::to_string(static_cast<int>(judge.confirm(request(i - 11, i - 11, now))));
        else
          answers += judge.release(request(i - 6, i - 6, now)) ? 'r' : 'n';
        break;
      default:
        answers += std::to_string(static_cast<int>(judged(judge, i % 4 == 3 ? i - i % 5 : i, now)));
    }
  }
  return answers;
}

std::vector<std::byte> saved(const Judge& judge, const Sections& more = {}) {
  BytesEncoder to;
  judge.save(to, {{"format", "csv"}}, more);
  return to.take();
}

Judge::Loaded loaded(const std::vector<std::byte>& bytes, const JudgeOptions& options,
                     const Understands& knows = understands_nothing) {
  BytesDecoder from(bytes);
  return Judge::load(from, options, default_memory(), knows);
}

// Batches of 100, and one judge is loaded half-way.
TEST(JudgeSnapshot, WithoutMetersTheBytesDependOnTheBatchesAlone) {
  const JudgeOptions options{.audit = Audit::Params{.sample = 2}, .meters = false};
  const auto judge_batch = [](Judge& judge, std::uint64_t batch) {
    std::vector<Digest> digests;
    for (std::uint64_t i = 0; i < 100; ++i) digests.push_back(digest_of(50 * batch + i));
    std::vector<Verdict> verdicts(digests.size());
    const auto now = static_cast<Nanoseconds>(batch) * kSecond;
    ASSERT_EQ(judge.judge({.digests = digests, .verdicts = verdicts, .now = now}), 100u);
  };
  for (const bool window : {true, false}) {
    Judge whole(hasher(), window ? ten_seconds() : make_filter("stable", {.keys = 100}), options);
    EXPECT_EQ(whole.slack(), nullptr);
    for (std::uint64_t batch = 0; batch < 8; ++batch) judge_batch(whole, batch);
    const std::vector<std::byte> half_way = saved(whole);
    BytesDecoder from(half_way);
    const Judge::Loaded loaded = Judge::load(from, options);
    for (std::uint64_t batch = 8; batch < 40; ++batch) {
      judge_batch(whole, batch);
      judge_batch(*loaded.judge, batch);
      ASSERT_EQ(saved(whole), saved(*loaded.judge)) << batch;
    }
  }
}

TEST(JudgeSnapshot, GoesOnAsTheOneThatWasSaved) {
  for (const bool window : {false, true}) {
    const auto make = [&] { return window ? ten_seconds() : make_filter("cohort,keys=4k", {}); };
    Judge judge(hasher(), make(), kAll);
    played(judge, 0, 1234);
    const Sections offsets = {{"offsets", true, std::vector<std::byte>(7)}};
    const std::vector<std::byte> bytes = saved(judge, offsets);
    EXPECT_THROW(loaded(bytes, kAll), CorruptSnapshot) << "nobody reads the offsets";
    Judge::Loaded again = loaded(bytes, kAll, understands_all);
    EXPECT_EQ(again.sections, offsets);
    EXPECT_EQ(again.labels, (Labels{{"format", "csv"}}));
    EXPECT_GT(again.judge->claims()->size(), 5u);
    EXPECT_GT(again.judge->audit()->report().positives.trials, 20);
    EXPECT_EQ(saved(*again.judge, offsets), bytes);
    EXPECT_EQ(played(judge, 1234, 4000), played(*again.judge, 1234, 4000));
    EXPECT_EQ(saved(judge), saved(*again.judge));
  }
}

TEST(JudgeSnapshot, PendingKeysAreKeptAndAnAuditMayBeLeftOut) {
  Judge judge(hasher(), make_filter("exact", {}), kAll);
  for (std::uint64_t key = 0; key < 20; ++key) judge.claim(request(key, 1, 0));
  Judge::Loaded again = loaded(saved(judge), {});
  EXPECT_EQ(again.judge->audit(), nullptr);
  ASSERT_NE(again.judge->claims(), nullptr);
  EXPECT_EQ(again.judge->claims()->size(), 20u);
  EXPECT_TRUE(again.judge->is_pending(digest_of(7), 0));
  EXPECT_EQ(again.judge->confirm(request(7, 1, 1)), ConfirmAnswer::confirmed);
  // A judge without any of it is a plain snapshot.
  Judge plain(hasher(), make_filter("exact", {}));
  EXPECT_TRUE(plain.sections().empty());
  EXPECT_EQ(loaded(saved(plain), kAll).judge->audit()->report().positives.trials, 0);
  EXPECT_THROW(saved(plain, {{"claims", true, {}}}), BadParameters);
}

TEST(JudgeSnapshot, ForgedSectionsAreRefusedOrWork) {
  Judge judge(hasher(), ten_seconds(), kAll);
  played(judge, 0, 400);
  std::size_t refused = 0, used = 0;
  unsigned cases = 0;
  const unsigned stride =
      count_of(3u, 1u, 1u);  // of five values: every byte, and each value in turn
  for (const Section& section : judge.sections()) {
    for (std::size_t at = 0; at < std::min<std::size_t>(section.bytes.size(), 160); ++at)
      for (const int value : {0, 1, 0x7F, 0x80, 0xFF}) {
        if (++cases % stride != 0) continue;
        Sections forged = judge.sections();
        for (Section& each : forged)
          if (each.name == section.name) each.bytes[at] = static_cast<std::byte>(value);
        BytesEncoder to;
        write_snapshot(judge.hasher(), judge.filter(), {}, to, forged);
        const std::vector<std::byte> bytes = to.take();
        try {
          Judge::Loaded read = loaded(bytes, kAll);
          played(*read.judge, 400, 600);
          ++used;
        } catch (const CorruptSnapshot&) {
          ++refused;
        } catch (const BadParameters&) {
          ++refused;
        }
      }
  }
  EXPECT_GT(refused, 100u / stride);
  EXPECT_GT(used, 100u / stride);
}

TEST(JudgeClaims, AVerdictOnAKeyThatIsClaimedIsPending) {
  for (const bool window : {false, true}) {
    Judge judge(hasher(), window ? ten_seconds() : make_filter("exact", {}), kAll);
    ASSERT_EQ(judge.claim(request(1, 1, kSecond)), ClaimAnswer::claimed);
    EXPECT_EQ(judged(judge, 1, kSecond), Verdict::pending);
    EXPECT_EQ(judge.filter().stats().keys, 0u) << "nothing of it is remembered";
    EXPECT_TRUE(judge.release(request(1, 1, kSecond)));
    EXPECT_EQ(judged(judge, 1, kSecond), Verdict::distinct);
    EXPECT_EQ(judged(judge, 1, kSecond), Verdict::duplicate);
    // Confirmed: a duplicate. Its lease ended: anybody's.
    ASSERT_EQ(judge.claim(request(2, 1, kSecond)), ClaimAnswer::claimed);
    ASSERT_EQ(judge.confirm(request(2, 1, 2 * kSecond)), ConfirmAnswer::confirmed);
    EXPECT_EQ(judged(judge, 2, 2 * kSecond), Verdict::duplicate);
    ASSERT_EQ(judge.claim(request(3, 1, 2 * kSecond)), ClaimAnswer::claimed);
    EXPECT_EQ(judged(judge, 3, 7 * kSecond - 1), Verdict::pending);
    EXPECT_EQ(judged(judge, 3, 7 * kSecond), Verdict::distinct);
    // And the claimant, who comes too late, hears of it.
    EXPECT_EQ(judge.confirm(request(3, 1, 7 * kSecond)), ConfirmAnswer::already);
  }
}

// Leases run by `now`, also where events have times of their own.
TEST(JudgeClaims, OneOfABatchIsPendingAndTheOthersAreJudged) {
  Judge judge(hasher(), ten_seconds(), kAll);
  const Nanoseconds now = 9000 * kSecond;
  for (const std::uint64_t key : {2, 5}) {
    Claims::Request claim = request(key, 1, now);
    claim.event_time = 100 * kSecond;
    ASSERT_EQ(judge.claim(claim), ClaimAnswer::claimed);
  }
  const std::vector<Digest> digests = {digest_of(1), digest_of(2), digest_of(1),
                                       digest_of(3), digest_of(5), digest_of(5)};
  const std::vector<Nanoseconds> times(6, 100 * kSecond);
  std::vector<Verdict> verdicts(6);
  bool late[6] = {true, true, true, true, true, true};
  ASSERT_EQ(judge.judge({.digests = digests,
                         .verdicts = verdicts,
                         .times = times,
                         .late = late,
                         .now = now + kSecond}),
            6u);
  using enum Verdict;
  EXPECT_EQ(verdicts,
            (std::vector<Verdict>{distinct, pending, duplicate, distinct, pending, pending}));
  EXPECT_TRUE(std::ranges::none_of(late, [](bool each) { return each; }));
  EXPECT_EQ(count_duplicates(verdicts), 1u);
  EXPECT_EQ(judge.filter().stats().keys, 2u);
}

// It was delivered, and the filter had no memory for it: a duplicate until it is forgotten.
TEST(JudgeClaims, ADeliveredKeyIsADuplicateBeforeTheFilterHasIt) {
  TestMemory memory;
  Judge judge(hasher(),
              AnyFilter(Window::make(
                  {.spec = {WindowSpec::Kind::time, 10 * kSecond}, .listed = true}, memory)),
              {.claims = 64});
  ASSERT_EQ(judge.claim(request(1, 1, kSecond)), ClaimAnswer::claimed);
  memory.fail_at(1);
  ASSERT_EQ(judge.confirm(request(1, 1, kSecond)), ConfirmAnswer::confirmed);
  ASSERT_EQ(judge.claims()->state_of(digest_of(1), kSecond), Claims::State::delivered);
  EXPECT_EQ(judged(judge, 1, kSecond), Verdict::duplicate);
  const Digest key = digest_of(1);
  Verdict found{};
  judge.forget({&key, 1}, {&found, 1});
  EXPECT_EQ(found, Verdict::duplicate);
  EXPECT_EQ(judged(judge, 1, kSecond), Verdict::distinct);
}

}  // namespace
}  // namespace sluice
