#include "sluice/cluster/tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/cluster/local_site.hpp"
#include "tests/support/digests.hpp"

namespace sluice::cluster {
namespace {

using testing_support::digest_of;

// Nodes below the root are passed by if they do not answer.
model::FaultRule rule_of(std::size_t node) {
  return node == 0 ? model::FaultRule::duplicate() : model::FaultRule::distinct(4);
}

// Every node a filter at a site of its own; the root over `root_slices` sites.
Tree tree_of(const TreeShape& shape, const Tree::Options& options, std::uint64_t bits,
             unsigned root_slices = 1) {
  std::vector<std::unique_ptr<Slices>> nodes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const SliceParams params{Slicing::vertical, bits, 4, i == 0 ? root_slices : 1, 1, 1};
    const SliceMap map(params);
    nodes.push_back(
        std::make_unique<Slices>(Slices::Options{.slices = params,
                                                 .rule = rule_of(i),
                                                 .test_and_set = options.kind == Tree::Kind::dense},
                                 connect(local_memories(map.sites(), map.site_bits()))));
  }
  return Tree(shape, options, std::move(nodes));
}

struct Event {
  unsigned leaf;
  Digest key;
};
std::vector<Event> stream_for(const TreeShape& shape, std::size_t records, std::uint64_t keys) {
  SplitMix64 random(3);
  const std::vector<unsigned> leaves = shape.leaves();
  std::vector<Event> events;
  for (std::size_t i = 0; i < records; ++i)
    events.push_back({leaves[random.next() % leaves.size()], digest_of(random.next() % keys)});
  return events;
}

TEST(TreeShape, EvenTrees) {
  const TreeShape shape = TreeShape::even(5, 4);
  EXPECT_EQ(shape.size(), 1u + 4 + 16 + 64 + 256);
  EXPECT_EQ(shape.leaves().size(), 256u);
  EXPECT_EQ(TreeShape::even(1, 9).leaves(), std::vector<unsigned>{0});
  EXPECT_THROW(TreeShape::even(0, 2), BadParameters);
  EXPECT_THROW(TreeShape::even(30, 4), BadParameters);
}

// A filter that loses about one key in ten, so that there is something to disagree about.
constexpr std::uint64_t kBits = 1 << 12;

TEST(Tree, SparseDenseAndOneFilterJudgeAlike) {
  const TreeShape shape = TreeShape::even(4, 3);
  const auto events = stream_for(shape, 6000, 1500);
  Tree one = tree_of(TreeShape{}, {.kind = Tree::Kind::dense}, kBits);
  Tree sparse = tree_of(shape, {.kind = Tree::Kind::sparse}, kBits);
  Tree dense = tree_of(shape, {.kind = Tree::Kind::dense}, kBits);
  Tree sliced = tree_of(shape, {.kind = Tree::Kind::sparse}, kBits, 8);
  std::size_t distinct = 0;
  for (const Event& event : events) {
    const Verdict verdict = one.observe(0, event.key);
    distinct += verdict == Verdict::distinct;
    ASSERT_EQ(sparse.observe(event.leaf, event.key), verdict);
    ASSERT_EQ(dense.observe(event.leaf, event.key), verdict);
    ASSERT_EQ(sliced.observe(event.leaf, event.key), verdict);
  }
  EXPECT_LT(distinct, 1400u);
  // A dense tree answers nearer to the leaf, and with fewer contacts at the root.
  const auto near = sparse.levels(), far = dense.levels();
  EXPECT_GT(far.back().hits, near.back().hits);
  EXPECT_LT(far[0].hits, near[0].hits);
  EXPECT_LT(far[0].accesses, near[0].accesses);
}

TEST(Tree, ABatchIsJudgedAsItsKeys) {
  const TreeShape shape = TreeShape::even(3, 3);
  const auto events = stream_for(shape, 4000, 900);
  for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense})
    for (const unsigned check_to : {0u, 2u}) {
      Tree by_one = tree_of(shape, {kind, check_to}, kBits);
      Tree by_batch = tree_of(shape, {kind, check_to}, kBits);
      const unsigned leaf = shape.leaves().front();
      std::vector<Digest> digests;
      std::vector<Verdict> expected;
      for (const Event& event : events) {
        digests.push_back(event.key);
        expected.push_back(by_one.observe(leaf, event.key));
      }
      std::vector<Verdict> verdicts(digests.size());
      by_batch.observe(leaf, digests, verdicts);
      EXPECT_EQ(verdicts, expected);
    }
}

