// Topologies from TOML. The only source that includes toml++, which takes seconds to compile.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <span>

#include "apps/cli/topology/topology.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/near_miss.hpp"
#include "sluice/base/quantity.hpp"

// It has a compiled form in Debian, too; with the headers alone there is nothing to link.
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace sluice::cli {
namespace {

constexpr std::size_t kMostName = 100;
constexpr std::chrono::seconds kMostLatency{60};

// One pass over a file.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) { topology_.file = file_; }

  Topology read(std::string_view text) {
    const toml::table root = parse(text);
    check_names(root, {"kind", "window", "fpr", "node"}, "");
    read_settings(root);
    read_nodes(root);
    find_parents();
    check_shape();
    order();
    return std::move(topology_);
  }

 private:
  // A node in the order of the file, with its parent as it is written.
  struct Written {
    Topology::Node node;
    std::string parent;
    std::size_t parent_line = 0, rule_line = 0, endpoint_line = 0, filter_line = 0,
                password_line = 0, latency_line = 0;
    Topology::Rule rule = Topology::Rule::wait;
    std::optional<std::size_t> above;  // index of the parent
    bool has_children = false;
  };

  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    throw BadParameters(fmt::format("{}:{}: {}", file_, line, what));
  }

  static std::size_t line_of(const toml::node& node) { return node.source().begin.line; }

  toml::table parse(std::string_view text) const {
    try {
      return toml::parse(text);
    } catch (const toml::parse_error& error) {
      const std::string_view what = error.description();
      const bool twice = what.find("redefine") != std::string_view::npos;
      fail(error.source().begin.line,
           fmt::format("{}: {}", what,
                       twice ? "give each node and each key once"
                             : "the file must be TOML, such as window = \"10m\""));
    }
  }

  // `of`: whose names they are, with a blank after it; empty: the file's.
  void check_names(const toml::table& table, std::vector<std::string> known,
                   const std::string& of) const {
    for (const auto& [key, value] : table) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      const auto near = near_miss(key.str(), known);
      fail(key.source().begin.line,
           fmt::format("{}has no '{}': {}", of.empty() ? "a topology " : of, printable(key.str()),
                       near ? fmt::format("did you mean '{}'?", *near)
                            : fmt::format("it may have {}", fmt::join(known, ", "))));
    }
  }

  // For messages: what a file has may be anything.
  static std::string printable(std::string_view text) {
    std::string shown(text.substr(0, kMostName));
    for (char& c : shown)
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
    return shown;
  }

  // Nothing if it is not there.
  std::optional<std::string> text(const toml::table& table, std::string_view key,
                                  const char* example, std::size_t* line = nullptr) const {
    const toml::node* const found = table.get(key);
    if (found == nullptr) return std::nullopt;
    if (line != nullptr) *line = line_of(*found);
    const auto* const value = found->as_string();
    if (value == nullptr || value->get().empty())
      fail(line_of(*found), fmt::format("'{}' must be text in quotes, such as {}", key, example));
    return value->get();
  }

  // What another parser reads, with its error.
  template <class Parse>
  auto read_as(std::size_t line, const Parse& parse) const {
    try {
      return parse();
    } catch (const BadParameters& error) {
      fail(line, error.what());
    }
  }

  void read_settings(const toml::table& root) {
    std::size_t line = 0;
    if (const auto kind = text(root, "kind", "\"dense\"", &line))
      topology_.kind = one_of<Topology::Kind>("kind", *kind, line,
                                              {Topology::Kind::dense, Topology::Kind::sparse});
    const auto window = text(root, "window", "\"10m\"", &line);
    if (!window)
      fail(1,
           "the topology says no window: give window = \"10m\", \"hour\", \"day\" or \"forever\"");
    if (*window != "forever") {
      topology_.window = read_as(line, [&] { return parse_window("window", *window); });
      if (!topology_.window->by_time())
        fail(line, fmt::format("window '{}' is one of a count, and a node would count only its own "
                               "producers' keys: give a time, such as \"10m\"",
                               *window));
    }
    if (const toml::node* const fpr = root.get("fpr")) {
      const auto value = fpr->value<double>();
      if (!fpr->is_number() || !value || !(*value > 0 && *value < 1))
        fail(line_of(*fpr), "'fpr' must be a number above 0 and below 1, such as 1e-6");
      topology_.fpr = *value;
    }
  }

  template <class Enum>
  Enum one_of(const char* key, const std::string& typed, std::size_t line,
              std::vector<Enum> choices) const {
    std::vector<std::string> names;
    for (const Enum choice : choices) {
      names.emplace_back(name_of(choice));
      if (names.back() == typed) return choice;
    }
    const auto near = near_miss(typed, names);
    fail(line, fmt::format("{} '{}' is not {}{}", key, printable(typed), fmt::join(names, " or "),
                           near ? fmt::format(": did you mean '{}'?", *near) : ""));
  }

  void read_nodes(const toml::table& root) {
    const toml::node* const found = root.get("node");
    if (found == nullptr)
      fail(1, "the topology has no nodes: give each as [node.NAME], and the root an endpoint");
    const toml::table* const nodes = found->as_table();
    if (nodes == nullptr) fail(line_of(*found), "nodes are written as [node.NAME]");
    if (nodes->size() > Topology::kMostNodes)
      fail(line_of(*nodes),
           fmt::format("{} nodes; a tree may have {}", nodes->size(), Topology::kMostNodes));
    for (const auto& [key, value] : *nodes) {
      const toml::table* const table = value.as_table();
      if (table == nullptr)
        fail(key.source().begin.line,
             fmt::format("node '{0}' must be a table: write [node.{0}]", printable(key.str())));
      read_node(key.str(), key.source().begin.line, *table);
    }
    // A table has its keys in the order of their letters.
    std::ranges::stable_sort(written_, {}, [](const Written& each) { return each.node.line; });
    for (std::size_t i = 0; i < written_.size(); ++i) index_[written_[i].node.name] = i;
  }

  void read_node(std::string_view name, std::size_t line, const toml::table& table) {
    const auto allowed = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_' || c == '.';
    };
    if (name.empty() || name.size() > kMostName || !std::ranges::all_of(name, allowed))
      fail(line,
           fmt::format("'{}' is no name of a node: give letters, digits, '-', '_' and '.', at "
                       "most {}",
                       printable(name), kMostName));
    check_names(table, {"parent", "endpoint", "rule", "latency", "filter", "password-file"},
                fmt::format("node '{}' ", name));
    Written written;
    written.node.name = name;
    written.node.line = line;
    written.parent = text(table, "parent", "\"eu\"", &written.parent_line).value_or("");
    written.node.endpoint =
        text(table, "endpoint", "\"redis://host:6379/name\"", &written.endpoint_line).value_or("");
    written.node.password_file =
        text(table, "password-file", "\"/etc/sluice/password\"", &written.password_line)
            .value_or("");
    written.node.filter = text(table, "filter", "\"cohort\"", &written.filter_line).value_or("");
    if (const auto rule = text(table, "rule", "\"wait\"", &written.rule_line))
      written.rule = one_of<Topology::Rule>(
          "rule", *rule, written.rule_line,
          {Topology::Rule::wait, Topology::Rule::distinct, Topology::Rule::duplicate});
    if (const auto latency = text(table, "latency", "\"20ms\"", &written.latency_line)) {
      written.node.latency =
          read_as(written.latency_line, [&] { return parse_duration("latency", *latency); });
      if (written.node.latency > kMostLatency)
        fail(written.latency_line, fmt::format("latency '{}' is more than a minute", *latency));
    }
    written_.push_back(std::move(written));
  }

  void find_parents() {
    std::vector<std::string> names;
    for (const Written& written : written_) names.push_back(written.node.name);
    for (Written& written : written_) {
      if (written.parent.empty()) continue;
      const auto found = index_.find(written.parent);
      if (found == index_.end()) {
        const auto near = near_miss(written.parent, names);
        fail(written.parent_line,
             fmt::format("the parent of node '{}', '{}', is no node: {}", written.node.name,
                         printable(written.parent),
                         near ? fmt::format("did you mean '{}'?", *near)
                              : fmt::format("write [node.NAME] for it, or give another parent")));
      }
      written.above = found->second;
      written_[found->second].has_children = true;
    }
  }

  void check_shape() const {
    const Written* root = nullptr;
    for (const Written& written : written_) {
      if (written.above) continue;
      if (root != nullptr)
        fail(written.node.line,
             fmt::format("node '{}' has no parent, and neither has '{}' in line {}: a tree has one "
                         "root; give one of them a parent",
                         written.node.name, root->node.name, root->node.line));
      root = &written;
    }
    check_cycles();
    for (const Written& written : written_) check_node(written);
    check_endpoints();
  }

  // A walk upwards that meets a node twice.
  void check_cycles() const {
    std::vector<std::size_t> seen(written_.size(), 0);  // in which walk
    for (std::size_t start = 0; start < written_.size(); ++start) {
      std::size_t at = start;
      while (written_[at].above && seen[at] == 0) {
        seen[at] = start + 1;
        at = *written_[at].above;
      }
      if (!written_[at].above || seen[at] != start + 1) continue;
      std::string circle = fmt::format("'{}'", written_[at].node.name);
      constexpr int kShown = 8;
      std::size_t next = *written_[at].above;
      for (int i = 0; next != at && i < kShown; ++i, next = *written_[next].above)
        circle += fmt::format(", '{}'", written_[next].node.name);
      fail(written_[at].parent_line,
           fmt::format("the parents of {}{} go round in a circle: the root has no parent", circle,
                       next != at ? ", ..." : ""));
    }
  }

  void check_node(const Written& written) const {
    const Topology::Node& node = written.node;
    const bool is_root = !written.above;
    if (node.endpoint.empty() && (is_root || written.has_children))
      fail(node.line,
           fmt::format("node '{}' is shared by producers, and needs an endpoint, such as "
                       "\"redis://host:6379/{}\"; only a leaf may be in its producer's "
                       "process",
                       node.name, node.name));
    if (!node.endpoint.empty() && !node.endpoint.starts_with("redis://") &&
        !node.endpoint.starts_with("redis+cluster://"))
      fail(
          written.endpoint_line,
          fmt::format("endpoint '{}' is not redis://host:port/name or "
                      "redis+cluster://host:port/name; leave it out for a filter in the producer's "
                      "process",
                      printable(node.endpoint)));
    if (!node.endpoint.empty() && !node.filter.empty())
      fail(written.filter_line,
           "'filter' is for a node in its producer's process: what the one at an "
           "endpoint is was said when it was made");
    if (node.endpoint.empty() && !node.password_file.empty())
      fail(written.password_line, "'password-file' is for an endpoint, and this node has none");
    if (!is_root && written.rule_line > 0)
      fail(written.rule_line,
           fmt::format("'rule' is for the root: '{}' is passed by while it does not answer",
                       node.name));
    if (is_root && written.latency_line > 0)
      fail(written.latency_line,
           "'latency' is that of the link to the parent, and the root has none: give it to its "
           "children");
  }

  // A filter that stands on two levels would know each key from the level below.
  void check_endpoints() const {
    std::map<std::string_view, const Written*> seen;
    for (const Written& written : written_) {
      if (written.node.endpoint.empty()) continue;
      const auto [found, is_new] = seen.emplace(written.node.endpoint, &written);
      if (!is_new)
        fail(written.endpoint_line,
             fmt::format("endpoint '{}' is also that of node '{}' in line {}: every node has a "
                         "filter of its own",
                         printable(written.node.endpoint), found->second->node.name,
                         found->second->node.line));
    }
  }

  // Level by level, and in a level as they are written.
  void order() {
    std::vector<std::vector<std::size_t>> below(written_.size());
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < written_.size(); ++i) {
      if (written_[i].above)
        below[*written_[i].above].push_back(i);
      else
        all.push_back(i);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      Written& written = written_[all[i]];
      const auto place = static_cast<unsigned>(topology_.nodes.size());
      if (!written.above) topology_.rule = written.rule;
      topology_.nodes.push_back(written.node);
      for (const std::size_t child : below[all[i]]) {
        written_[child].node.parent = place;
        all.push_back(child);
      }
    }
  }

  std::string file_;
  Topology topology_;
  std::vector<Written> written_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace

Topology parse_topology(std::string_view text, const std::string& file) {
  if (text.size() > Topology::kMostBytes)
    throw BadParameters(
        fmt::format("{}: it is longer than {}, which is the most that a topology may have", file,
                    format_size(Topology::kMostBytes)));
  return Reader(file).read(text);
}

Topology read_topology(const std::string& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw IoError(fmt::format("--tree '{}' cannot be read", file), errno);
  std::string text(Topology::kMostBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) throw IoError(fmt::format("--tree '{}' cannot be read", file), errno);
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return parse_topology(text, file);
}

}  // namespace sluice::cli
