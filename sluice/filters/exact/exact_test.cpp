// Exact filters through every stage of a move from one table to another, against plain sets.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/exact/exact.hpp"
#include "sluice/filters/exact/exact_window.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

using testing_support::count_of;

struct Bytes {
  std::vector<std::byte> header, payload;
  friend bool operator==(const Bytes&, const Bytes&) = default;
};

template <class F>
Bytes encoded(const F& filter) {
  BytesEncoder header, payload;
  filter.encode_header(header);
  filter.encode_payload(payload);
  return {header.take(), payload.take()};
}

template <class F>
F decoded(const Bytes& bytes) {
  BytesDecoder header(bytes.header), payload(bytes.payload);
  return F::decode(header, payload);
}

struct InOrder {
  bool operator()(const Digest& a, const Digest& b) const {
    return std::pair(a.lo, a.hi) < std::pair(b.lo, b.hi);
  }
};

// Keys that crowd the first and the last homes of every table, and so run over its end.
Digest crowded(SplitMix64& random) {
  Digest key{random.next(), random.next()};
  const std::uint64_t chance = random.next() % 128;
  if (chance == 0) key.lo |= std::uint64_t{0xFF} << 56;
  if (chance == 1) key.lo &= ~(std::uint64_t{0xFF} << 56);
  return key;
}

