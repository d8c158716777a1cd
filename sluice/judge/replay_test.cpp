// Recovery of a judge: a snapshot taken at any moment, and a journal of what was delivered.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/judge/judge.hpp"
#include "sluice/snapshot/journal.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::digest_of;

constexpr Nanoseconds kSecond = 1'000'000'000;
const JudgeOptions kOptions{.audit = Audit::Params{.sample = 1}, .claims = 64};

Hasher hasher() {
  return Hasher(HashKind::xxh3, Secret::from_seed(3));
}

AnyFilter minute(bool listed = false, MemoryResource& memory = default_memory()) {
  return AnyFilter(Window::make(
      {.spec = {WindowSpec::Kind::time, 60 * kSecond}, .keys = 2000, .listed = listed}, memory));
}

AnyFilter filter_of(const std::string& name) {
  if (name == "minute") return minute();
  if (name == "listed minute") return minute(true);
  if (name == "last 500") return AnyFilter(Window::make({.spec = {WindowSpec::Kind::count, 500}}));
  return make_filter(name, {});
}
const std::vector<std::string> kFilters = {"exact",  "growing",       "counting,keys=900",
                                           "minute", "listed minute", "last 500"};

bool is_timed(const std::string& name) {
  return name.ends_with("minute");
}

Claims::Request request(std::uint64_t key, std::uint64_t token, Nanoseconds now) {
  return {.key = digest_of(key), .token = {token, token}, .now = now, .lease = 30 * kSecond};
}

std::vector<std::byte> saved(const Judge& judge) {
  BytesEncoder to;
  judge.save(to);
  return to.take();
}

std::unique_ptr<Judge> loaded(const std::vector<std::byte>& bytes,
                              const JudgeOptions& options = kOptions) {
  BytesDecoder from(bytes);
  return Judge::load(from, options).judge;
}

// One key, pending in the snapshot, then confirmed and journalled.
TEST(JudgeReplay, WhatWasDeliveredIsADuplicateWhateverTheSnapshotSays) {
  for (const std::string& name : kFilters)
    for (const bool by_event_time : {false, true}) {
      Judge judge(hasher(), filter_of(name), kOptions);
      Claims::Request ours = request(1, 1, 100 * kSecond);
      if (by_event_time) ours.event_time = 100 * kSecond;
      ASSERT_EQ(judge.claim(ours), ClaimAnswer::claimed);
      BytesEncoder snapshot, journal;
      JournalWriter writer(judge.save(snapshot), journal);
      ours.now = 101 * kSecond;
      ASSERT_EQ(judge.confirm(ours), ConfirmAnswer::confirmed);
      const Nanoseconds time = by_event_time ? 100 * kSecond : 101 * kSecond;
      writer.append({&ours.key, 1}, {&time, 1}, {}, journal);

      BytesDecoder from(snapshot.written()), records(journal.written());
      Judge::Loaded again = Judge::load(from, kOptions);
      ASSERT_TRUE(again.judge->is_pending(ours.key, 102 * kSecond));
      read_journal(records, again.identity, [&](const JournalRecord& record) {
        const std::size_t replayed = by_event_time
                                         ? again.judge->replay(record.digests, record.times)
                                         : again.judge->replay(record.digests, {}, record.times[0]);
        ASSERT_EQ(replayed, 1u);
      });
      EXPECT_EQ(saved(*again.judge), saved(judge)) << name;
      for (const std::uint64_t token : {1, 2})
        for (const Nanoseconds now : {102 * kSecond, 131 * kSecond, 155 * kSecond}) {
          Claims::Request theirs = request(1, token, now);
          if (by_event_time) theirs.event_time = now;
          EXPECT_EQ(again.judge->claim(theirs), ClaimAnswer::duplicate) << name;
        }
      EXPECT_EQ(again.judge->claims()->size(), 0u);
    }
}

