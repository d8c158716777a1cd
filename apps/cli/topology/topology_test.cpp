#include "apps/cli/topology/topology.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"

namespace sluice::cli {
namespace {

constexpr const char* kWhole = R"(# Two regions.
kind = "sparse"
window = "10m"
fpr = 1e-4

[node.eu-1]
parent = "eu"
filter = "cohort"

[node.eu]
parent = "clicks"
endpoint = "redis://10.1.0.5:6379/clicks-eu"
password-file = "/etc/sluice/eu"
latency = "1ms"

[node.clicks]
endpoint = "redis+cluster://10.0.0.5:6379/clicks"
rule = "duplicate"

[node.us-1]
parent = "clicks"
latency = "40ms"
)";

TEST(Topology, ReadsAll) {
  const Topology topology = parse_topology(kWhole, "tree.toml");
  EXPECT_EQ(topology.kind, Topology::Kind::sparse);
  EXPECT_EQ(topology.rule, Topology::Rule::duplicate);
  EXPECT_EQ(topology.window, parse_window("", "10m"));
  EXPECT_EQ(topology.fpr, 1e-4);
  ASSERT_EQ(topology.nodes.size(), 4u);
  const auto& [root, eu, us, leaf] =
      std::tie(topology.nodes[0], topology.nodes[1], topology.nodes[2], topology.nodes[3]);
  EXPECT_EQ(root.name, "clicks");
  EXPECT_FALSE(root.parent);
  EXPECT_EQ(root.endpoint, "redis+cluster://10.0.0.5:6379/clicks");
  EXPECT_EQ(eu.name, "eu");
  EXPECT_EQ(eu.parent, 0u);
  EXPECT_EQ(eu.password_file, "/etc/sluice/eu");
  EXPECT_EQ(eu.latency, std::chrono::milliseconds(1));
  EXPECT_EQ(us.name, "us-1");
  EXPECT_EQ(us.endpoint, "");
  EXPECT_EQ(leaf.name, "eu-1");
  EXPECT_EQ(leaf.parent, 1u);
  EXPECT_EQ(leaf.filter, "cohort");
  EXPECT_EQ(topology.where(3), "tree.toml:6: node 'eu-1'");
  EXPECT_EQ(topology.leaf("eu-1"), 3u);
  EXPECT_EQ(topology.path_of(3), (std::vector<unsigned>{3, 1, 0}));
  EXPECT_EQ(topology.leaves(), (std::vector<unsigned>{2, 3}));
}

TEST(Topology, WhatIsLeftOut) {
  const Topology topology = parse_topology(
      "window = \"forever\"\n[node.all]\nendpoint = \"redis://h:1/n\"\n[node.a]\nparent = "
      "\"all\"\n",
      "t");
  EXPECT_EQ(topology.kind, Topology::Kind::dense);
  EXPECT_EQ(topology.rule, Topology::Rule::wait);
  EXPECT_EQ(topology.fpr, 1e-6);
  EXPECT_FALSE(topology.window);
  EXPECT_EQ(parse_topology("window = \"day\"\nnode = {r = {endpoint = \"redis://h:1/n\"}}", "t")
                .window->kind,
            WindowSpec::Kind::landmark);
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "none";
}
std::string error_of(const std::string& text) {
  return error_of([&] { parse_topology(text, "t"); });
}

// The file above with a part replaced.
std::string with(const std::string& what, const std::string& by) {
  std::string text = kWhole;
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(Topology, ErrorsNameTheLineAndWhatWouldBeRight) {
  EXPECT_EQ(error_of(with("kind =", "kidn =")),
            "t:2: a topology has no 'kidn': did you mean 'kind'?");
  EXPECT_EQ(error_of(with("fpr =", "zzzzzz =")),
            "t:4: a topology has no 'zzzzzz': it may have kind, window, fpr, node");
  EXPECT_EQ(error_of(with("latency", "latecny")),
            "t:14: node 'eu' has no 'latecny': did you mean 'latency'?");
  EXPECT_EQ(error_of(with("sparse", "spares")),
            "t:2: kind 'spares' is not dense or sparse: did you mean 'sparse'?");
  EXPECT_EQ(error_of(with("\"10m\"", "600")),
            "t:3: 'window' must be text in quotes, such as \"10m\"");
  EXPECT_EQ(error_of(with("10m", "10 minutes")).substr(0, 26), "t:3: window '10 minutes' i");
  EXPECT_EQ(
      error_of(with("10m", "1M")),
      "t:3: window '1M' is one of a count, and a node would count only its own producers' keys: "
      "give a time, such as \"10m\"");
  EXPECT_EQ(error_of(with("window = \"10m\"", "")),
            "t:1: the topology says no window: give window = \"10m\", \"hour\", \"day\" or "
            "\"forever\"");
  for (const char* const fpr : {"0", "1", "nan", "-1e-3", "\"1e-3\"", "true"})
    EXPECT_EQ(error_of(with("1e-4", fpr)),
              "t:4: 'fpr' must be a number above 0 and below 1, such as 1e-6")
        << fpr;
  EXPECT_EQ(error_of(with("parent = \"eu\"", "parent = \"cliks\"")),
            "t:7: the parent of node 'eu-1', 'cliks', is no node: did you mean 'clicks'?");
  EXPECT_EQ(error_of(with("parent = \"eu\"", "parent = \"asia\"")),
            "t:7: the parent of node 'eu-1', 'asia', is no node: write [node.NAME] for it, or give "
            "another parent");
  EXPECT_EQ(
      error_of(with("duplicate", "dupilcate")),
      "t:18: rule 'dupilcate' is not wait or distinct or duplicate: did you mean 'duplicate'?");
  EXPECT_EQ(error_of(with("1ms", "1")).substr(0, 5), "t:14:");
  EXPECT_EQ(error_of(with("1ms", "2m")), "t:14: latency '2m' is more than a minute");
  EXPECT_EQ(error_of(with("redis://", "http://")),
            "t:12: endpoint 'http://10.1.0.5:6379/clicks-eu' is not redis://host:port/name or "
            "redis+cluster://host:port/name; leave it out for a filter in the producer's process");
  EXPECT_EQ(
      error_of(with("[node.us-1]", "[node.\"us 1\"]")),
      "t:20: 'us 1' is no name of a node: give letters, digits, '-', '_' and '.', at most 100");
  EXPECT_EQ(error_of("window = \"10m\""),
            "t:1: the topology has no nodes: give each as [node.NAME], and the root an endpoint");
  EXPECT_EQ(error_of("window = \"10m\"\nnode = 3"), "t:2: nodes are written as [node.NAME]");
  EXPECT_EQ(error_of("window = \"10m\"\n[node]\neu = 3"),
            "t:3: node 'eu' must be a table: write [node.eu]");
}

TEST(Topology, RefusesWhatIsNoTree) {
  EXPECT_EQ(
      error_of(with("parent = \"clicks\"\nendpoint", "endpoint")),
      "t:15: node 'clicks' has no parent, and neither has 'eu' in line 10: a tree has one root; "
      "give one of them a parent");
  EXPECT_EQ(
      error_of(with("rule = \"duplicate\"", "parent = \"eu-1\"")),
      "t:7: the parents of 'eu-1', 'eu', 'clicks' go round in a circle: the root has no parent");
  EXPECT_EQ(error_of(with("parent = \"clicks\"", "parent = \"eu\"")),
            "t:11: the parents of 'eu' go round in a circle: the root has no parent");
  const std::string twice = error_of(with("[node.us-1]", "[node.eu]"));
  EXPECT_EQ(twice.substr(0, 5), "t:20:");
  EXPECT_NE(twice.find("give each node and each key once"), std::string::npos) << twice;
  EXPECT_EQ(
      error_of(with("latency = \"40ms\"", "endpoint = \"redis://10.1.0.5:6379/clicks-eu\"")),
      "t:22: endpoint 'redis://10.1.0.5:6379/clicks-eu' is also that of node 'eu' in line 10: "
      "every node has a filter of its own");
  EXPECT_EQ(error_of(with("endpoint = \"redis://10.1.0.5:6379/clicks-eu\"\npassword-file = "
                          "\"/etc/sluice/eu\"\n",
                          "")),
            "t:10: node 'eu' is shared by producers, and needs an endpoint, such as "
            "\"redis://host:6379/eu\"; only a leaf may be in its producer's process");
  EXPECT_EQ(error_of(with("latency = \"1ms\"", "rule = \"wait\"")),
            "t:14: 'rule' is for the root: 'eu' is passed by while it does not answer");
  EXPECT_EQ(
      error_of(with("latency = \"1ms\"", "filter = \"cohort\"")),
      "t:14: 'filter' is for a node in its producer's process: what the one at an endpoint is "
      "was said when it was made");
  EXPECT_EQ(error_of(with("filter = \"cohort\"", "password-file = \"p\"")),
            "t:8: 'password-file' is for an endpoint, and this node has none");
  EXPECT_EQ(
      error_of(with("rule = \"duplicate\"", "latency = \"1ms\"")),
      "t:18: 'latency' is that of the link to the parent, and the root has none: give it to its "
      "children");
}

TEST(Topology, LeavesAreFoundByName) {
  const Topology topology = parse_topology(kWhole, "t");
  const auto leaf_error = [&](const char* name) { return error_of([&] { topology.leaf(name); }); };
  EXPECT_EQ(leaf_error("eu"),
            "--leaf 'eu' has nodes below it in t, and producers are at leaves: give us-1, eu-1");
  EXPECT_EQ(leaf_error("us1"), "--leaf 'us1' is no node of t: did you mean 'us-1'?");
  EXPECT_EQ(leaf_error("asia-2"), "--leaf 'asia-2' is no node of t: give us-1, eu-1");
}

TEST(Topology, BytesOfAnyKindAreReadOrRefused) {
  const std::string whole = kWhole;
  SplitMix64 random(1);
  std::size_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (std::uint64_t n = random.next() % 4 + 1; n > 0; --n) {
      const std::size_t at = random.next() % text.size();
      if (random.next() % 2 == 0)
        text[at] = static_cast<char>(random.next());
      else
        text.erase(at, random.next() % 20);
    }
    try {
      const Topology topology = parse_topology(text, "t");
      for (std::size_t node = 1; node < topology.nodes.size(); ++node)
        ASSERT_LT(*topology.nodes[node].parent, node);
    } catch (const BadParameters& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).substr(0, 2), "t:") << error.what();
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_EQ(error_of(std::string(Topology::kMostBytes + 1, '\n')),
            "t: it is longer than 1 MiB, which is the most that a topology may have");
  std::string many = "window = \"1m\"\n";
  for (std::size_t i = 0; i <= Topology::kMostNodes; ++i)
    many += "[node.n" + std::to_string(i) + "]\n";
  EXPECT_NE(error_of(many).find("4097 nodes; a tree may have 4096"), std::string::npos);
  // Deeper than any parser should go.
  EXPECT_EQ(error_of("window = " + std::string(100'000, '[')).substr(0, 4), "t:1:");
}

TEST(Topology, FilesThatCannotBeRead) {
  EXPECT_THROW(read_topology("/nowhere/tree.toml"), IoError);
  EXPECT_THROW(read_topology("/"), IoError);
  const auto file = std::filesystem::temp_directory_path() / "sluice-topology-test.toml";
  std::ofstream(file) << kWhole;
  EXPECT_EQ(read_topology(file).nodes.size(), 4u);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace sluice::cli
