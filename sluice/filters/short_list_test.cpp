#include "sluice/filters/short_list.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "sluice/base/error.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

struct Order {
  bool operator()(const Digest& a, const Digest& b) const {
    return a.lo != b.lo ? a.lo < b.lo : a.hi < b.hi;
  }
};

// Few values of `lo`, so that digests are also told apart by `hi`.
Digest digest_of(std::mt19937_64& random) {
  return {random() % 16, random() % 16};
}

void add(ShortList& list, const Digest& digest, ShortList::Stamp stamp) {
  if (const auto at = list.find(digest)) return list.stamp(*at, stamp);
  list.grow();
  list.insert(digest, stamp);
}

std::vector<std::byte> bytes_of(const ShortList& list) {
  BytesEncoder to;
  list.encode(to, 0, 1000);
  return to.take();
}

TEST(ShortList, IsAMapOfDigestsToStamps) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    std::mt19937_64 random(seed);
    ShortList list(default_memory());
    std::map<Digest, ShortList::Stamp, Order> truth;
    for (int step = 0; step < 3000; ++step) {
      const Digest digest = digest_of(random);
      const auto stamp = static_cast<ShortList::Stamp>(random() % 1000) - 500;
      const auto choice = random() % 100;
      if (choice < 70) {
        add(list, digest, stamp);
        truth[digest] = stamp;
      } else if (choice < 98) {
        const auto at = list.find(digest);
        ASSERT_EQ(at.has_value(), truth.contains(digest));
        if (at) list.erase(*at);
        truth.erase(digest);
      } else {
        list.erase_before(stamp);
        std::erase_if(truth, [&](const auto& key) { return key.second < stamp; });
      }
      if (choice % 3 == 0) list.shrink();
      ASSERT_EQ(list.size(), truth.size());
      std::size_t i = 0;
      for (const auto& [key, value] : truth) {
        ASSERT_EQ(list.digests()[i], key);
        ASSERT_EQ(list.stamps()[i++], value);
      }
    }
  }
}

TEST(ShortList, BytesTellNothingOfTheOrder) {
  std::mt19937_64 random(7);
  std::vector<Digest> keys;
  for (int i = 0; i < 50; ++i) keys.push_back({random(), random()});
  ShortList one(default_memory()), other(default_memory());
  for (std::size_t i = 0; i < keys.size(); ++i) add(one, keys[i], static_cast<int>(i));
  for (std::size_t i = keys.size(); i-- > 0;) add(other, keys[i], static_cast<int>(i));
  EXPECT_EQ(bytes_of(one), bytes_of(other));

  const auto bytes = bytes_of(one);
  EXPECT_EQ(bytes.size(), 1 + 50 * (16 + 2u));
  ShortList again(default_memory());
  BytesDecoder from(bytes);
  again.decode(from, 50, 1000);
  EXPECT_EQ(bytes_of(again), bytes);
}

TEST(ShortList, BytesTellNothingOfKeysThatLeft) {
  ShortList list(default_memory()), shorter(default_memory());
  for (const std::uint64_t key : {1, 2, 3, 4}) add(list, {key, 9}, static_cast<int>(key));
  for (const std::uint64_t key : {3, 4}) add(shorter, {key, 9}, static_cast<int>(key));
  BytesEncoder to;
  list.encode(to, 3, 1000);
  EXPECT_EQ(to.take(), bytes_of(shorter));
}

TEST(ShortList, RefusesBytesThatNoListWrites) {
  ShortList list(default_memory());
  add(list, {1, 2}, 3);
  add(list, {2, 1}, 4);
  auto bytes = bytes_of(list);
  const auto refused = [](std::span<const std::byte> data, std::size_t most) {
    ShortList decoded(default_memory());
    BytesDecoder from(data);
    try {
      decoded.decode(from, most, 1000);
      return false;
    } catch (const CorruptSnapshot&) {
      return true;
    }
  };
  EXPECT_FALSE(refused(bytes, 2));
  EXPECT_TRUE(refused(bytes, 1)) << "more keys than allowed";
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_TRUE(refused(std::span(bytes).first(cut), 2)) << "cut at " << cut;
  bytes[1] = std::byte{2};  // the first digest is now the greater one
  bytes[9] = std::byte{9};
  EXPECT_TRUE(refused(bytes, 2)) << "out of order";
}

