// The topology of a tree: which filters it has, where they stand and who is above whom, as a person
// writes it in TOML.
//
//   window = "10m"              # or "hour", "day", "forever"
//   kind = "dense"              # or "sparse"
//
//   [node.clicks]               # the root: the only node without a parent
//   endpoint = "redis://10.0.0.5:6379/clicks"
//   rule = "wait"
//
//   [node.eu-1]                 # no endpoint: a filter in the process of its producer
//   parent = "clicks"
//   latency = "30ms"
//
// What is read is as plain as the file: nothing is opened. Every error is one sentence that names the
// file, the line, and what would be right.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/window/spec.hpp"

namespace sluice::cli {

struct Topology {
  // See cluster/tree.hpp.
  enum class Kind : std::uint8_t { sparse, dense };
  // What becomes of a key if the root does not answer.
  enum class Rule : std::uint8_t { wait, distinct, duplicate };

  struct Node {
    std::string name;
    std::size_t line = 0;            // in the file
    std::optional<unsigned> parent;  // none: the root
    std::string endpoint;            // of a filter on servers; empty: in the producer's process
    std::string password_file;       // for the servers; empty: as for all others
    std::string filter;              // of one in the producer's process; empty: the usual one
    // To be added to each round trip over the link to the parent, to see what locality is worth.
    std::chrono::nanoseconds latency{0};
  };

  static constexpr std::size_t kMostNodes = 4096;
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  std::string file;  // its name, for messages
  Kind kind = Kind::dense;
  Rule rule = Rule::wait;
  std::optional<WindowSpec> window;  // none: nodes never forget
  double fpr = 1e-6;                 // of each node
  std::vector<Node> nodes;           // the root first, and every parent before its children

  // The node of this name, which must be a leaf. Throws BadParameters.
  unsigned leaf(std::string_view name) const;
  // From the leaf to the root.
  std::vector<unsigned> path_of(unsigned leaf) const;
  std::vector<unsigned> leaves() const;
  // "tree.toml:12: node 'eu-1'": how messages begin.
  std::string where(unsigned node) const;
};

std::string_view name_of(Topology::Kind kind) noexcept;
std::string_view name_of(Topology::Rule rule) noexcept;

// `file` is the name for messages. Throws BadParameters.
Topology parse_topology(std::string_view text, const std::string& file);
// Throws IoError, too.
Topology read_topology(const std::string& file);

}  // namespace sluice::cli
