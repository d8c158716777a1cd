// Times that no second record has confirmed: the first of a stream, those that replace it, and records
// that are sent twice. All against the rules as docs/windows.md states them, kept as plainly as can be.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/audit/audit.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/judge/slack_meter.hpp"
#include "sluice/lab/compare.hpp"
#include "sluice/lab/compare_filter.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::copy_of;
using testing_support::count_of;
using testing_support::digest_of;

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kMinute = 60 * kSecond;
constexpr Nanoseconds kHour = 60 * kMinute;
constexpr Nanoseconds kNoon = 472'222 * kHour;  // a full hour

struct Event {
  std::uint64_t key;
  Nanoseconds time;
};

struct Judged {
  Verdict verdict = Verdict::distinct;
  bool late = false;
  friend bool operator==(const Judged&, const Judged&) = default;
};

// Shares nothing with the window and its clock.
class PlainWindow {
 public:
  explicit PlainWindow(const Window::Params& params)
      : landmark_(params.spec.kind == WindowSpec::Kind::landmark),
        refreshed_(params.anchor == Anchor::refreshed),
        size_(static_cast<Nanoseconds>(params.spec.size)),
        max_ahead_(static_cast<Nanoseconds>(*params.max_ahead)) {}

  Judged see(std::uint64_t key, Nanoseconds time) {
    if (!started_) {
      started_ = true;
      now_ = time;
      only_ = key;
    } else if (time > now_ + max_ahead_) {
      const bool near = claim_ && std::abs(time - claim_->time) <= std::max(max_ahead_, size_);
      if (!near || (claim_->key == key && claim_->time == time)) {
        claim_ = Event{key, time};
        last_[key] = now_;
        return {};
      }
      now_ = std::max(time, claim_->time);
      last_[claim_->key] = claim_->time;
      claim_.reset();
      only_.reset();
    } else if (time > now_) {
      now_ = time;
      claim_.reset();
      only_.reset();
    } else if (now_ - time >= size_) {
      if (!only_) return {Verdict::distinct, true};
      claim_ = Event{*only_, now_};
      last_.clear();
      now_ = time;
      only_ = key;
    } else if (only_ != key || time != now_) {
      only_.reset();
    }
    if (!inside(time)) return {Verdict::distinct, true};
    const auto at = last_.find(key);
    const bool known = at != last_.end() && inside(at->second);
    if (!known) last_[key] = time;
    if (known && refreshed_) at->second = std::max(at->second, time);
    return {known ? Verdict::duplicate : Verdict::distinct, false};
  }

 private:
  bool inside(Nanoseconds time) const {
    return landmark_ ? time / size_ == now_ / size_ : now_ - time < size_;
  }

  bool landmark_, refreshed_;
  Nanoseconds size_, max_ahead_;
  bool started_ = false;
  Nanoseconds now_ = 0;
  std::optional<std::uint64_t> only_;  // the key of the only record that says that it is now
  std::optional<Event> claim_;         // a later time that one record says
  std::map<std::uint64_t, Nanoseconds> last_;
};

Judged see(Window& window, const Event& event) {
  const Digest digest = digest_of(event.key);
  Judged judged;
  EXPECT_EQ(window.judge({&digest, 1}, {&event.time, 1}, {&judged.verdict, 1}, {&judged.late, 1}),
            1u);
  return judged;
}

std::vector<Judged> see_all(Window& window, const std::vector<Event>& events) {
  std::vector<Judged> all;
  for (const Event& event : events) all.push_back(see(window, event));
  return all;
}

// How many were let through, in a list and in a table, with either anchor.
std::vector<std::size_t> let_through(const WindowSpec& spec, const std::vector<Event>& events) {
  std::vector<std::size_t> counts;
  for (const bool listed : {true, false})
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed})
      for (const char* filter : {"cohort", "exact-window"}) {
        Window window = Window::make({.spec = spec,
                                      .anchor = anchor,
                                      .filter = filter,
                                      .max_ahead = spec.size,
                                      .listed = listed});
        const auto judged = see_all(window, events);
        counts.push_back(static_cast<std::size_t>(
            std::ranges::count(judged, Verdict::distinct, &Judged::verdict)));
      }
  return counts;
}