// A run with claims, confirmations and releases. The snapshot falls after any of its calls; what is
// confirmed in a batch is journalled at its end. No key that was delivered may be claimed again.
void run_with_snapshot_at(const std::string& name, int snapshot_at, bool with_times) {
  SCOPED_TRACE(name + ", snapshot at call " + std::to_string(snapshot_at));
  Judge judge(hasher(), filter_of(name), kOptions);
  BytesEncoder snapshot, journal;
  std::optional<JournalWriter> writer;
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
  std::vector<std::uint64_t> delivered;
  SplitMix64 random(7);
  int call = 0;
  Nanoseconds now = 1'700'000'000 * kSecond;
  const auto step = [&] {
    if (call++ == snapshot_at) writer.emplace(judge.save(snapshot), journal);
  };
  for (std::uint64_t key = 0; key < 60; ++key) {
    step();
    if (judge.claim(request(key, 1, now)) == ClaimAnswer::claimed && key >= 3) {
      step();
      // The order of confirmations is not that of claims.
      const std::uint64_t other = key - random.next() % 3;
      if (judge.confirm(request(other, 1, now)) == ConfirmAnswer::confirmed) {
        digests.push_back(digest_of(other));
        times.push_back(now);
        delivered.push_back(other);
      }
    }
    if (key % 10 == 9) {
      step();
      if (writer && with_times) writer->append(digests, times, {}, journal);
      if (writer && !with_times) writer->append(digests, {}, {}, journal);
      digests.clear();
      times.clear();
      now += kSecond / 2;
    }
  }
  ASSERT_TRUE(writer.has_value());
  BytesDecoder from(snapshot.written()), records(journal.written());
  Judge::Loaded again = Judge::load(from, kOptions);
  read_journal(records, again.identity, [&](const JournalRecord& record) {
    const auto at = with_times ? std::nullopt : std::optional(now);
    ASSERT_EQ(again.judge->replay(record.digests, record.times, at), record.digests.size());
  });
  ASSERT_GT(delivered.size(), 20u);
  // Before and after every lease has ended.
  for (const Nanoseconds later : {kSecond, 31 * kSecond})
    for (const std::uint64_t key : delivered)
      ASSERT_EQ(again.judge->claim(request(key, 2, now + later)), ClaimAnswer::duplicate) << key;
  EXPECT_EQ(again.judge->filter().stats().keys, judge.filter().stats().keys) << "each of them once";
}

TEST(JudgeReplay, NothingIsDeliveredTwiceWhereverTheSnapshotFalls) {
  for (const std::string& name : kFilters)
    for (int at = 0; at < 120; at += 7) {
      run_with_snapshot_at(name, at, true);
      run_with_snapshot_at(name, at, false);
    }
}

TEST(JudgeReplay, AKeyIsRememberedAtItsTimeAndNotIfItIsLate) {
  for (const bool listed : {false, true}) {
    Judge judge(hasher(), minute(listed), kOptions);
    const Nanoseconds now = 5000 * kSecond;  // leases have another clock
    for (std::uint64_t key = 1; key <= 3; ++key) {
      Claims::Request ours = request(key, 1, now);
      ours.event_time = 990 * kSecond;
      ASSERT_EQ(judge.claim(ours), ClaimAnswer::claimed);
    }
    const std::vector<Digest> digests = {digest_of(1), digest_of(2), digest_of(3), digest_of(4)};
    const std::vector<Nanoseconds> times = {1000 * kSecond, 930 * kSecond, 960 * kSecond,
                                            940 * kSecond};
    ASSERT_EQ(judge.replay(digests, times), 4u);
    EXPECT_EQ(judge.claims()->size(), 0u) << "also the late one was delivered";
    EXPECT_EQ(judge.filter().stats().keys, 2u);
    const auto claim = [&](std::uint64_t key, Nanoseconds time) {
      Claims::Request theirs = request(key, 2, now);
      theirs.event_time = time;
      return judge.claim(theirs);
    };
    EXPECT_EQ(claim(2, 1000 * kSecond), ClaimAnswer::claimed);
    EXPECT_EQ(claim(4, 1000 * kSecond), ClaimAnswer::claimed);
    EXPECT_EQ(claim(3, 1019 * kSecond), ClaimAnswer::duplicate);
    EXPECT_EQ(claim(3, 1030 * kSecond), ClaimAnswer::claimed) << "its window began at 960 s";
    EXPECT_EQ(claim(1, 1059 * kSecond), ClaimAnswer::duplicate);
  }
}

