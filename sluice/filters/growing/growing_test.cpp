#include "sluice/filters/growing/growing.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using testing_support::random_digests;

Growing make(unsigned slot_bits, std::uint64_t keys = 1) {
  return Growing::make({.slot_bits = slot_bits, .expected_keys = keys, .target_fpr = 0.05});
}

// Inserts all, and returns those that were judged distinct: those that it must hold.
std::vector<Digest> fill(Growing& filter, std::span<const Digest> digests) {
  std::vector<Verdict> verdicts(digests.size());
  filter.observe(digests, verdicts);
  std::vector<Digest> held;
  for (std::size_t i = 0; i < digests.size(); ++i)
    if (verdicts[i] == Verdict::distinct) held.push_back(digests[i]);
  return held;
}

std::size_t missing(const Growing& filter, std::span<const Digest> held) {
  std::vector<Verdict> verdicts(held.size());
  filter.may_contain(held, verdicts);
  return static_cast<std::size_t>(std::ranges::count(verdicts, Verdict::distinct));
}

// Without a vector of its own.
[[maybe_unused]] std::size_t missing_one_by_one(const Growing& filter,
                                                std::span<const Digest> held) {
  return static_cast<std::size_t>(std::ranges::count_if(
      held, [&](const Digest& digest) { return !filter.may_contain(digest); }));
}

std::vector<std::byte> payload_of(const Growing& filter) {
  BytesEncoder to;
  filter.encode_payload(to);
  return to.take();
}

std::vector<std::byte> header_of(const Growing& filter) {
  BytesEncoder to;
  filter.encode_header(to);
  return to.take();
}

Growing decoded(std::span<const std::byte> header, std::span<const std::byte> payload) {
  BytesDecoder from_header(header), from_payload(payload);
  return Growing::decode(from_header, from_payload);
}

// Slots of 16 bits that have no hash bit left: a delimiter right above 6 bits of tag.
std::size_t spent_slots(const Growing& filter) {
  const std::vector<std::byte> bytes = payload_of(filter);
  std::size_t spent = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 2) {
    std::uint16_t slot;
    std::memcpy(&slot, bytes.data() + at, 2);
    spent += slot >> 6 == 1;
  }
  return spent;
}

class GrowingTest : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Slots, GrowingTest, testing::Values(16u, 32u, 64u),
                         [](const auto& test) { return std::to_string(test.param); });

// Inserts and forgets in random order, through many doublings: what was let through and not taken
// back is held at every moment. With 16-bit slots the oldest keys run out of bits on the way.
TEST_P(GrowingTest, NeverLosesAKeyThatWasNotTakenBack) {
  Growing filter = make(GetParam());
  SplitMix64 random(GetParam());
  std::vector<Digest> held;
  for (int round = 0; round < 400; ++round) {
    const std::vector<Digest> kept =
        fill(filter, random_digests(random.next(), 1 + random.next() % 600));
    held.insert(held.end(), kept.begin(), kept.end());
    for (std::uint64_t i = random.next() % 60; i > 0 && !held.empty(); --i) {
      std::swap(held[random.next() % held.size()], held.back());
      ASSERT_TRUE(filter.forget(held.back()));
      held.pop_back();
    }
    if (round % 20 == 0) {
      ASSERT_EQ(missing(filter, held), 0u) << round;
    }
    ASSERT_EQ(filter.stats().keys, held.size());
  }
  EXPECT_EQ(missing(filter, held), 0u);
  if (GetParam() == 16) {
    EXPECT_GT(spent_slots(filter), 0u) << "not long enough for what it is to show";
  }
  // All keys are taken back, the oldest first: no other key is lost.
  std::ranges::reverse(held);
  while (!held.empty()) {
    ASSERT_TRUE(filter.forget(held.back()));
    held.pop_back();
    if (held.size() % 4096 == 0) {
      ASSERT_EQ(missing(filter, held), 0u);
    }
  }
  EXPECT_EQ(filter.stats().keys, 0u);
}

TEST_P(GrowingTest, ForgettingWhatIsNotThereIsCounted) {
  Growing filter = make(GetParam());
  const std::vector<Digest> held = fill(filter, random_digests(1, 100));
  EXPECT_TRUE(filter.forget(held[0]));
  EXPECT_FALSE(filter.forget(held[0]));
  EXPECT_EQ(filter.stats().forgotten, 1u);
  EXPECT_EQ(filter.stats().forget_misses, 1u);
  EXPECT_EQ(filter.stats().keys, held.size() - 1);
}