constexpr WindowSpec kTenMinutes{WindowSpec::Kind::time, 10 * kMinute};

TEST(FirstTime, ThatIsReplacedTakesItsKeysAlong) {
  const std::vector<Event> events = {{1, kNoon}, {1, kNoon - kHour}, {1, kNoon - 2 * kHour}};
  EXPECT_EQ(let_through(kTenMinutes, events), std::vector<std::size_t>(8, 3));
  EXPECT_EQ(let_through({WindowSpec::Kind::landmark, kHour}, events),
            std::vector<std::size_t>(8, 3));
}

TEST(FirstTime, OfAStreamNewestFirstLosesNothing) {
  std::vector<Event> events;
  for (Nanoseconds i = 0; i < 1000; ++i)
    events.push_back({static_cast<std::uint64_t>(i % 10), kNoon - i * kHour});
  EXPECT_EQ(let_through(kTenMinutes, events), std::vector<std::size_t>(8, 1000));
}

// Far ahead, and remembered as of a time that turns out to be wrong.
TEST(FirstTime, ThatIsReplacedTakesDisbelievedKeysAlong) {
  EXPECT_EQ(
      let_through(kTenMinutes,
                  {{1, kNoon}, {2, kNoon + 9 * kHour}, {3, kNoon - kHour}, {2, kNoon - kHour}}),
      std::vector<std::size_t>(8, 4));
}

// Its key is written at its own time then, and that of the time before is not.
TEST(FirstTime, ThatIsReplacedMayBeConfirmed) {
  for (const bool listed : {true, false}) {
    Window window =
        Window::make({.spec = kTenMinutes, .max_ahead = kTenMinutes.size, .listed = listed});
    const std::vector<Event> events = {{1, kNoon},                    // the first
                                       {2, kNoon - kHour},            // replaces it
                                       {3, kNoon - 2 * kHour},        // replaces that
                                       {4, kNoon - kHour + kMinute},  // confirms the second
                                       {2, kNoon - kHour + 2 * kMinute},
                                       {1, kNoon - kHour + 3 * kMinute},
                                       {3, kNoon - kHour + 4 * kMinute}};
    for (const Event& event : events) {
      const Verdict peeked = window.peek(digest_of(event.key), event.time);
      const Judged judged = see(window, event);
      EXPECT_EQ(judged,
                (Judged{&event == &events[4] ? Verdict::duplicate : Verdict::distinct, false}))
          << &event - events.data();
      EXPECT_EQ(peeked, judged.verdict) << &event - events.data();
    }
  }
}

TEST(Retry, DoesNotConfirmItsOwnTime) {
  constexpr Nanoseconds kYear = 365 * 24 * kHour;
  for (const bool listed : {true, false}) {
    const Window::Params params{
        .spec = kTenMinutes, .max_ahead = kTenMinutes.size, .listed = listed};
    const auto late_after = [&](const std::vector<Event>& wild) {
      Window window = Window::make(params);
      see_all(window, wild);
      return see(window, {9, kNoon + 3 * kMinute}).late;
    };
    const Event start{1, kNoon}, next{2, kNoon + kMinute}, wild{3, kNoon + kYear};
    EXPECT_FALSE(late_after({start, next, wild, wild, wild}));
    EXPECT_FALSE(late_after({wild, wild, wild, start})) << "the first of all";
    EXPECT_FALSE(late_after({wild, start, wild, wild})) << "the first, and it was replaced";
    EXPECT_FALSE(late_after({wild, {4, kNoon + 2 * kYear}, wild, start, wild}));
    // Another key, and the same key at another time.
    EXPECT_TRUE(late_after({start, next, wild, {4, wild.time}}));
    EXPECT_TRUE(late_after({start, next, wild, {3, wild.time + kSecond}}));
    EXPECT_TRUE(late_after({wild, wild, {4, wild.time}}));
    EXPECT_TRUE(late_after({wild, {3, wild.time - kSecond}}));
  }
}

