#include "sluice/cluster/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "sluice/base/error.hpp"

namespace sluice::cluster {
namespace {

constexpr std::size_t kMostNodes = std::size_t{1} << 20;
constexpr unsigned kNobody = ~0u;

}  // namespace

TreeShape TreeShape::even(unsigned levels, unsigned children) {
  if (levels == 0 || children == 0)
    throw BadParameters("a tree of no levels or children: give at least 1 of each");
  TreeShape shape;
  std::size_t first = 0;  // of the level above
  for (unsigned level = 1; level < levels; ++level) {
    const std::size_t end = shape.parents.size();
    if ((end - first) * children > kMostNodes)
      throw BadParameters(
          fmt::format("a tree of more than {} nodes: give fewer levels or children", kMostNodes));
    for (std::size_t parent = first; parent < end; ++parent)
      shape.parents.insert(shape.parents.end(), children, static_cast<unsigned>(parent));
    first = end;
  }
  return shape;
}

std::vector<unsigned> TreeShape::leaves() const {
  std::vector<bool> inner(size());
  for (std::size_t node = 1; node < size(); ++node) inner[parents[node]] = true;
  std::vector<unsigned> leaves;
  for (unsigned node = 0; node < size(); ++node)
    if (!inner[node]) leaves.push_back(node);
  return leaves;
}

Tree::Tree(TreeShape shape, const Options& options, std::vector<std::unique_ptr<Slices>> nodes)
    : shape_(std::move(shape)),
      options_(options),
      nodes_(std::move(nodes)),
      children_(shape_.size()),
      depths_(shape_.size()) {
  if (nodes_.size() != shape_.size() || nodes_.empty())
    throw BadParameters(fmt::format("tree: {} filters for {} nodes", nodes_.size(), shape_.size()));
  for (unsigned node = 1; node < shape_.size(); ++node) {
    const unsigned parent = shape_.parents[node];
    if (parent >= node) throw BadParameters("tree: a node's parent must come before it");
    children_[parent].push_back(node);
    depths_[node] = depths_[parent] + 1;
  }
  const unsigned deepest = *std::ranges::max_element(depths_);
  levels_.resize(deepest + 1);
  climbs_.resize(deepest + 1);
  if (options_.kind == Kind::dense)
    for (const auto& node : nodes_)
      if (!node->options().test_and_set)
        throw BadParameters("tree: the nodes of a dense tree are asked by test-and-set");
}

// Whether a hit at `node` is believed: some path below it must hit down to the level of the check.
// The child `from` is left out: the key came from there and was not found. A leaf has nothing below
// it.
bool Tree::confirmed(unsigned node, unsigned from, const Digest& digest) {
  if (depths_[node] >= options_.check_to || children_[node].empty()) return true;
  for (const unsigned child : children_[node]) {
    if (child == from) continue;
    ++levels_[depths_[child]].checks;
    if (nodes_[child]->may_contain(digest) && confirmed(child, kNobody, digest)) return true;
  }
  return false;
}

void Tree::observe(unsigned leaf, std::span<const Digest> digests, std::span<Verdict> verdicts) {
  assert(leaf < shape_.size() && children_[leaf].empty() && digests.size() == verdicts.size());
  if (digests.size() > 1 && options_.check_to > 0) {
    // What a check finds depends on what the keys before have set.
    for (std::size_t i = 0; i < digests.size(); ++i)
      climb(leaf, digests.subspan(i, 1), verdicts.subspan(i, 1));
    return;
  }
  climb(leaf, digests, verdicts);
}

Verdict Tree::observe(unsigned leaf, const Digest& digest) {
  Verdict verdict;
  climb(leaf, {&digest, 1}, {&verdict, 1});
  return verdict;
}

void Tree::climb(unsigned leaf, std::span<const Digest> digests, std::span<Verdict> verdicts) {
  open_.assign(digests.begin(), digests.end());
  whose_.resize(digests.size());
  std::iota(whose_.begin(), whose_.end(), 0);
  unsigned from = kNobody;
  std::size_t steps = 0;
  for (unsigned node = leaf; !open_.empty(); from = node, node = shape_.parents[node], ++steps) {
    const bool at_root = node == 0;
    Level& level = levels_[depths_[node]];
    found_.resize(open_.size());
    // A sparse tree sets nothing on the way up but at its root, which decides.
    if (options_.kind == Kind::dense || at_root)
      nodes_[node]->observe(open_, found_);
    else
      nodes_[node]->may_contain(open_, found_);
    level.accesses += open_.size();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      bool hit = found_[i] == Verdict::duplicate;
      bool stop = at_root || hit;
      if (hit && !confirmed(node, from, open_[i])) {
        ++level.refuted;
        hit = false;
        stop = at_root || options_.stop_when_refuted;
      }
      level.hits += hit;
      if (stop) {
        verdicts[whose_[i]] = hit ? Verdict::duplicate : Verdict::distinct;
        ++climbs_[steps];
        continue;
      }
      open_[kept] = open_[i];
      whose_[kept++] = whose_[i];
    }
    open_.resize(kept);
    if (at_root) break;
  }
  if (options_.kind == Kind::dense) return;
  // The way back down, for new keys. The root has them already, unless it was refuted or never
  // asked.
  for (std::size_t i = 0; i < digests.size(); ++i)
    if (verdicts[i] == Verdict::distinct) open_.push_back(digests[i]);
  if (open_.empty()) return;
  for (unsigned node = leaf;; node = shape_.parents[node]) {
    const bool set = node != 0 || options_.stop_when_refuted;
    if (set) nodes_[node]->insert(open_);
    if (set || !nodes_[node]->options().test_and_set)
      levels_[depths_[node]].accesses += open_.size();
    if (node == 0) break;
  }
}

}  // namespace sluice::cluster
