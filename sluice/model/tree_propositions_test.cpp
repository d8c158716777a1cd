// Propositions 3 and 4 of Koloniari et al. (2011) on random trees and streams: a single filter, a
// sparse tree and a dense tree of filters of the same size and hash functions. What was stated for
// their errors holds for every verdict: all three decide alike.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "sluice/base/random.hpp"
#include "tests/support/counts.hpp"

namespace sluice::model {
namespace {

class Bits {
 public:
  Bits(std::size_t size, unsigned probes) : bits_(size), probes_(probes) {}
  bool holds(std::uint64_t event) const {
    for (unsigned probe = 0; probe < probes_; ++probe)
      if (!bits_[position(event, probe)]) return false;
    return true;
  }
  void set(std::uint64_t event) {
    for (unsigned probe = 0; probe < probes_; ++probe) bits_[position(event, probe)] = true;
  }
  // Whether every bit of the other is set here too.
  bool covers(const Bits& other) const {
    for (std::size_t i = 0; i < bits_.size(); ++i)
      if (other.bits_[i] && !bits_[i]) return false;
    return true;
  }
  bool operator==(const Bits&) const = default;

 private:
  std::size_t position(std::uint64_t event, unsigned probe) const {
    return SplitMix64(event * 64 + probe).next() % bits_.size();
  }
  std::vector<bool> bits_;
  unsigned probes_;
};

// Node 0 is the root; every other has a parent before it.
struct Tree {
  std::vector<int> parent;
  std::vector<int> leaves;
  std::vector<Bits> nodes;
};

Tree random_tree(SplitMix64& random, const Bits& empty) {
  const int size = 2 + static_cast<int>(random.next() % 30);
  Tree tree{{-1}, {}, {}};
  std::vector<bool> inner(static_cast<std::size_t>(size));
  for (int node = 1; node < size; ++node) {
    const int parent = static_cast<int>(random.next() % static_cast<unsigned>(node));
    tree.parent.push_back(parent);
    inner[static_cast<std::size_t>(parent)] = true;
  }
  for (int node = 0; node < size; ++node)
    if (!inner[static_cast<std::size_t>(node)]) tree.leaves.push_back(node);
  tree.nodes.assign(static_cast<std::size_t>(size), empty);
  return tree;
}

// Whether the event is a duplicate. Sparse: test all the way up, then set the way back.
bool first_test_then_set(Tree& tree, int leaf, std::uint64_t event) {
  for (int node = leaf; node >= 0; node = tree.parent[static_cast<std::size_t>(node)])
    if (tree.nodes[static_cast<std::size_t>(node)].holds(event)) return true;
  for (int node = leaf; node >= 0; node = tree.parent[static_cast<std::size_t>(node)])
    tree.nodes[static_cast<std::size_t>(node)].set(event);
  return false;
}

// Dense: set on the way up, until one has it.
bool test_and_set(Tree& tree, int leaf, std::uint64_t event) {
  for (int node = leaf; node >= 0; node = tree.parent[static_cast<std::size_t>(node)]) {
    if (tree.nodes[static_cast<std::size_t>(node)].holds(event)) return true;
    tree.nodes[static_cast<std::size_t>(node)].set(event);
  }
  return false;
}

struct Counts {
  unsigned false_positives = 0, duplicates = 0;
};

Counts check_one_tree(std::uint64_t seed) {
  SplitMix64 random(seed);
  const Bits empty(32 + random.next() % 512, 1 + static_cast<unsigned>(random.next() % 6));
  Bits single = empty;
  Tree sparse = random_tree(random, empty);
  Tree dense = sparse;
  const std::uint64_t events = 10 + random.next() % 300;
  std::vector<bool> seen(events);
  Counts counts;
  for (unsigned record = 0; record < 400; ++record) {
    const std::uint64_t event = random.next() % events;
    const int leaf = sparse.leaves[random.next() % sparse.leaves.size()];
    const bool by_single = single.holds(event);
    if (!by_single) single.set(event);
    const bool by_sparse = first_test_then_set(sparse, leaf, event);
    const bool by_dense = test_and_set(dense, leaf, event);
    // Proposition 3: sparse and dense err alike. Proposition 4: what one filter lets through, the
    // trees do; and there is no more that they do.
    EXPECT_EQ(by_sparse, by_dense) << "seed " << seed;
    EXPECT_EQ(by_single, by_sparse) << "seed " << seed;
    EXPECT_TRUE(!seen[event] || by_single) << "seed " << seed;
    counts.false_positives += by_single && !seen[event];
    counts.duplicates += seen[event];
    seen[event] = true;
  }
  // The roots' bits are the single filter's, and every node's are among them.
  EXPECT_EQ(sparse.nodes.front(), single);
  EXPECT_EQ(dense.nodes.front(), single);
  for (const Tree* tree : {&sparse, &dense})
    for (const Bits& node : tree->nodes) EXPECT_TRUE(single.covers(node));
  return counts;
}

TEST(TreePropositions, OneFilterAndBothTreesDecideAlike) {
  Counts all;
  const std::uint64_t seeds = testing_support::count_of(60, 300, 300);
  for (std::uint64_t seed = 0; seed < seeds && !testing::Test::HasFailure(); ++seed) {
    const Counts counts = check_one_tree(seed);
    all.false_positives += counts.false_positives;
    all.duplicates += counts.duplicates;
  }
  // The streams had something to decide.
  EXPECT_GT(all.false_positives, 1000 * seeds / 300);
  EXPECT_GT(all.duplicates, 10'000 * seeds / 300);
}

}  // namespace
}  // namespace sluice::model
