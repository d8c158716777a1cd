#include "sluice/cluster/slices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/cluster/local_site.hpp"
#include "tests/support/digests.hpp"

namespace sluice::cluster {
namespace {

using model::FaultRule;
using testing_support::digest_of;

using Memories = std::vector<std::shared_ptr<LocalMemory>>;

Memories memories_for(const SliceParams& params) {
  const SliceMap map(params);
  return local_memories(map.sites(), map.site_bits());
}

Slices slices_on(const Memories& memories, const Slices::Options& options) {
  return Slices(options, connect(memories));
}

std::vector<Digest> keys(std::uint64_t first, std::size_t count) {
  std::vector<Digest> digests;
  for (std::size_t i = 0; i < count; ++i) digests.push_back(digest_of(first + i));
  return digests;
}

std::size_t duplicates(Slices& slices, const std::vector<Digest>& digests) {
  std::vector<Verdict> verdicts(digests.size());
  slices.may_contain(digests, verdicts);
  return static_cast<std::size_t>(std::ranges::count(verdicts, Verdict::duplicate));
}

const std::vector<SliceParams> kSlicings = {
    {Slicing::horizontal, 4000, 4, 10, 1, 1},
    {Slicing::vertical, 4000, 4, 10, 1, 1},
    {Slicing::horizontal_vertical, 4000, 4, 5, 4, 1},
    {Slicing::vertical_horizontal, 4000, 4, 5, 4, 1},
    {Slicing::general, 4000, 4, 10, 1, 2},
};

TEST(Slices, RememberWhatTheySaw) {
  for (const SliceParams& params : kSlicings) {
    Slices slices = slices_on(memories_for(params), {.slices = params});
    const std::vector<Digest> seen = keys(0, 200);
    for (const Digest& digest : seen) slices.observe(digest);
    EXPECT_EQ(duplicates(slices, seen), seen.size()) << name_of(params.slicing);
    EXPECT_LT(duplicates(slices, keys(1000, 200)), 5u) << name_of(params.slicing);
  }
}

// A full filter, keys that repeat, batches of every size: whichever way it is asked, the verdicts
// and the bits are those of keys asked one by one, in parallel, by test-then-set.
TEST(Slices, EveryWayOfAskingJudgesAlike) {
  for (const SliceParams& params : kSlicings) {
    std::vector<Digest> stream;
    SplitMix64 random(7);
    for (int i = 0; i < 3000; ++i) stream.push_back(digest_of(random.next() % 1500));
    Memories first_memories;
    std::vector<Verdict> expected;
    for (const bool pipelined : {false, true})
      for (const bool test_and_set : {false, true})
        for (const bool claims : {false, true})
          for (const std::size_t batch : {1u, 37u, 3000u}) {
            if (pipelined && test_and_set) continue;
            const Memories memories = memories_for(params);
            Slices slices = slices_on(memories, {params, {}, pipelined, test_and_set, claims});
            std::vector<Verdict> verdicts(stream.size());
            for (std::size_t at = 0; at < stream.size(); at += batch) {
              const std::size_t count = std::min(batch, stream.size() - at);
              slices.observe(std::span(stream).subspan(at, count),
                             std::span(verdicts).subspan(at, count));
            }
            if (expected.empty()) {
              expected = verdicts;
              first_memories = memories;
              continue;
            }
            EXPECT_EQ(verdicts, expected) << name_of(params.slicing) << batch << pipelined;
            for (std::size_t i = 0; i < memories.size(); ++i)
              EXPECT_EQ(memories[i]->set_bits(), first_memories[i]->set_bits());
          }
    // Some of the distinct were lost, so that there was something to disagree about.
    const auto let_through = std::ranges::count(expected, Verdict::distinct);
    EXPECT_LT(let_through, 1250);
    EXPECT_GT(let_through, 400);
  }
}

TEST(Slices, CountMessages) {
  const SliceParams params{Slicing::vertical, 48400, 4, 40, 1, 1};
  Slices all = slices_on(memories_for(params), {.slices = params});
  Slices some = slices_on(memories_for(params), {.slices = params, .pipelined = true});
  for (const Digest& digest : keys(0, 1000)) {
    all.observe(digest);
    some.observe(digest);
  }
  // 40(1 − (39/40)^4) = 3.85 sites per key; nearly the first answer decides in an empty filter.
  EXPECT_NEAR(static_cast<double>(all.traffic().lookups) / 1000, 3.85, 0.05);
  EXPECT_LT(some.traffic().lookups, 1200u);
  EXPECT_EQ(some.traffic().sets, all.traffic().sets);
  const auto load = all.load();
  EXPECT_EQ(std::accumulate(load.begin(), load.end(), std::uint64_t{0}), all.traffic().lookups);
  // A batch shares its requests: one per site to test, one to set.
  Slices batched = slices_on(memories_for(params), {.slices = params});
  std::vector<Verdict> verdicts(500);
  batched.observe(keys(0, 500), verdicts);
  EXPECT_EQ(batched.traffic().requests, 80u);
}

TEST(Slices, FailedSitesCountAsTheRuleSays) {
  for (const SliceParams& params : kSlicings) {
    const Memories memories = memories_for(params);
    Slices as_duplicate = slices_on(memories, {.slices = params});
    Slices as_distinct = slices_on(memories, {.slices = params, .rule = FaultRule::distinct(4)});
    Slices hybrid = slices_on(memories, {.slices = params, .rule = FaultRule::hybrid(1)});
    const std::vector<Digest> seen = keys(0, 300), fresh = keys(5000, 300);
    as_duplicate.insert(seen);
    for (const auto& memory : memories) memory->fail();
    EXPECT_EQ(duplicates(as_duplicate, seen), 300u);
    EXPECT_EQ(duplicates(as_duplicate, fresh), 300u);
    EXPECT_EQ(duplicates(as_distinct, seen), 0u);
    EXPECT_EQ(duplicates(hybrid, seen), 0u);
    EXPECT_GT(as_duplicate.traffic().unanswered, 0u);
    // One site is back: who has a bit there, and all such bits set, is a duplicate to two of them.
    memories[0]->come_back();
    const std::size_t held = duplicates(hybrid, seen);
    EXPECT_GT(held, 0u) << name_of(params.slicing);
    EXPECT_LT(held, 300u) << name_of(params.slicing);
    EXPECT_LE(duplicates(as_distinct, seen), held);
    EXPECT_LT(duplicates(as_duplicate, fresh), 300u);
    for (const auto& memory : memories) memory->come_back();
    EXPECT_EQ(duplicates(as_distinct, seen), 300u);
  }
}

TEST(Slices, LateIsAsGoodAsGone) {
  const SliceParams params = kSlicings[1];
  const Memories memories = memories_for(params);
  Slices slices = slices_on(memories, {.slices = params, .rule = FaultRule::distinct(4)});
  const std::vector<Digest> seen = keys(0, 50);
  slices.insert(seen);
  for (const auto& memory : memories) memory->be_late(true);
  EXPECT_EQ(duplicates(slices, seen), 0u);
  EXPECT_EQ(slices.observe(digest_of(900)), Verdict::distinct);
  for (const auto& memory : memories) memory->be_late(false);
  // What was late was done all the same.
  EXPECT_EQ(duplicates(slices, seen), 50u);
  EXPECT_TRUE(slices.may_contain(digest_of(900)));
}

TEST(Slices, ASiteThatCameBackEmptyLosesNothing) {
  const SliceParams params = kSlicings[1];
  const Memories memories = memories_for(params);
  Slices slices = slices_on(memories, {.slices = params, .rule = FaultRule::hybrid(1)});
  const std::vector<Digest> seen = keys(0, 200);
  slices.insert(seen);
  memories[3]->come_back_empty();
  EXPECT_EQ(duplicates(slices, seen), 200u);
  EXPECT_FALSE(slices.trusted(3));
  // Duplicates fill it again, and it is complete.
  std::vector<Verdict> verdicts(seen.size());
  slices.observe(seen, verdicts);
  slices.trust(3);
  EXPECT_EQ(duplicates(slices, seen), 200u);
  EXPECT_GT(memories[3]->set_bits(), 50u);
}

TEST(Slices, ASiteThatMissedASetIsNotBelieved) {
  const SliceParams params = kSlicings[1];
  const Memories memories = memories_for(params);
  Slices slices = slices_on(memories, {.slices = params, .rule = FaultRule::hybrid(1)});
  memories[3]->fail();
  std::vector<Verdict> verdicts(200);
  slices.observe(keys(0, 200), verdicts);
  memories[3]->come_back();
  EXPECT_EQ(duplicates(slices, keys(0, 200)), 200u);
  EXPECT_FALSE(slices.trusted(3));
}

TEST(Slices, RefuseWhatCannotBe) {
  const SliceParams params = kSlicings[1];
  EXPECT_THROW(Slices({.slices = params}, connect(local_memories(9, 400))), BadParameters);
  EXPECT_THROW(Slices({.slices = params}, connect(local_memories(10, 399))), BadParameters);
  EXPECT_THROW(slices_on(memories_for(params), {params, FaultRule::hybrid(5)}), BadParameters);
  EXPECT_THROW(slices_on(memories_for(params), {params, {}, true, true}), BadParameters);
}

}  // namespace
}  // namespace sluice::cluster
