// Trees whose nodes do not answer, or come back empty; and producers that race in a tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/cluster/local_site.hpp"
#include "sluice/cluster/tree.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/digests.hpp"

namespace sluice::cluster {
namespace {

using testing_support::digest_of;
using Filters = std::vector<std::shared_ptr<LocalFilter>>;

constexpr std::int64_t kStart = 1'700'000'000'000;
constexpr WindowSpec kMinute = {WindowSpec::Kind::time, 60'000'000'000};
constexpr Tree::Kind kKinds[] = {Tree::Kind::sparse, Tree::Kind::dense};

// Root, middle, two leaves.
const TreeShape kShape{{0, 0, 1, 1}};
constexpr unsigned kLeaf = 2, kOther = 3;

Filters filters(std::size_t count, bool windows) {
  Filters made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back(std::make_shared<LocalFilter>(
        windows ? AnyFilter(Window::make({.spec = kMinute, .filter = "exact-window"}))
                : make_filter("exact", {})));
  return made;
}

// `doubting`: nodes that notice it when their filter has lost its contents.
Tree tree_of(const Tree::Options& options, const Filters& at, bool windows, bool doubting,
             const TreeShape& shape = kShape) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (const auto& filter : at)
    if (doubting)
      nodes.push_back(std::make_unique<FilterSlicesNode>(std::make_unique<FilterSlices>(
          FilterSlices::Options{.window = windows ? std::optional(kMinute) : std::nullopt},
          connect(std::span(&filter, 1)))));
    else
      nodes.push_back(std::make_unique<LocalNode>(filter));
  return Tree(shape, options, std::move(nodes));
}

Verdict observe(Tree& tree, unsigned leaf, std::uint64_t key, std::int64_t at_ms = 0) {
  const Digest digest = digest_of(key);
  const std::int64_t time_ms = kStart + at_ms;
  Verdict verdict{};
  tree.observe(leaf,
               {.digests = {&digest, 1}, .times_ms = {&time_ms, 1}, .verdicts = {&verdict, 1}});
  return verdict;
}

// Kinds of trees, with and without windows, with and without doubt.
template <class Test>
void in_each(const Test& test) {
  for (const Tree::Kind kind : kKinds)
    for (const bool windows : {false, true})
      for (const bool doubting : {false, true}) {
        SCOPED_TRACE(testing::Message() << (kind == Tree::Kind::sparse ? "sparse" : "dense")
                                        << ", windows " << windows << ", doubting " << doubting);
        test(kind, windows, doubting);
      }
}

TEST(TreeFaults, ANodeBelowTheRootIsPassedBy) {
  in_each([](Tree::Kind kind, bool windows, bool doubting) {
    for (const auto rule : {Tree::Rule::distinct, Tree::Rule::duplicate})
      for (const unsigned down : {1u, kLeaf}) {
        const Filters at = filters(kShape.size(), windows);
        Tree tree = tree_of({.kind = kind, .rule = rule}, at, windows, doubting);
        for (std::uint64_t key = 0; key < 50; ++key)
          EXPECT_EQ(observe(tree, kLeaf, key), Verdict::distinct);
        at[down]->fail();
        for (std::uint64_t key = 0; key < 100; ++key) {
          EXPECT_EQ(observe(tree, kLeaf, key, 1000) == Verdict::duplicate, key < 50) << key;
          EXPECT_EQ(observe(tree, kOther, key, 2000), Verdict::duplicate) << key;
        }
        EXPECT_GT(tree.levels()[tree.level_of(down)].unanswered, 0u);
        // Back without its contents: what it does not know, the root knows.
        at[down]->come_back_empty();
        for (std::uint64_t key = 0; key < 100; ++key)
          EXPECT_EQ(observe(tree, kLeaf, key, 3000), Verdict::duplicate) << key;
        EXPECT_EQ(observe(tree, kLeaf, 100, 3000), Verdict::distinct);
        EXPECT_EQ(tree.ruled(), 0u);
      }
  });
}

// Repeats pass, those excepted that a node below the root knows.
TEST(TreeFaults, ASilentRootLosesNothingByTheRuleDistinct) {
  in_each([](Tree::Kind kind, bool windows, bool doubting) {
    const Filters at = filters(kShape.size(), windows);
    Tree tree = tree_of({.kind = kind}, at, windows, doubting);
    EXPECT_EQ(observe(tree, kLeaf, 1), Verdict::distinct);
    at[0]->fail();
    EXPECT_EQ(observe(tree, kLeaf, 1, 1), Verdict::duplicate);
    EXPECT_EQ(observe(tree, kLeaf, 2, 1), Verdict::distinct);
    EXPECT_EQ(observe(tree, kLeaf, 2, 2), Verdict::duplicate) << "the leaf knows it";
    EXPECT_EQ(observe(tree, kOther, 2, 2), Verdict::duplicate) << "the node above both does";
    EXPECT_EQ(tree.ruled(), 1u);
    // A node that shares nothing but the root.
    at[1]->fail();
    EXPECT_EQ(observe(tree, kOther, 3, 3), Verdict::distinct);
    EXPECT_EQ(observe(tree, kLeaf, 3, 3), Verdict::distinct);
    EXPECT_EQ(tree.ruled(), 3u);
    at[0]->come_back();
    at[1]->come_back();
    EXPECT_EQ(observe(tree, kLeaf, 3, 4), Verdict::duplicate);
    EXPECT_EQ(observe(tree, kOther, 4, 4), Verdict::distinct);
    EXPECT_EQ(observe(tree, kLeaf, 4, 5), Verdict::duplicate);
  });
}

// All that is new is lost meanwhile; what was lost is not remembered, so that a repeat passes.
TEST(TreeFaults, ASilentRootLosesWhatIsNewByTheRuleDuplicate) {
  in_each([](Tree::Kind kind, bool windows, bool doubting) {
    const Filters at = filters(kShape.size(), windows);
    Tree tree = tree_of({.kind = kind, .rule = Tree::Rule::duplicate}, at, windows, doubting);
    EXPECT_EQ(observe(tree, kLeaf, 1), Verdict::distinct);
    at[0]->fail();
    EXPECT_EQ(observe(tree, kLeaf, 1, 1), Verdict::duplicate);
    EXPECT_EQ(observe(tree, kLeaf, 2, 1), Verdict::duplicate) << "lost";
    EXPECT_EQ(tree.ruled(), 1u);
    for (std::size_t node = 1; node < at.size(); ++node) EXPECT_LE(at[node]->keys(), 1u);
    at[0]->come_back();
    // A root that notices that it has missed keys is doubted until they have left its window.
    const std::int64_t later = doubting ? 64'000 : 2;
    if (doubting && !windows) return;
    EXPECT_EQ(observe(tree, kLeaf, 3, later), Verdict::distinct);
    EXPECT_EQ(observe(tree, kLeaf, 2, later), Verdict::distinct);
    EXPECT_EQ(observe(tree, kOther, 2, later), Verdict::duplicate);
  });
}

TEST(TreeFaults, ARootThatLostItsContentsIsDoubted) {
  for (const Tree::Kind kind : kKinds)
    for (const auto rule : {Tree::Rule::distinct, Tree::Rule::duplicate}) {
      const Filters at = filters(kShape.size(), true);
      Tree tree = tree_of({.kind = kind, .rule = rule}, at, true, true);
      EXPECT_EQ(observe(tree, kLeaf, 1), Verdict::distinct);
      at[0]->come_back_empty();
      EXPECT_EQ(observe(tree, kLeaf, 1, 1), Verdict::duplicate) << "the leaf knows it";
      EXPECT_EQ(observe(tree, kLeaf, 2, 1) == Verdict::distinct, rule == Tree::Rule::distinct);
      EXPECT_EQ(tree.ruled(), 1u);
      EXPECT_EQ(observe(tree, kLeaf, 3, 64'000), Verdict::distinct) << "a window later it is whole";
      EXPECT_EQ(tree.ruled(), 1u);
    }
}

// A node that has missed keys refutes nothing.
TEST(TreeFaults, TopDownTestingBelievesNoSilence) {
  for (const Tree::Kind kind : kKinds) {
    const Filters at = filters(kShape.size(), true);
    Tree tree = tree_of({.kind = kind, .check_to = 2}, at, true, false);
    EXPECT_EQ(observe(tree, kOther, 1), Verdict::distinct);
    at[kOther]->fail();
    EXPECT_EQ(observe(tree, kLeaf, 1, 1), Verdict::duplicate);
    EXPECT_EQ(observe(tree, kOther, 2, 1), Verdict::distinct);
    at[kOther]->come_back();
    EXPECT_EQ(observe(tree, kLeaf, 2, 2), Verdict::duplicate);
  }
}

TEST(TreeFaults, BloomNodesBelowTheRootMayNotHoldBackTheUnknown) {
  const auto made = [](model::FaultRule rule) {
    std::vector<std::unique_ptr<Slices>> nodes;
    for (int i = 0; i < 2; ++i)
      nodes.push_back(std::make_unique<Slices>(
          Slices::Options{.slices = {Slicing::vertical, 64, 2, 1, 1, 1}, .rule = rule},
          connect(local_memories(1, 64))));
    return Tree(TreeShape::even(2, 1), {.kind = Tree::Kind::sparse}, std::move(nodes));
  };
  EXPECT_THROW(made(model::FaultRule::duplicate()), BadParameters);
  Tree tree = made(model::FaultRule::distinct(2));
  EXPECT_EQ(tree.observe(1, digest_of(1)), Verdict::distinct);
}

// Measured by the clock that the caller gives.
TEST(TreeFaults, CountsWhatItWaitedFor) {
  const Filters at = filters(kShape.size(), false);
  std::int64_t now = 0;
  Tree tree =
      tree_of({.kind = Tree::Kind::sparse, .clock = [&] { return now += 10; }}, at, false, false);
  const std::vector<Digest> digests = {digest_of(1), digest_of(2), digest_of(1)};
  std::vector<Verdict> verdicts(3);
  tree.observe(kLeaf, digests, verdicts);
  EXPECT_EQ(verdicts, (std::vector{Verdict::distinct, Verdict::distinct, Verdict::duplicate}));
  // Once for all three on the way up, and once to set on those that are not the root.
  EXPECT_EQ(tree.levels()[0].trips, 1u);
  EXPECT_EQ(tree.levels()[1].trips, 2u);
  EXPECT_EQ(tree.levels()[2].trips, 2u);
  EXPECT_EQ(tree.levels()[0].accesses, 3u);
  EXPECT_EQ(tree.levels()[2].accesses, 5u);
  EXPECT_EQ(tree.levels()[2].nanoseconds, 20);
  tree.observe(kLeaf, digests, verdicts);
  EXPECT_EQ(count_duplicates(verdicts), 3u);
  EXPECT_EQ(tree.levels()[0].trips, 1u) << "the leaf knew all of them";
}

// --- races ---------------------------------------------------------------------------------------

constexpr unsigned kThreads = 4;
constexpr std::size_t kKeys = 20'000;

// Two threads by two the same order, so that they meet at the same keys.
std::vector<std::size_t> order_of(unsigned thread) {
  SplitMix64 random(thread / 2);
  std::vector<std::size_t> order(kKeys);
  for (std::size_t i = 0; i < kKeys; ++i) order[i] = i;
  for (std::size_t i = kKeys; i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
  return order;
}

// Every thread brings every key, in batches of a hundred, two of them at the same leaf. Returns how
// often each key was let through.
std::vector<unsigned> race(Tree::Kind kind, bool windows, bool doubting) {
  const TreeShape shape = TreeShape::even(3, 2);
  const Filters at = filters(shape.size(), windows);
  std::vector<std::atomic<unsigned>> wins(kKeys);
  std::atomic<unsigned> ready = 0;
  std::vector<std::jthread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      Tree tree = tree_of({.kind = kind}, at, windows, doubting, shape);
      const std::vector<unsigned> leaves = shape.leaves();
      const std::vector<std::size_t> order = order_of(thread);
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      constexpr std::size_t kBatch = 100;
      for (std::size_t begin = 0; begin < kKeys; begin += kBatch) {
        std::vector<Digest> digests;
        std::vector<std::int64_t> times;
        for (std::size_t i = begin; i < begin + kBatch; ++i) {
          digests.push_back(digest_of(order[i]));
          times.push_back(kStart + static_cast<std::int64_t>(i) - thread);
        }
        std::vector<Verdict> verdicts(kBatch);
        tree.observe(leaves[thread / 2],
                     {.digests = digests, .times_ms = times, .verdicts = verdicts});
        for (std::size_t i = 0; i < kBatch; ++i)
          wins[order[begin + i]] += verdicts[i] == Verdict::distinct;
      }
      EXPECT_EQ(tree.ruled(), 0u);
    });
  threads.clear();
  return {wins.begin(), wins.end()};
}

TEST(TreeRaces, TheRootDecidesWhoWins) {
  in_each([](Tree::Kind kind, bool windows, bool doubting) {
    const auto wins = race(kind, windows, doubting);
    EXPECT_EQ(std::ranges::count(wins, 1u), static_cast<std::ptrdiff_t>(kKeys));
  });
}

}  // namespace
}  // namespace sluice::cluster