// Every verdict is right while keys come, repeat, and are taken back, and a copy that was reloaded
// in the middle of a move is the same from then on.
TEST(Exact, IsRightInTheMiddleOfAMove) {
  SplitMix64 random(11);
  Exact filter = Exact::make({});
  std::map<Digest, bool, InOrder> truth;
  std::vector<Digest> keys;
  int moves = 0;
  for (int i = 0; i < count_of(15'000, 60'000, 60'000); ++i) {
    const bool again = !keys.empty() && random.next() % 3 == 0;
    const Digest key = again ? keys[random.next() % keys.size()] : crowded(random);
    if (again && random.next() % 2 == 0) {
      EXPECT_EQ(filter.forget(key), truth[key]);
      truth[key] = false;
      continue;
    }
    ASSERT_EQ(filter.observe(key), truth[key] ? Verdict::duplicate : Verdict::distinct) << i;
    if (!again) keys.push_back(key);
    truth[key] = true;
    if (i % 61 != 0) continue;
    const Bytes bytes = encoded(filter);
    moves += bytes.payload.size() % (3 * 16 * 1024) == 0;
    filter = decoded<Exact>(bytes);
    ASSERT_EQ(encoded(filter), bytes);
  }
  EXPECT_GT(moves, 10);
  for (const auto& [key, there] : truth) ASSERT_EQ(filter.may_contain(key), there);
}

TEST(Exact, MergesInTheMiddleOfAMove) {
  // A table of 1024 slots begins to move at 768 keys, and has moved 64 insertions later.
  for (const int mine : {0, 770, 800, 830})
    for (const int theirs : {10, 780, 820, 5000}) {
      SplitMix64 random(3);
      std::vector<Digest> keys;
      const auto some = [&](int count) {
        Exact filter = Exact::make({});
        for (int i = 0; i < count; ++i) {
          keys.push_back({random.next(), random.next()});
          filter.insert(keys.back());
        }
        return filter;
      };
      Exact one = some(mine);
      const Exact other = some(theirs);
      one.merge(other);
      one.merge(one);
      EXPECT_EQ(one.stats().keys, keys.size());
      for (const Digest& key : keys) ASSERT_TRUE(one.may_contain(key));
      ASSERT_EQ(encoded(decoded<Exact>(encoded(one))), encoded(one));
      one.clear();
      EXPECT_EQ(encoded(one), encoded(Exact::make({})));
    }
}

// The table as the file says it must be one that this filter writes: a move that has not begun, or
// has ended, is none, and every key is found where it stands.
TEST(Exact, RefusesAMoveThatCannotBe) {
  Exact filter = Exact::make({});
  SplitMix64 random(5);
  while (encoded(filter).payload.size() == 1024 * 16) filter.insert({random.next(), random.next()});
  filter.insert({random.next(), random.next()});
  const Bytes good = encoded(filter);
  ASSERT_NO_THROW(decoded<Exact>(good));
  // expected keys, slots, slots of the old table, start, moved
  const auto with = [&](std::size_t field, std::uint64_t value) {
    Bytes bad = good;
    for (std::size_t i = 0; i < 8; ++i)
      bad.header[field * 8 + i] = static_cast<std::byte>(value >> (8 * i));
    return bad;
  };
  for (const std::uint64_t value : {0, 1023, 1024})
    EXPECT_THROW(decoded<Exact>(with(4, value)), CorruptSnapshot) << value;
  EXPECT_THROW(decoded<Exact>(with(3, 1024)), CorruptSnapshot);
  EXPECT_THROW(decoded<Exact>(with(3, 500)), CorruptSnapshot);
  EXPECT_THROW(decoded<Exact>(with(2, 0)), CorruptSnapshot);
  EXPECT_THROW(decoded<Exact>(with(2, 1000)), CorruptSnapshot);
  EXPECT_THROW(decoded<Exact>(with(1, 1024)), CorruptSnapshot);
  EXPECT_THROW(decoded<Exact>(with(0, std::uint64_t{1} << 41)), CorruptSnapshot);
}

// Against a map from keys to generations, with both anchors, ages, and keys taken back.
TEST(ExactWindow, IsRightInTheMiddleOfAMove) {
  constexpr unsigned kGenerations = 3;
  SplitMix64 random(17);
  ExactWindow filter = ExactWindow::make({.generations = kGenerations});
  std::map<Digest, std::uint64_t, InOrder> written;
  std::vector<Digest> keys;
  std::uint64_t now = 100;
  const auto live = [&](const Digest& key) {
    const auto found = written.find(key);
    return found != written.end() && now - found->second <= kGenerations;
  };
  int moves = 0;
  for (int round = 0; round < count_of(150, 400, 400); ++round) {
    // Bursts, quiet times and idle ones, so that tables grow and shrink.
    const int arrivals = round % 50 < 5 ? 1500 : round % 50 < 40 ? 30 : 0;
    for (int i = 0; i < arrivals; ++i) {
      const bool again = !keys.empty() && random.next() % 3 == 0;
      const Digest key = again ? keys[random.next() % keys.size()] : crowded(random);
      if (!again) keys.push_back(key);
      if (again && random.next() % 8 == 0) {
        ASSERT_EQ(filter.forget(key), live(key));
        written.erase(key);
        continue;
      }
      const auto anchor = random.next() % 2 == 0 ? Anchor::refreshed : Anchor::delivered;
      const auto age = static_cast<unsigned>(random.next() % (kGenerations + 1));
      const Verdict right = live(key) ? Verdict::duplicate : Verdict::distinct;
      ASSERT_EQ(filter.admit_aged(key, age, anchor), right) << round;
      if (right == Verdict::distinct)
        written[key] = now - age;
      else if (anchor == Anchor::refreshed)
        written[key] = std::max(written[key], now - age);
      if (i % 97 != 0) continue;
      const Bytes bytes = encoded(filter);
      moves += bytes.payload.size() != filter.slots() * 24;
      filter = decoded<ExactWindow>(bytes);
      ASSERT_EQ(encoded(filter), bytes);
    }
    filter.rotate();
    ++now;
    std::erase_if(keys, [&](const Digest& key) { return !live(key) && random.next() % 4 != 0; });
    const auto alive = std::ranges::count_if(
        written, [&](const auto& key) { return now - key.second <= kGenerations; });
    ASSERT_EQ(filter.live_keys(), static_cast<std::uint64_t>(alive));
  }
  EXPECT_GT(moves, 20);
}

}  // namespace
}  // namespace sluice