TEST(Tree, CountsWhatEachLevelDid) {
  const TreeShape shape = TreeShape::even(2, 2);
  Tree sparse = tree_of(shape, {.kind = Tree::Kind::sparse}, 1 << 16);
  Tree dense = tree_of(shape, {.kind = Tree::Kind::dense}, 1 << 16);
  for (Tree* tree : {&sparse, &dense}) {
    EXPECT_EQ(tree->observe(1, digest_of(1)), Verdict::distinct);
    EXPECT_EQ(tree->observe(2, digest_of(1)), Verdict::duplicate);
    EXPECT_EQ(tree->observe(2, digest_of(1)), Verdict::duplicate);
  }
  // Sparse: leaf 2 never learns of it, and asks the root twice. New keys touch each node twice.
  EXPECT_EQ(sparse.levels()[0].hits, 2u);
  EXPECT_EQ(sparse.levels()[0].accesses, 4u);
  EXPECT_EQ(sparse.levels()[1].accesses, 4u);
  EXPECT_EQ(dense.levels()[0].hits, 1u);
  EXPECT_EQ(dense.levels()[1].hits, 1u);
  EXPECT_EQ(dense.levels()[0].accesses, 2u);
  EXPECT_EQ(dense.levels()[1].accesses, 3u);
  EXPECT_EQ(dense.climbs()[0], 1u);
  EXPECT_EQ(dense.climbs()[1], 2u);
}

struct Errors {
  std::size_t false_positives = 0, false_negatives = 0;
};
Errors errors_of(Tree::Kind kind, unsigned check_to, bool stop) {
  const TreeShape shape = TreeShape::even(5, 2);
  Tree tree = tree_of(shape, {kind, check_to, stop}, kBits);
  std::vector<Digest> seen;
  Errors errors;
  std::unordered_set<std::uint64_t> known;
  for (const Event& event : stream_for(shape, 6000, 1500)) {
    const bool repeated = !known.insert(event.key.lo).second;
    const bool judged = tree.observe(event.leaf, event.key) == Verdict::duplicate;
    errors.false_positives += judged && !repeated;
    errors.false_negatives += !judged && repeated;
  }
  return errors;
}

TEST(Tree, TopDownTestingFindsFalsePositivesAndLosesNothing) {
  for (const Tree::Kind kind : {Tree::Kind::sparse, Tree::Kind::dense}) {
    std::size_t before = errors_of(kind, 0, false).false_positives;
    EXPECT_GT(before, 50u);
    for (const unsigned check_to : {1u, 2u, 3u, 4u}) {
      const Errors errors = errors_of(kind, check_to, false);
      EXPECT_EQ(errors.false_negatives, 0u) << check_to;
      EXPECT_LE(errors.false_positives, before + 5) << check_to;
      before = errors.false_positives;
    }
    EXPECT_LT(before, errors_of(kind, 0, false).false_positives / 2);
    // Stopping at a refuted hit, as the paper does, lets duplicates through.
    EXPECT_EQ(errors_of(kind, 1, true).false_negatives, 0u);
    EXPECT_GT(errors_of(kind, 4, true).false_negatives, 0u);
  }
}

TEST(Tree, RefusesWhatCannotBe) {
  EXPECT_THROW(tree_of(TreeShape{{0, 2, 0}}, {}, 100), BadParameters);
  std::vector<std::unique_ptr<Slices>> nodes;
  EXPECT_THROW(Tree(TreeShape{}, {}, std::move(nodes)), BadParameters);
  nodes.push_back(
      std::make_unique<Slices>(Slices::Options{.slices = {Slicing::vertical, 64, 2, 1, 1, 1}},
                               connect(local_memories(1, 64))));
  EXPECT_THROW(Tree(TreeShape{}, {.kind = Tree::Kind::dense}, std::move(nodes)), BadParameters);
}

}  // namespace
}  // namespace sluice::cluster