// A duplicate that was judged moved the clock, so that a key out of order was new and was delivered.
// By an older clock it would be a duplicate of its earlier self, and not be remembered anew.
TEST(JudgeReplay, JudgedBatchesAreJournalledWithTheirDuplicates) {
  for (const bool listed : {false, true}) {
    Judge judge(hasher(), minute(listed), kOptions);
    BytesEncoder snapshot, journal;
    JournalWriter writer(judge.save(snapshot), journal);
    const auto at = [](std::uint64_t key, Nanoseconds time) {
      Claims::Request ours = request(key, 1, 5000 * kSecond);
      ours.event_time = time;
      return ours;
    };
    const auto deliver = [&](std::uint64_t key, Nanoseconds time) {
      ASSERT_EQ(judge.claim(at(key, time)), ClaimAnswer::claimed) << key << " at " << time;
      ASSERT_EQ(judge.confirm(at(key, time)), ConfirmAnswer::confirmed);
      const Digest digest = digest_of(key);
      writer.append({&digest, 1}, {&time, 1}, {}, journal);
    };
    deliver(1, 0);
    deliver(2, 54 * kSecond);
    const std::vector<Digest> batch = {digest_of(2), digest_of(3)};
    const std::vector<Nanoseconds> times = {66 * kSecond, 2 * kSecond};
    std::vector<Verdict> verdicts(2);
    bool late[2] = {};
    ASSERT_EQ(judge.judge({.digests = batch, .verdicts = verdicts, .times = times, .late = late}),
              2u);
    ASSERT_EQ(verdicts[0], Verdict::duplicate);
    ASSERT_TRUE(late[1]);
    writer.append(batch, times, {}, journal);
    deliver(1, 30 * kSecond);

    BytesDecoder from(snapshot.written()), records(journal.written());
    Judge::Loaded again = Judge::load(from, kOptions);
    read_journal(records, again.identity, [&](const JournalRecord& record) {
      ASSERT_EQ(again.judge->replay(record.digests, record.times), record.digests.size());
    });
    EXPECT_EQ(saved(*again.judge), saved(judge));
    EXPECT_EQ(again.judge->claim(at(1, 72 * kSecond)), ClaimAnswer::duplicate);
  }
}

// Confirmed when the filter had no memory: the snapshot holds it as delivered, the journal as well.
TEST(JudgeReplay, WhatTheFilterIsOwedIsHandedOverOnce) {
  TestMemory memory;
  Judge judge(hasher(), minute(true, memory), {.claims = 64});
  for (const std::uint64_t key : {1, 2})
    ASSERT_EQ(judge.claim(request(key, 1, 100 * kSecond)), ClaimAnswer::claimed);
  memory.fail_at(1);
  ASSERT_EQ(judge.confirm(request(1, 1, 101 * kSecond)), ConfirmAnswer::confirmed);
  ASSERT_EQ(judge.claims()->state_of(digest_of(1), 101 * kSecond), Claims::State::delivered);
  const std::vector<std::byte> snapshot = saved(judge);
  const Digest key = digest_of(1);

  std::unique_ptr<Judge> again = loaded(snapshot, {.claims = 64});
  ASSERT_EQ(again->replay({&key, 1}, {}, 101 * kSecond), 1u);
  EXPECT_EQ(again->claims()->size(), 1u) << "the other one is pending";
  EXPECT_TRUE(again->is_pending(digest_of(2), 102 * kSecond));
  EXPECT_EQ(again->filter().stats().keys, 1u);
  EXPECT_EQ(again->claim(request(1, 2, 155 * kSecond)), ClaimAnswer::duplicate);
  EXPECT_EQ(again->claim(request(1, 2, 161 * kSecond + kSecond)), ClaimAnswer::claimed);
}