// A key's trace is found in few bits or many, wherever it lies: the one of which most is known
// goes.
TEST_P(GrowingTest, MergedFiltersAnswerForBoth) {
  for (const auto& [mine, others] :
       {std::pair(100, 50'000), std::pair(50'000, 100), std::pair(40'000, 40'000),
        std::pair(0, 3000), std::pair(3000, 0)}) {
    Growing one = make(GetParam()), two = make(GetParam());
    const auto first = fill(one, random_digests(1, static_cast<std::size_t>(mine)));
    const auto second = fill(two, random_digests(2, static_cast<std::size_t>(others)));
    const std::vector<std::byte> before = payload_of(two);
    one.merge(two);
    EXPECT_EQ(missing(one, first), 0u) << mine << ' ' << others;
    EXPECT_EQ(missing(one, second), 0u) << mine << ' ' << others;
    EXPECT_EQ(payload_of(two), before);
    // Keys of one may be taken for keys of the other, and then count once.
    EXPECT_LE(one.stats().keys, first.size() + second.size());
    EXPECT_GE(static_cast<double>(one.stats().keys),
              0.97 * static_cast<double>(first.size() + second.size()));
    const auto more = fill(one, random_digests(3, 20'000));
    EXPECT_EQ(missing(one, first) + missing(one, second) + missing(one, more), 0u);
  }
}

TEST_P(GrowingTest, MergingTheSameKeysAddsNothing) {
  Growing one = make(GetParam()), two = make(GetParam());
  fill(one, random_digests(1, 5000));
  fill(two, random_digests(1, 5000));
  const std::vector<std::byte> before = payload_of(one);
  one.merge(two);
  one.merge(one);
  EXPECT_EQ(payload_of(one), before);
  EXPECT_EQ(one.stats().keys, two.stats().keys);
  // Memory is taken as it is needed, not for the keys of both.
  EXPECT_LT(static_cast<double>(one.bytes()), 1.3 * static_cast<double>(two.bytes()));
}

// What is known of a key depends on when it came: in the reverse order others are known well. A key
// that both have is one key all the same, and taken back once.
TEST_P(GrowingTest, MergingTheSameKeysInAnotherOrderAddsNothing) {
  for (const std::size_t of_two : {std::size_t{5000}, std::size_t{40'000}}) {
    Growing one = make(GetParam()), two = make(GetParam());
    std::vector<Digest> keys = random_digests(1, 40'000);
    fill(one, keys);
    std::ranges::reverse(keys);
    const std::vector<Digest> second =
        fill(two, std::vector(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(of_two)));
    const std::uint64_t before = one.stats().keys;
    one.merge(two);
    EXPECT_EQ(missing(one, keys), 0u);
    // Different keys may look the same, with slots of 16 bits more than a few.
    const double slack = GetParam() == 16 ? 0.02 : 0;
    EXPECT_NEAR(static_cast<double>(one.stats().keys), static_cast<double>(before),
                slack * static_cast<double>(before));
    std::size_t gone = 0;
    for (std::size_t i = 0; i < 100; ++i) {
      one.forget(second[i]);
      gone += !one.may_contain(second[i]);
    }
    // Of 15 bits so few are left after as many doublings that others still stand for some.
    EXPECT_GE(gone, GetParam() == 16 ? 60u : 100u);
  }
}

// A table full of slots without a hash bit: each split would make as many copies as room.
TEST_P(GrowingTest, ATableThatNeverHasRoomIsRefused) {
  Growing filter = make(GetParam());
  fill(filter, random_digests(1, 2000));
  std::vector<std::byte> header = header_of(filter), payload = payload_of(filter);
  const std::size_t slot_bytes = GetParam() / 8;
  const unsigned tag_bits = GetParam() == 16 ? 6 : GetParam() == 32 ? 12 : 32;
  for (std::size_t at = 0; at < payload.size(); at += slot_bytes) {
    // The first slots of each line, as many as the limit allows.
    const bool taken = at % 64 / slot_bytes < 64 / slot_bytes * 5 / 8;
    const std::uint64_t value = taken ? std::uint64_t{1} << tag_bits : 0;
    std::memcpy(payload.data() + at, &value, slot_bytes);
  }
  BytesDecoder from_header(header), from_payload(payload);
  try {
    Growing made_up = Growing::decode(from_header, from_payload);
    for (const Digest& digest : random_digests(2, 5000)) made_up.observe(digest);
    EXPECT_LT(made_up.stats().bytes, 64u << 20);
  } catch (const Error&) {
  }
}

// Every length that a slot can have: up to the tag's, no filter has written it.
TEST_P(GrowingTest, ASlotWithoutADelimiterIsRefused) {
  Growing filter = make(GetParam());
  filter.forget(fill(filter, random_digests(1, 2000))[0]);  // there is room for one
  const std::vector<std::byte> header = header_of(filter), sound = payload_of(filter);
  const std::size_t slot_bytes = GetParam() / 8;
  const unsigned tag_bits = GetParam() == 16 ? 6 : GetParam() == 32 ? 12 : 32;
  // A free slot: in a taken one, a key too few would be refused as well.
  std::size_t free = 0;
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  while (!std::all_of(&sound[free], &sound[free] + slot_bytes, is_zero)) free += slot_bytes;
  for (unsigned length = 1; length <= GetParam(); ++length) {
    // The least and the greatest slot of that length.
    for (const bool greatest : {false, true}) {
      const std::uint64_t least = std::uint64_t{1} << (length - 1);
      const std::uint64_t value = greatest ? least | (least - 1) : least;
      std::vector<std::byte> payload = sound;
      std::memcpy(payload.data() + free, &value, slot_bytes);
      if (length <= tag_bits) {
        EXPECT_THROW(decoded(header, payload), CorruptSnapshot) << length;
      } else {
        EXPECT_NO_THROW(decoded(header, payload)) << length;
      }
    }
  }
}

TEST(Growing, MergingAnotherErrorIsRefused) {
  Growing one = Growing::make(Growing::Params::from({.fpr = 1e-6}, {}));
  const Growing two = Growing::make(Growing::Params::from({.fpr = 1e-5}, {}));
  EXPECT_THROW(one.merge(two), BadParameters);
}

TEST(Growing, MergingOtherSlotsIsRefused) {
  Growing one = make(16);
  const Growing two = make(32);
  EXPECT_THROW(one.merge(two), BadParameters);
}

TEST_P(GrowingTest, TheExpectedKeysTakeNoSplit) {
  Growing filter = make(GetParam(), 10'000);
  const std::uint64_t bytes = payload_of(filter).size();
  fill(filter, random_digests(1, 10'000));
  EXPECT_EQ(payload_of(filter).size(), bytes);
  fill(filter, random_digests(2, 200));
  EXPECT_GT(payload_of(filter).size(), bytes);
}

// Everything that is counted while it grows is what a table that is read back says.
TEST_P(GrowingTest, WhatIsPredictedIsKeptByASnapshot) {
  Growing filter = make(GetParam());
  const auto held = fill(filter, random_digests(1, 100'000));
  for (std::size_t i = 0; i < 1000; ++i) filter.forget(held[i * 7]);
  const Growing copy = decoded(header_of(filter), payload_of(filter));
  EXPECT_EQ(copy.stats().predicted_fpr, filter.stats().predicted_fpr);
  EXPECT_EQ(copy.stats().keys, filter.stats().keys);
  EXPECT_LE(filter.stats().predicted_fpr, filter.stats().planned_fpr);
}

TEST(Growing, TheNarrowestSlotsThatHoldTheErrorAreTaken) {
  const auto slot = [](double fpr) { return Growing::Params::from({.fpr = fpr}, {}).slot_bits; };
  EXPECT_EQ(slot(0.05), 16u);
  EXPECT_EQ(slot(1e-2), 32u);
  EXPECT_EQ(slot(1e-6), 32u);
  EXPECT_EQ(slot(1e-8), 64u);
  EXPECT_THROW(slot(1e-18), BadParameters);
}

// The sanitizers take more address space than any limit leaves. (clang says so by __has_feature.)
#if !defined(__has_feature)
#define __has_feature(name) 0
#endif
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
TEST(Growing, WithoutMemoryNothingIsLostAndItGoesOnWhenThereIsSome) {
  Growing filter = Growing::make({.slot_bits = 32, .expected_keys = 0, .target_fpr = 1e-6});
  std::vector<Digest> held = fill(filter, random_digests(1, 400'000));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit tight{std::min<rlim_t>(before.rlim_cur, 1 << 20), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  SplitMix64 random(2);
  Digest refused;
  bool full = false;
  std::size_t more = 0;
  for (; more < 3'000'000 && !full; ++more) {
    refused = {random.next(), random.next()};
    try {
      filter.observe(refused);
    } catch (const NoMemory&) {
      full = true;
    }
  }
  const bool absent = !filter.may_contain(refused);
  const std::size_t lost = missing_one_by_one(filter, held);
  setrlimit(RLIMIT_AS, &before);
  EXPECT_TRUE(full);
  EXPECT_TRUE(absent);
  EXPECT_EQ(lost, 0u);
  const std::vector<Digest> later = fill(filter, random_digests(3, 500'000));
  EXPECT_EQ(missing(filter, held) + missing(filter, later), 0u);
}
#endif

class HostileGrowing : public testing::Test {
 protected:
  HostileGrowing() {
    Growing filter = make(32, Growing::kMostListed + 1);
    fill(filter, random_digests(1, 40));
    header_ = header_of(filter);
    payload_ = payload_of(filter);
  }
  template <class T>
  void write(std::vector<std::byte>& to, std::size_t at, T value) {
    std::memcpy(to.data() + at, &value, sizeof value);
  }
  void expect_refused() { EXPECT_THROW(decoded(header_, payload_), CorruptSnapshot); }
  std::vector<std::byte> header_, payload_;
};

TEST_F(HostileGrowing, IsFineAsItWas) {
  EXPECT_EQ(decoded(header_, payload_).stats().keys, 40u);
}
TEST_F(HostileGrowing, ASlotWithoutADelimiter) {
  write<std::uint32_t>(payload_, 0, 0xFFF);
  expect_refused();
}
TEST_F(HostileGrowing, MoreSlotsTakenThanItWouldLet) {
  std::ranges::fill(payload_, std::byte{0xFF});
  expect_refused();
}
TEST_F(HostileGrowing, MoreKeysThanSlotsTaken) {
  write<std::uint64_t>(header_, 20, 41);
  expect_refused();
}
TEST_F(HostileGrowing, NeitherAListNorATable) {
  write<std::uint8_t>(header_, 11, 2);
  expect_refused();
}
TEST_F(HostileGrowing, AListWhereATableIsExpected) {
  write<std::uint8_t>(header_, 11, 1);
  header_.resize(12);
  header_.push_back(std::byte{0});
  payload_.clear();
  expect_refused();
}
TEST_F(HostileGrowing, BucketsThatAreNotThere) {
  for (const std::uint64_t buckets :
       {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1} << 33, ~std::uint64_t{0}}) {
    write(header_, 12, buckets);
    expect_refused();
  }
}
TEST_F(HostileGrowing, StraysThatCannotBe) {
  const std::vector<std::byte> sound = header_;
  const auto with_stray = [&](std::uint64_t tag, std::uint64_t hash, std::uint32_t bits) {
    header_ = sound;
    write<std::uint32_t>(header_, 28, 1);
    header_.resize(sound.size() + 20);
    write(header_, sound.size(), tag);
    write(header_, sound.size() + 8, hash);
    write(header_, sound.size() + 16, bits);
  };
  with_stray(1, 5, 64);
  EXPECT_EQ(decoded(header_, payload_).stats().stash, 1u);
  // Too few bits are known to tell its bucket: it is kept forever, and is harmless.
  with_stray(1, 0, 1);
  Growing odd = decoded(header_, payload_);
  fill(odd, random_digests(2, 1000));
  EXPECT_EQ(odd.stats().stash, 1u);
  with_stray(1 << 12, 5, 64);
  expect_refused();
  with_stray(1, 5, 65);
  expect_refused();
  with_stray(1, 5, 2);
  expect_refused();
  header_ = sound;
  write<std::uint32_t>(header_, 28, 65);
  expect_refused();
}

}  // namespace
}  // namespace sluice
