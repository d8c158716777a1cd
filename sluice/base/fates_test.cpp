#include "sluice/base/fates.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

Fates told(const Fates& primary) {
  BytesEncoder to;
  primary.encode(to);
  EXPECT_LE(to.written().size(), Fates::kMostEncoded);
  BytesDecoder from(to.written());
  Fates fates = Fates::decode(from);
  EXPECT_EQ(from.remaining(), 0u);
  return fates;
}

TEST(Fates, AReplicaDecidesAsItsPrimaryDid) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 200; ++run) {
    Fates primary;
    std::vector<bool> refused;
    std::vector<std::uint64_t> forgets;
    const std::uint64_t rare = 1 + random() % 40;
    for (int i = 0; i < 300; ++i) {
      bool done = primary.may_take();
      forgets.push_back(0);
      if (done) {
        done = random() % rare != 0;
        if (random() % 2 == 0) {
          primary.could_take(done);
        } else {
          forgets.back() = done || random() % 3 != 0 ? 0 : random() % 5;
          primary.took(done, forgets.back());
        }
      }
      EXPECT_EQ(primary.last_refused(), !done);
      refused.push_back(!done);
    }
    // A replica tells its own replicas the same.
    Fates first = told(primary), second = told(first);
    for (Fates* const replica : {&first, &second})
      for (std::size_t i = 0; i < refused.size(); ++i) {
        ASSERT_EQ(replica->may_take(), !refused[i]) << run << " " << i;
        if (refused[i]) {
          ASSERT_EQ(replica->forgets_in_vain(), forgets[i]) << run << " " << i;
        } else {
          replica->took(true);
        }
      }
  }
}

TEST(Fates, WhatCannotBeWrittenDownGoesWrong) {
  Fates primary;
  int granted = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!primary.may_take()) continue;
    primary.took(i % 2 == 0);
    ++granted;
  }
  EXPECT_LT(granted, 40);
  EXPECT_FALSE(primary.may_take());
}

TEST(Fates, AReplicaWithoutMemorySaysSoWhereItMust) {
  Fates replica = told({});
  ASSERT_TRUE(replica.may_take());
  replica.could_take(false);
  EXPECT_EQ(replica.spared(), 1u);
  ASSERT_TRUE(replica.may_take());
  EXPECT_THROW(replica.took(false), NoMemory);
}

TEST(Fates, ForgedOnesAreRefused) {
  const auto decode = [](std::vector<std::uint64_t> numbers) {
    BytesEncoder to;
    for (const std::uint64_t number : numbers) to.varint(number);
    BytesDecoder from(to.written());
    return Fates::decode(from);
  };
  EXPECT_NO_THROW(decode({2, 3, 1, 0, 4, 0, 0}));
  EXPECT_THROW(decode({17}), CorruptSnapshot);
  EXPECT_THROW(decode({2, 3, 1, 0}), CorruptSnapshot);
  EXPECT_THROW(decode({2, 3, 2, 0, 4, 1, 0}), CorruptSnapshot) << "they overlap";
  EXPECT_THROW(decode({2, 3, 0, 0, 4, 1, 0}), CorruptSnapshot) << "one follows the last";
  EXPECT_THROW(decode({1, 3, ~std::uint64_t{0}, 0}), CorruptSnapshot);
}

}  // namespace
}  // namespace sluice
