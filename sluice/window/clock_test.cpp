#include "sluice/window/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"

namespace sluice {
namespace {

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kYear = 365 * 86'400 * kSecond;
constexpr Nanoseconds kStart = 1'700'000'000 * kSecond;

const ClockLimits kMinute(60 * kSecond, 60 * kSecond);

// Each record has another key.
EventClock::Reading read(EventClock& clock, Nanoseconds& time, const ClockLimits& limits) {
  static std::uint64_t key = 0;
  return clock.read({++key, 0}, time, limits);
}

// What the clock made of each time, in seconds from kStart; nothing for late.
std::vector<std::optional<Nanoseconds>> readings(EventClock& clock,
                                                 const std::vector<Nanoseconds>& seconds,
                                                 const ClockLimits& limits = kMinute) {
  std::vector<std::optional<Nanoseconds>> all;
  for (const Nanoseconds second : seconds) {
    Nanoseconds time = kStart + second * kSecond;
    if (read(clock, time, limits) == EventClock::Reading::late)
      all.push_back(std::nullopt);
    else
      all.push_back((time - kStart) / kSecond);
  }
  return all;
}

using Readings = std::vector<std::optional<Nanoseconds>>;

TEST(EventClock, NowIsTheGreatestAcceptedTime) {
  EventClock clock;
  EXPECT_EQ(readings(clock, {0, 10, 5, 30, 29}), (Readings{0, 10, 5, 30, 29}));
  EXPECT_EQ(clock.now(), kStart + 30 * kSecond);
}

TEST(EventClock, AWindowBehindNowIsLateAndLessIsNot) {
  EventClock clock;
  EXPECT_EQ(readings(clock, {0, 50, 100, 41, 40, 39}),
            (Readings{0, 50, 100, 41, std::nullopt, std::nullopt}));
}

TEST(EventClock, OneWildClockIsNotBelieved) {
  EventClock clock;
  EXPECT_EQ(readings(clock, {0, 1, 365 * 86'400, 2}), (Readings{0, 1, 1, 2}));
  EXPECT_EQ(clock.disbelieved(), 1u);
}

TEST(EventClock, TwoThatAgreeAreBelieved) {
  EventClock clock;
  EXPECT_EQ(readings(clock, {0, 1, 1000, 1030, 2}), (Readings{0, 1, 1, 1030, std::nullopt}));
}

// In either order: now is the later of the two, and the other is as old as it says.
TEST(EventClock, OfTwoThatAgreeTheLaterIsNow) {
  EventClock clock;
  EXPECT_EQ(readings(clock, {0, 1, 1058, 1000, 999}), (Readings{0, 1, 1, 1000, 999}));
  EXPECT_EQ(clock.now(), kStart + 1058 * kSecond);
  // Further apart than a window, where `max_ahead` is longer: the second is late.
  EventClock other;
  const ClockLimits limits(60 * kSecond, 100 * kSecond);
  readings(other, {0, 1, 1090}, limits);
  Nanoseconds time = kStart + 1000 * kSecond;
  EXPECT_EQ(read(other, time, limits), EventClock::Reading::agreed);
  EXPECT_TRUE(other.is_late(time, limits));
  EXPECT_EQ(other.now(), kStart + 1090 * kSecond);
}

TEST(EventClock, ASecondWildClockThatSaysSomethingElseIsNotBelievedEither) {
  EventClock clock;
  EXPECT_EQ(readings(clock, {0, 1, 1000, 5000, 9000, 2}), (Readings{0, 1, 1, 1, 1, 2}));
}

TEST(EventClock, TheFirstRecordAloneIsNotBelieved) {
  EventClock clock;
  EXPECT_EQ(readings(clock, {100'000, 0, 1, 2}), (Readings{100'000, 0, 1, 2}));
  EXPECT_EQ(clock.now(), kStart + 2 * kSecond);
  EventClock other;
  Nanoseconds first = kStart, second = kStart - 60 * kSecond;
  other.read({1, 2}, first, kMinute);
  EXPECT_EQ(other.read({3, 4}, second, kMinute), EventClock::Reading::replaced);
  EXPECT_EQ(other.claimed(), kStart);
  EXPECT_EQ(other.claimant(), (Digest{1, 2}));
}

// The record that waits, sent again, is no second record.
TEST(EventClock, ARepeatConfirmsNothing) {
  EventClock clock;
  readings(clock, {0, 1});
  const auto at = [&](std::uint64_t key, Nanoseconds second) {
    Nanoseconds time = kStart + second * kSecond;
    return clock.read({key, 7}, time, kMinute);
  };
  EXPECT_EQ(at(1, 1000), EventClock::Reading::disbelieved);
  EXPECT_EQ(at(1, 1000), EventClock::Reading::disbelieved);
  EXPECT_EQ(clock.disbelieved(), 2u);
  EventClock confirmed = clock;
  EXPECT_EQ(at(1, 1001), EventClock::Reading::agreed) << "the same key at another time";
  clock = confirmed;
  EXPECT_EQ(at(2, 1000), EventClock::Reading::agreed) << "another key at the same time";
  // The very first record.
  clock = EventClock();
  EXPECT_EQ(at(1, 1000), EventClock::Reading::in_time);
  EXPECT_EQ(at(1, 1000), EventClock::Reading::in_time);
  EXPECT_EQ(at(2, 0), EventClock::Reading::replaced);
  EXPECT_EQ(at(1, 1000), EventClock::Reading::disbelieved);
  clock.forget({1, 7});
  EXPECT_EQ(clock.claimant(), std::nullopt);
}

TEST(EventClock, ExtremeTimesDoNotOverflow) {
  EventClock clock;
  const ClockLimits limits(std::uint64_t{1} << 61, std::uint64_t{1} << 61);
  for (const Nanoseconds time :
       {std::numeric_limits<Nanoseconds>::min(), Nanoseconds{0},
        std::numeric_limits<Nanoseconds>::max(), kYear, std::numeric_limits<Nanoseconds>::min()}) {
    Nanoseconds taken = time;
    read(clock, taken, limits);
    EXPECT_LE(taken, clock.now());
  }
}

TEST(EventClock, StateRoundTrip) {
  EventClock clock;
  readings(clock, {0, 1, 1000});
  BytesEncoder bytes;
  clock.encode(bytes);
  clock.encode_keys(bytes);
  const std::vector<std::byte> state = bytes.take();
  EventClock copy;
  BytesDecoder from(state);
  copy.decode(from);
  copy.decode_keys(from);
  EXPECT_EQ(from.remaining(), 0u);
  EXPECT_EQ(copy, clock);
  // The claim of the wild record is remembered too.
  EXPECT_EQ(readings(copy, {1001}), (Readings{1001}));
}

TEST(EventClock, ThatHasNotStartedSaysNothing) {
  for (const int flags : {2, 4, 6}) {
    BytesEncoder bytes;
    bytes.u8(static_cast<std::uint8_t>(flags));
    bytes.u64(0);
    if (flags >= 4) bytes.u64(0);
    bytes.varint(0);
    BytesDecoder from(bytes.written());
    EventClock clock;
    EXPECT_THROW(clock.decode(from), CorruptSnapshot) << flags;
  }
}

TEST(EventClock, WithinAWindowOfEachOtherIsAgreement) {
  EventClock clock;
  const ClockLimits limits(60 * kSecond, 1 * kSecond);
  EXPECT_EQ(readings(clock, {0, 1, 1000, 1059, 1060}, limits), (Readings{0, 1, 1, 1059, 1060}));
}

// The caller's own clock: believed at once, stands still when it is set back a little.
TEST(EventClock, OurOwnClockIsBelieved) {
  EventClock clock;
  const auto set = [&](Nanoseconds second) {
    clock.set(kStart + second * kSecond, kMinute);
    return (clock.now() - kStart) / kSecond;
  };
  EXPECT_EQ(set(0), 0);
  EXPECT_EQ(set(1'000'000), 1'000'000);
  EXPECT_EQ(set(999'990), 1'000'000) << "ten seconds back";
  EXPECT_EQ(set(5), 5) << "it was set";
  EXPECT_EQ(clock.disbelieved(), 0u);
}

// To leap is to read them all.
TEST(EventClock, LeapsWhereItMay) {
  SplitMix64 random(7);
  int leaps = 0;
  EventClock clock;
  for (int round = 0; round < 2000; ++round) {
    std::vector<Nanoseconds> times;
    for (std::uint64_t i = 0; i <= random.next() % 5; ++i) {
      const auto off = static_cast<Nanoseconds>(random.next() % (100 * kSecond));
      const bool wild = random.next() % 40 == 0;
      times.push_back(clock.now() + (wild ? 10 * off : off / 8 - 3 * kSecond));
    }
    EventClock leapt = clock;
    const bool may = leapt.leap(std::ranges::max(times), kMinute);
    const EventClock before = clock;
    for (Nanoseconds time : times) read(clock, time, kMinute);
    leaps += may;
    EXPECT_TRUE(leapt == (may ? clock : before)) << round;
  }
  EXPECT_GT(leaps, 1000);
  EXPECT_LT(leaps, 1990);
}

}  // namespace
}  // namespace sluice