TEST(ShortList, TakesWhatItsKeysNeed) {
  ShortList list(default_memory());
  EXPECT_EQ(list.bytes(), 0u);
  for (std::uint64_t i = 0; i < 10; ++i) add(list, {i, i}, 0);
  EXPECT_EQ(ShortList::bytes_for(10), 240u);
  EXPECT_GE(list.bytes(), 240u);
  for (std::uint64_t i = 10; i < 1000; ++i) add(list, {i, i}, 0);
  EXPECT_LE(ShortList::bytes_for(1000), 1000 * ShortList::kKeyBytes * 5 / 4 + 2);
  list.clear();
  EXPECT_EQ(list.bytes(), 0u);
}

TEST(ShortList, ShrinksToItsKeysAndSomeRoom) {
  ShortList list(default_memory());
  list.shrink();
  for (std::uint64_t key = 0; key < 400; ++key) add(list, {key, key}, 0);
  const std::uint64_t large = list.bytes();
  while (list.size() > 150) list.erase(0);
  list.shrink();
  EXPECT_EQ(list.bytes(), large) << "more than a quarter is in use";
  while (list.size() > 50) list.erase(0);
  list.shrink();
  EXPECT_LE(list.bytes(), ShortList::bytes_for(100));
  EXPECT_FALSE(list.full());
  for (std::uint64_t key = 350; key < 400; ++key) EXPECT_TRUE(list.find({key, key})) << key;
  list.erase_before(1);
  list.shrink();
  EXPECT_EQ(list.bytes(), 0u);
}

// In a budget that has room for its largest block and not for the one before it as well; and where
// there is no memory to come back to.
TEST(ShortList, GrowsWhereTwoBlocksDoNotFit) {
  constexpr std::size_t kMost = 300;
  SystemMemory memory({.budget = kMost * ShortList::kKeyBytes});
  ShortList list(memory);
  for (std::uint64_t key = 0; key < kMost; ++key) {
    list.grow(kMost);
    list.insert({key, key}, static_cast<ShortList::Stamp>(key));
    ASSERT_EQ(list.bytes(), memory.taken());
  }
  EXPECT_EQ(list.bytes(), memory.budget()) << "room for no more keys than it may have";
  const auto expect_all = [&] {
    ASSERT_EQ(list.size(), kMost);
    for (std::uint64_t key = 0; key < kMost; ++key) {
      ASSERT_EQ(list.find({key, key}), key);
      ASSERT_EQ(list.stamps()[key], static_cast<ShortList::Stamp>(key));
    }
  };
  EXPECT_THROW(list.grow(), NoMemory);
  expect_all();
  EXPECT_EQ(list.bytes(), memory.taken());
  list.step_aside();
  EXPECT_EQ(memory.taken(), 0u);
  void* const other = memory.allocate(100);
  list.step_back();
  EXPECT_EQ(list.bytes(), 0u) << "another one has taken some of its memory";
  expect_all();
  ShortList moved = std::move(list);
  list = std::move(moved);
  expect_all();
  memory.deallocate(other, 100);
  list.shrink();
  EXPECT_EQ(list.bytes(), memory.taken()) << "it is back";
  EXPECT_EQ(list.bytes(), memory.budget());
  expect_all();
}

// A limit of its own, where the resource would give more.
TEST(ShortList, GrowsWithinALimit) {
  constexpr std::uint64_t kLimit = 100 * ShortList::kKeyBytes;
  TestMemory memory;
  ShortList list(memory);
  for (std::uint64_t key = 0; key < 90; ++key) {
    list.grow(90, kLimit);
    list.insert({key, key}, 0);
  }
  EXPECT_LE(memory.peak(), kLimit + 32) << "and what its block is larger than asked for";
}

}  // namespace
}  // namespace sluice