// Times on a grid of seven seconds: a window of sixty ends between two of them, so a table that keeps
// its keys up to a second longer answers as a list does.
constexpr Nanoseconds kStep = 7 * kSecond;

std::vector<Event> wild_stream(SplitMix64& random, std::size_t count) {
  std::vector<Event> events;
  Nanoseconds now = kNoon / kStep * kStep;
  const auto steps = [&](std::uint64_t most) {
    return static_cast<Nanoseconds>(random.next() % most) * kStep;
  };
  const std::uint64_t calm = random.next() % 3;  // how soon records agree
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t key = random.next() % 6, choice = random.next() % 16;
    if (i > 0 && choice < 3)  // sent again
      events.push_back(events[i - 1 - random.next() % std::min<std::size_t>(i, 4)]);
    else if (i > 0 && choice < 5)  // near one of those before
      events.push_back({key, events[i - 1 - random.next() % std::min<std::size_t>(i, 5)].time +
                                 (choice == 3 ? 1 : -1) * steps(12)});
    else if (choice < 8)
      events.push_back({key, now + steps(1200)});
    else if (choice < 8 + 3 * calm)
      events.push_back({key, now += steps(4)});
    else
      events.push_back({key, now -= steps(choice < 15 ? 30 : 1200)});
  }
  return events;
}

std::vector<Judged> in_batches(AnyFilter& filter, const std::vector<Event>& events,
                               SplitMix64& random, TestMemory* memory, Audit* audit,
                               std::uint64_t* refused = nullptr) {
  std::vector<Judged> all;
  while (all.size() < events.size()) {
    const std::size_t count =
        1 + random.next() % std::min<std::size_t>(events.size() - all.size(), 9);
    std::vector<Digest> digests;
    std::vector<Nanoseconds> times;
    for (std::size_t i = 0; i < count; ++i) {
      digests.push_back(digest_of(events[all.size() + i].key));
      times.push_back(events[all.size() + i].time);
    }
    std::vector<Verdict> verdicts(count);
    const auto late = std::make_unique<bool[]>(count);
    if (memory != nullptr) memory->fail_at(1 + random.next() % 3);
    const std::size_t judged =
        filter.window()->judge(digests, times, verdicts, {late.get(), count});
    EXPECT_TRUE(judged == count || memory != nullptr);
    if (refused != nullptr) *refused += judged < count;
    if (audit != nullptr)
      audit->observe(std::span(digests).first(judged), std::span(verdicts).first(judged),
                     std::span(times).first(judged), std::span(late.get(), judged));
    for (std::size_t i = 0; i < judged; ++i) all.push_back({verdicts[i], late[i]});
    // An audit and a memory stay with their filter.
    if (memory == nullptr && audit == nullptr && random.next() % 4 == 0) filter = copy_of(filter);
  }
  return all;
}

struct WildCase {
  const char* name;
  WindowSpec spec;
  Anchor anchor;
};

class WildTimes : public testing::TestWithParam<WildCase> {};

