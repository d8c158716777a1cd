#include "sluice/filters/short_list.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "sluice/base/error.hpp"

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

TEST(ShortList, KeysThatFitAreThoseOfItsSize) {
  for (std::uint64_t bytes = 0; bytes < 20'000; bytes += 7) {
    const std::size_t keys = ShortList::keys_in(bytes, 512);
    EXPECT_LE(ShortList::bytes_for(keys), bytes);
    EXPECT_TRUE(keys == 512 || ShortList::bytes_for(keys + 1) > bytes) << bytes;
  }
  EXPECT_EQ(ShortList::keys_in(1000, 5), 5u);
}

}  // namespace
}  // namespace sluice
