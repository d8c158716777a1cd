#include "apps/cli/topology/topology.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sluice/base/error.hpp"
#include "sluice/base/near_miss.hpp"

namespace sluice::cli {

std::string_view name_of(Topology::Kind kind) noexcept {
  return kind == Topology::Kind::sparse ? "sparse" : "dense";
}

std::string_view name_of(Topology::Rule rule) noexcept {
  switch (rule) {
    case Topology::Rule::wait:
      return "wait";
    case Topology::Rule::distinct:
      return "distinct";
    case Topology::Rule::duplicate:
      break;
  }
  return "duplicate";
}

std::vector<unsigned> Topology::leaves() const {
  std::vector<bool> inner(nodes.size());
  for (const Node& node : nodes)
    if (node.parent) inner[*node.parent] = true;
  std::vector<unsigned> found;
  for (unsigned i = 0; i < nodes.size(); ++i)
    if (!inner[i]) found.push_back(i);
  return found;
}

std::string Topology::where(unsigned node) const {
  return fmt::format("{}:{}: node '{}'", file, nodes[node].line, nodes[node].name);
}

unsigned Topology::leaf(std::string_view name) const {
  const std::vector<unsigned> all = leaves();
  std::vector<std::string> names;
  for (const unsigned leaf : all) names.push_back(nodes[leaf].name);
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return all[static_cast<std::size_t>(found - names.begin())];
  if (std::ranges::find(nodes, name, &Node::name) != nodes.end())
    throw BadParameters(
        fmt::format("--leaf '{}' has nodes below it in {}, and producers are at leaves: give {}",
                    name, file, fmt::join(names, ", ")));
  const auto near = near_miss(name, names);
  throw BadParameters(fmt::format("--leaf '{}' is no node of {}: {}", name, file,
                                  near ? fmt::format("did you mean '{}'?", *near)
                                       : fmt::format("give {}", fmt::join(names, ", "))));
}

std::vector<unsigned> Topology::path_of(unsigned leaf) const {
  std::vector<unsigned> path = {leaf};
  while (nodes[path.back()].parent) path.push_back(*nodes[path.back()].parent);
  return path;
}

}  // namespace sluice::cli