// A list and a table, one record at a time or in batches, with reloads, refused memory and an audit: all
// as the plain rules say, and the bytes the same.
TEST_P(WildTimes, AreReadAsTheRulesSay) {
  std::uint64_t late = 0, duplicates = 0, replaced = 0, refused = 0;
  const std::uint64_t seeds = count_of(300u, 1500u, 15'000u);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SplitMix64 random(seed);
    const auto events = wild_stream(random, 4 + random.next() % 30);
    Window::Params params{.spec = GetParam().spec, .anchor = GetParam().anchor, .keys = 50};
    params.filter = params.spec.kind == WindowSpec::Kind::landmark ? "exact-window"
                                                                   : "exact-window,generations=60";
    const std::uint64_t size = params.spec.size;
    params.max_ahead = std::array{size, size / 4, 5 * size}[seed % 3];
    PlainWindow plain(params);
    std::vector<Judged> expected;
    for (const Event& event : events) expected.push_back(plain.see(event.key, event.time));
    for (const bool listed : {true, false}) {
      params.listed = listed;
      SCOPED_TRACE("seed " + std::to_string(seed) + (listed ? " list" : " table"));
      AnyFilter single(Window::make(params));
      for (std::size_t i = 0; i < events.size(); ++i) {
        Window& window = *single.window();
        const Nanoseconds before = window.clock().now();
        const Verdict peeked = window.peek(digest_of(events[i].key), events[i].time);
        const Judged judged = see(window, events[i]);
        ASSERT_EQ(judged, expected[i]) << "record " << i;
        ASSERT_EQ(peeked, judged.verdict) << "record " << i;
        replaced += i > 0 && window.clock().now() < before;
      }
      AnyFilter batched(Window::make(params));
      ASSERT_EQ(in_batches(batched, events, random, nullptr, nullptr), expected);
      ASSERT_TRUE(bytes_of(batched) == bytes_of(single));
      TestMemory memory;
      AnyFilter tight(Window::make(params, memory));
      ASSERT_EQ(in_batches(tight, events, random, &memory, nullptr, &refused), expected);
      memory.fail_at(0);
      ASSERT_TRUE(bytes_of(tight) == bytes_of(single));
      AnyFilter audited(Window::make(params));
      Audit audit({.sample = 1}, audited);
      ASSERT_EQ(in_batches(audited, events, random, nullptr, &audit), expected);
      ASSERT_EQ(audit.report().positives.errors, 0);
      ASSERT_EQ(audit.report().negatives.errors, 0);
    }
    for (const Judged& judged : expected) {
      late += judged.late;
      duplicates += judged.verdict == Verdict::duplicate;
    }
  }
  EXPECT_GT(late, seeds);
  EXPECT_GT(duplicates, seeds);
  EXPECT_GT(replaced, seeds);
  EXPECT_GT(refused, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Windows, WildTimes,
    testing::Values(
        WildCase{"delivered", {WindowSpec::Kind::time, kMinute}, Anchor::delivered},
        WildCase{"refreshed", {WindowSpec::Kind::time, kMinute}, Anchor::refreshed},
        WildCase{"landmark", {WindowSpec::Kind::landmark, kMinute}, Anchor::delivered},
        WildCase{"landmark_refreshed", {WindowSpec::Kind::landmark, kMinute}, Anchor::refreshed}),
    [](const auto& test) { return std::string(test.param.name); });

// The claimant of a time that was replaced is in no list, and the one of now is known beside it.
TEST(FirstTime, IsSavedWithItsKeys) {
  for (const bool listed : {true, false}) {
    AnyFilter filter(
        Window::make({.spec = kTenMinutes, .max_ahead = kTenMinutes.size, .listed = listed}));
    see_all(*filter.window(), {{1, kNoon}, {2, kNoon - kHour}});
    AnyFilter copy = copy_of(filter);
    EXPECT_EQ(copy.window()->clock(), filter.window()->clock());
    see(*copy.window(), {1, kNoon});  // sent again: confirms nothing
    see(*copy.window(), {2, kNoon - kHour});
    see(*copy.window(), {3, kNoon - 2 * kHour});
    EXPECT_EQ(copy.window()->clock().now(), kNoon - 2 * kHour);
    EXPECT_EQ(copy.window()->clock().claimed(), kNoon - kHour);
  }
}

// An audit that was saved with its window reads on as the window does.
TEST(FirstTime, IsAuditedAfterAReload) {
  AnyFilter filter(Window::make({.spec = kTenMinutes, .max_ahead = kTenMinutes.size}));
  const auto audited = [](AnyFilter& of, Audit& by, const Event& event) {
    const Digest digest = digest_of(event.key);
    const Judged judged = see(*of.window(), event);
    by.observe({&digest, 1}, {&judged.verdict, 1}, {&event.time, 1}, {&judged.late, 1});
  };
  Audit audit({.sample = 1}, filter);
  audited(filter, audit, {1, kNoon});
  BytesEncoder saved;
  audit.encode(saved);
  const std::vector<std::byte> bytes = saved.take();
  AnyFilter copy = copy_of(filter);
  Audit again({.sample = 1}, copy);
  BytesDecoder from(bytes);
  again.decode(from);
  audited(copy, again, {1, kNoon});  // sent again
  audited(copy, again, {2, kNoon - kHour});
  audited(copy, again, {2, kNoon - kHour + kSecond});
  audited(copy, again, {1, kNoon - kHour + kSecond});
  const Audit::Report report = again.report();
  EXPECT_EQ(report.positives.trials, 3);
  EXPECT_EQ(report.positives.errors, 0);
  EXPECT_EQ(report.negatives.trials, 2);
  EXPECT_EQ(report.negatives.errors, 0);
}

// Only a first time that nobody has confirmed has a key of its own.
TEST(FirstTime, WithAKeyThatIsNotNeededIsRefused) {
  EventClock clock;
  const ClockLimits limits(kMinute, kMinute);
  Nanoseconds time = kNoon;
  clock.read(digest_of(1), time, limits);
  BytesEncoder keys;
  clock.encode_keys(keys);
  const std::vector<std::byte> bytes = keys.take();
  EventClock same = clock;
  BytesDecoder from(bytes);
  same.decode_keys(from);
  EXPECT_EQ(same, clock);
  time = kNoon + kSecond;
  clock.read(digest_of(2), time, limits);  // confirmed
  BytesDecoder again(bytes);
  EXPECT_THROW(clock.decode_keys(again), CorruptSnapshot);
  EventClock fresh;
  BytesDecoder third(bytes);
  EXPECT_THROW(fresh.decode_keys(third), CorruptSnapshot);
  const std::vector<std::byte> unknown(40, std::byte{4});
  BytesDecoder fourth(unknown);
  EXPECT_THROW(same.decode_keys(fourth), CorruptSnapshot);
}

// Compared filters and the truth forget alike.
TEST(FirstTime, ThatIsReplacedIsComparedAsItIsJudged) {
  const CompareWish wish{.wish = {.fpr = 1e-6}, .window = kTenMinutes, .window_keys = 100};
  Comparison comparison(wish.window);
  for (const char* name : {"exact", "cohort"}) comparison.add(name, make_compared(name, wish));
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
  for (Nanoseconds i = 0; i < 1000; ++i) {
    digests.push_back(digest_of(static_cast<std::uint64_t>(i % 10)));
    times.push_back(kNoon - i * kHour);
  }
  comparison.feed(digests, times);
  for (const CompareResult& result : comparison.finish()) {
    EXPECT_EQ(result.counts.distinct, 1000u) << result.name;
    EXPECT_EQ(result.counts.false_positives + result.counts.false_negatives, 0u) << result.name;
    EXPECT_EQ(result.counts.by_slack, 0u) << result.name;
  }
}

// What came at the time that was replaced says nothing about how long keys are kept.
TEST(FirstTime, ThatIsReplacedLosesNothingBySlack) {
  Window window = Window::make({.spec = kTenMinutes, .max_ahead = kTenMinutes.size});
  SlackMeter meter(window);
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
  const auto add = [&](std::uint64_t key, Nanoseconds time) {
    digests.push_back(digest_of(key));
    times.push_back(time);
  };
  add(1, kNoon);
  add(2, kNoon - 2 * kHour);
  for (Nanoseconds i = 0; i < 150; ++i) {
    add(static_cast<std::uint64_t>(100 + i), kNoon - 2 * kHour + i * kMinute);
    add(static_cast<std::uint64_t>(100 + i), kNoon - 2 * kHour + i * kMinute + kSecond);
  }
  std::vector<Verdict> verdicts(digests.size());
  const auto late = std::make_unique<bool[]>(digests.size());
  const std::span<bool> lates(late.get(), digests.size());
  ASSERT_EQ(window.judge(digests, times, verdicts, lates), digests.size());
  EXPECT_EQ(count_duplicates(verdicts), 150u);
  meter.look(digests, verdicts, times, lates);
  EXPECT_EQ(meter.counted(), 0u);
}

}  // namespace
}  // namespace sluice
