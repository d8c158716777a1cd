// Filters near producers: a tree of Bloom filters, asked from the leaf upwards.
//
// Source   Koloniari et al. 2011, §6: sparse trees (first test all the way up, then set), dense
//          ones (test and set on the way up), top-down testing.
// Differs  A hit that top-down testing refutes does not end the climb: the paper stops there, and
//          lets duplicates through. stop_when_refuted selects the paper's behaviour. A sparse
//          tree's root may be asked by test-and-set: producers that race for a key meet there, and
//          one wins.
// Cost     A hit near the leaf contacts few nodes. A key that is new contacts every node on its
//          path, in a sparse tree twice.
// Errors   Those of one filter of the root's size over all keys: a sparse tree, a dense tree and
//          that filter give the same verdicts, as long as all nodes have the same size.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sluice/cluster/slices.hpp"

namespace sluice::cluster {

// Node 0 is the root; every other has its parent before it.
struct TreeShape {
  std::vector<unsigned> parents = {0};  // of the root: 0
  // A tree of `levels` levels, the root's included; each node above the last level has `children`
  // children.
  static TreeShape even(unsigned levels, unsigned children);

  std::size_t size() const noexcept { return parents.size(); }
  std::vector<unsigned> leaves() const;
};

class Tree {
 public:
  enum class Kind : std::uint8_t { sparse, dense };
  struct Options {
    Kind kind = Kind::dense;
    // d: a hit on a level above this one (the root's is 0) is checked in the subtree below it, down
    // to level d. 0: no hit is checked.
    unsigned check_to = 0;
    bool stop_when_refuted = false;
  };

  // What happened on a level.
  struct Level {
    std::uint64_t hits = 0;      // keys judged duplicates here
    std::uint64_t accesses = 0;  // nodes contacted on the way up and, to set, on the way back
    std::uint64_t checks = 0;    // nodes contacted by top-down testing
    std::uint64_t refuted = 0;   // hits that it did not believe
  };

  // A producer's view: one filter per node, all of the same bits and probes, each on one site or
  // sliced over several. Throws BadParameters.
  Tree(TreeShape shape, const Options& options, std::vector<std::unique_ptr<Slices>> nodes);

  // Keys of a producer at this leaf. A batch is judged as if they came one after the other.
  void observe(unsigned leaf, std::span<const Digest> digests, std::span<Verdict> verdicts);
  Verdict observe(unsigned leaf, const Digest& digest);

  const TreeShape& shape() const noexcept { return shape_; }
  // The root's first.
  std::span<const Level> levels() const noexcept { return levels_; }
  unsigned level_of(unsigned node) const { return depths_[node]; }
  // Keys judged by the number of nodes passed on the way up: [0] at the leaf.
  std::span<const std::uint64_t> climbs() const noexcept { return climbs_; }
  Slices& node(unsigned at) { return *nodes_[at]; }

 private:
  void climb(unsigned leaf, std::span<const Digest> digests, std::span<Verdict> verdicts);
  bool confirmed(unsigned node, unsigned from, const Digest& digest);

  TreeShape shape_;
  Options options_;
  std::vector<std::unique_ptr<Slices>> nodes_;
  std::vector<std::vector<unsigned>> children_;
  std::vector<unsigned> depths_;
  std::vector<Level> levels_;
  std::vector<std::uint64_t> climbs_;

  // Of the present batch: keys that are not judged yet.
  std::vector<Digest> open_;
  std::vector<std::uint32_t> whose_;
  std::vector<Verdict> found_;
};

}  // namespace sluice::cluster
