#include "sluice/kernels/growing.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/memory.hpp"
#include "sluice/base/random.hpp"

namespace sluice::kernels {
namespace {

// A table of our own, with memory for `most` buckets a half.
class Growing : public testing::TestWithParam<GrowingShape> {
 protected:
  void make(std::uint64_t buckets, std::uint64_t most) {
    table_ = {};
    table_.shape = GetParam();
    for (std::size_t i = 0; i < 2; ++i) {
      memory_[i] = Memory(most * kGrowingBucketBytes);
      table_.halves[i].lines = memory_[i].data();
      table_.halves[i].allocated = most;
    }
    table_.set_buckets(buckets);
  }
  Digest draw() { return {random_.next(), random_.next()}; }
  bool holds(const Digest& digest) const {
    Verdict verdict;
    growing_may_contain(table_, &digest, 1, &verdict);
    return verdict == Verdict::duplicate;
  }
  void expect_all_held(const std::vector<Digest>& digests) const {
    for (const Digest& digest : digests) ASSERT_TRUE(holds(digest));
  }

  SplitMix64 random_{7};
  Memory memory_[2];
  GrowingTable table_;
};

INSTANTIATE_TEST_SUITE_P(Shapes, Growing, testing::Values(kGrowing16, kGrowing32, kGrowing64),
                         [](const auto& test) { return std::to_string(test.param.slot_bits); });

TEST_P(Growing, HalvesDoubleInTurn) {
  make(4, 64);
  for (std::uint64_t buckets = 4; buckets < 64; ++buckets) {
    const auto& [even, odd] = table_.halves;
    EXPECT_EQ(even.buckets + odd.buckets, buckets);
    EXPECT_TRUE(even.split == 0 || odd.split == 0);
    EXPECT_LE(even.buckets, 2 * odd.buckets);
    EXPECT_LE(odd.buckets, even.buckets);
    GrowingTable made;
    made.set_buckets(buckets);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(made.halves[i].buckets, table_.halves[i].buckets) << buckets;
      EXPECT_EQ(made.halves[i].split, table_.halves[i].split) << buckets;
      EXPECT_EQ(made.halves[i].level, table_.halves[i].level) << buckets;
    }
    ASSERT_TRUE(table_.can_split());
    growing_split(table_);
    EXPECT_EQ(table_.limit, table_.shape.limit(buckets + 1));
  }
}

TEST_P(Growing, EachSideOfATraceLeadsToTheOther) {
  make(21, 64);
  for (int i = 0; i < 1000; ++i) {
    const GrowingTrace key = trace_of(table_.shape, draw()), other = other_side(key);
    EXPECT_NE(key.hash & 1, other.hash & 1);
    EXPECT_EQ(other_side(other).hash, key.hash);
    const std::uint64_t bucket = *growing_bucket(table_, key);
    growing_write(table_, bucket, 0, key);
    const GrowingTrace held = growing_trace(table_, bucket, 0);
    EXPECT_EQ(held.bits, table_.level_of(bucket) + table_.shape.hash_bits());
    EXPECT_TRUE(covers(held, key) && covers(other_side(held), key) && covers(held, other));
    EXPECT_EQ(*growing_bucket(table_, other_side(held)), *growing_bucket(table_, other));
    growing_erase(table_, bucket, 0);
  }
  EXPECT_EQ(table_.entries, 0u);
}

// More keys than slots: the last go to the stash, until that is full, too. Splits bring them home.
TEST_P(Growing, KeysWithoutRoomAreKeptUntilThereIsSome) {
  make(32, 256);
  table_.limit = ~std::uint64_t{0};
  std::vector<Digest> held;
  Verdict verdict;
  for (;;) {
    const Digest digest = draw();
    if (growing_observe(table_, &digest, 1, &verdict) == 0) break;
    if (verdict == Verdict::distinct) held.push_back(digest);
    EXPECT_EQ(growing_observe(table_, &digest, 1, &verdict), 1u);
    EXPECT_EQ(verdict, Verdict::duplicate);
  }
  EXPECT_EQ(table_.stray_count, kGrowingMostStrays);
  EXPECT_EQ(table_.entries, held.size());
  EXPECT_GT(held.size(), 32u * table_.shape.slots() * 9 / 10 + kGrowingMostStrays);
  EXPECT_GT(table_.moves, 0u);
  expect_all_held(held);
  while (table_.stray_count > 0) {
    growing_split(table_);
    expect_all_held(held);
    ASSERT_LT(table_.buckets, 256u);
  }
  EXPECT_EQ(table_.entries, held.size());
}

TEST_P(Growing, StopsWithoutMemoryAndGoesOnWithIt) {
  make(4, 2);
  std::vector<Digest> digests(table_.limit + 10);
  for (Digest& digest : digests) digest = draw();
  std::vector<Verdict> verdicts(digests.size());
  const std::size_t judged =
      growing_observe(table_, digests.data(), digests.size(), verdicts.data());
  EXPECT_LT(judged, digests.size());
  EXPECT_EQ(table_.entries, table_.limit);
  digests.resize(judged);
  expect_all_held(digests);
  EXPECT_EQ(growing_observe(table_, digests.data(), judged, verdicts.data()), judged)
      << "a duplicate needs no memory";
}

}  // namespace
}  // namespace sluice::kernels
