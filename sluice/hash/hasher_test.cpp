#include "sluice/hash/hasher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace sluice {
namespace {

class EveryHash : public testing::TestWithParam<HashKind> {};

TEST_P(EveryHash, BatchEqualsOneByOne) {
  const Hasher hasher(GetParam(), Secret::from_seed(7));
  std::vector<std::string> texts;
  // No two bytes next to each other are alike, so that every part of a key is seen to count.
  for (std::size_t size = 0; size < 300; ++size) {
    texts.emplace_back(size, '\0');
    for (std::size_t i = 0; i < size; ++i) texts.back()[i] = static_cast<char>(37 * i + size);
  }
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  std::vector<Digest> digests(keys.size());
  hasher.digest(keys, digests);
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(digests[i], hasher.digest(keys[i]));
}

TEST_P(EveryHash, AnotherSecretAnotherDigest) {
  const Hasher one(GetParam(), Secret::from_seed(1));
  const Hasher two(GetParam(), Secret::from_seed(2));
  // 0 and 1 byte, XXH3's short and middle ranges, and its long-key loop each use the secret.
  for (const std::size_t size : {0u, 1u, 8u, 16u, 100u, 200u, 1000u, 100000u}) {
    const std::string key(size, 'k');
    EXPECT_EQ(one.digest(key), one.digest(key));
    EXPECT_NE(one.digest(key), two.digest(key)) << size << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryHash, testing::Values(HashKind::xxh3, HashKind::highway),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// Snapshots outlive builds: a digest that changes orphans every state file.
TEST(Hasher, DigestsArePinned) {
  const Secret secret = Secret::from_seed(42);
  const Digest xxh3 = Hasher(HashKind::xxh3, secret).digest("the same key");
  const Digest highway = Hasher(HashKind::highway, secret).digest("the same key");
  EXPECT_EQ(xxh3, (Digest{0x3c47ade7b1e41992, 0xe97d174ec301d215}));
  EXPECT_EQ(highway, (Digest{0x9d55c8b1f4999395, 0xd641ce2daf92810a}));
}

TEST(Secret, RandomOnesDiffer) {
  EXPECT_FALSE(Secret::random() == Secret::random());
}

TEST(Secret, BytesRoundTrip) {
  const Secret secret = Secret::random();
  EXPECT_EQ(Secret::from_bytes(secret.bytes()), secret);
}

}  // namespace
}  // namespace sluice