TEST(JudgeReplay, WithoutMemoryTheRestIsUntouched) {
  TestMemory memory;
  Judge judge(hasher(), minute(true, memory), {.claims = 64});
  const std::vector<Digest> digests = {digest_of(1), digest_of(2)};
  for (const std::uint64_t key : {1, 2})
    ASSERT_EQ(judge.claim(request(key, 1, 100 * kSecond)), ClaimAnswer::claimed);
  memory.fail_at(1);
  EXPECT_EQ(judge.replay(digests, {}, 101 * kSecond), 0u);
  EXPECT_EQ(judge.claims()->size(), 2u);
  EXPECT_EQ(judge.replay(digests, {}, 101 * kSecond), 2u);
  EXPECT_EQ(judge.claims()->size(), 0u);
}

TEST(JudgeReplay, OnlyAWindowOverTimeNeedsATime) {
  const std::vector<Digest> digests = {digest_of(1), digest_of(2)};
  const std::vector<Nanoseconds> one_time(1);
  for (const std::string& name : kFilters) {
    Judge judge(hasher(), filter_of(name));
    EXPECT_THROW((void)judge.replay(digests, one_time), BadParameters);
    if (is_timed(name)) {
      EXPECT_THROW((void)judge.replay(digests, {}), BadParameters);
      EXPECT_EQ(judge.filter().stats().keys, 0u);
    } else {
      EXPECT_EQ(judge.replay(digests, {}), 2u);
      EXPECT_EQ(judge.filter().stats().keys, 2u);
    }
  }
}

TEST(JudgeClaims, AnIdleHostTendsThem) {
  TestMemory memory;
  Judge judge(hasher(), minute(true, memory), {.claims = 64});
  judge.tend(0);
  for (const std::uint64_t key : {1, 2, 3})
    ASSERT_EQ(judge.claim(request(key, 1, 100 * kSecond)), ClaimAnswer::claimed);
  memory.fail_at(1);
  ASSERT_EQ(judge.confirm(request(1, 1, 101 * kSecond)), ConfirmAnswer::confirmed);
  judge.tend(102 * kSecond);
  EXPECT_EQ(judge.claims()->size(), 3u) << "no lease has ended";
  judge.tend(130 * kSecond, 1);
  EXPECT_EQ(judge.claims()->size(), 2u);
  judge.tend(130 * kSecond);
  EXPECT_EQ(judge.claims()->size(), 0u);
  EXPECT_EQ(judge.filter().stats().keys, 1u) << "the delivered one";
  Judge without(hasher(), make_filter("exact", {}));
  without.tend(0);
}

// A judge that asks for no claims, or for fewer than the snapshot brings.
TEST(JudgeClaims, TheLimitOfALoadedJudgeIsAtLeastWhatItBrings) {
  Judge judge(hasher(), make_filter("exact", {}), {.claims = 64});
  for (const std::uint64_t key : {1, 2, 3})
    ASSERT_EQ(judge.claim(request(key, 1, 100 * kSecond)), ClaimAnswer::claimed);
  for (const std::uint64_t most : {0, 2}) {
    const std::unique_ptr<Judge> again = loaded(saved(judge), {.claims = most});
    EXPECT_EQ(again->claims()->most(), 3u);
    EXPECT_EQ(again->claim(request(1, 2, 101 * kSecond)), ClaimAnswer::pending);
    EXPECT_THROW(again->claim(request(4, 1, 101 * kSecond)), ClaimsFull);
    EXPECT_EQ(again->confirm(request(1, 1, 101 * kSecond)), ConfirmAnswer::confirmed);
    EXPECT_EQ(again->claim(request(4, 1, 101 * kSecond)), ClaimAnswer::claimed);
  }
}

}  // namespace
}  // namespace sluice
