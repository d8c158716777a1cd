// A small strict JSON parser (RFC 8259) that keeps the text of numbers.
//
// It exists beside simdjson, which is many times faster but turns numbers into 64-bit integers and
// doubles and refuses what does not fit: keys compare numbers exactly as decimals, so whenever a
// key needs such a number, or simdjson refuses one, the record is read again by this parser. It
// accepts exactly the documents that simdjson accepts, plus numbers of any size, and is what the
// tests compare the fast path with.
//
// Cost     a byte at a time; memory in proportion to the document, kept for the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/stream/json_key.hpp"

namespace sluice {

class JsonTree {
 public:
  class Value;

  // False when the text is not one document: truncated, with something behind it, badly escaped, no
  // UTF-8, nested deeper than kJsonMostDepth, or empty. `text` must outlive the values.
  bool parse(std::string_view text);
  Value root() const;  // of a parse that succeeded

 private:
  // In the order of the text; in an object, names and values alternate.
  struct Node {
    JsonKind kind;
    std::string_view text;  // of a string, unescaped, or of a number, as written
    std::size_t next;       // the first node behind this one and all it holds
  };

  bool take_value(std::size_t depth);
  bool take_items(char close, std::size_t depth);
  bool take_container(JsonKind kind, std::size_t depth);
  bool take_string();
  bool take_escape();
  bool take_code_unit(std::uint32_t& unit);
  bool take_code_point();
  bool take_number();
  bool take_digits();
  bool take_word(std::string_view word, JsonKind kind);
  bool take(char byte);
  void skip_space();
  void add(JsonKind kind, std::string_view text) {
    nodes_.push_back({kind, text, nodes_.size() + 1});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Node> nodes_;
  std::string unescaped_;  // strings that had escapes; reserved at once, so that views stay good
};

// A place in the tree, as JsonKeyWriter and find_json want it.
class JsonTree::Value {
 public:
  Value(const JsonTree& tree, std::size_t at) : tree_(&tree), at_(at) {}

  JsonKind kind() const { return node().kind; }
  std::string_view text() const { return node().text; }
  // Always true: the text of the number is at hand.
  bool append_number(std::string& out) const {
    append_decimal(node().text, out);
    return true;
  }
  template <class Visit>
  void visit_items(Visit visit) const {
    for (std::size_t at = at_ + 1; at < node().next; at = tree_->nodes_[at].next)
      visit(Value(*tree_, at));
  }
  template <class Visit>
  void visit_members(Visit visit) const {
    for (std::size_t at = at_ + 1; at < node().next; at = tree_->nodes_[at + 1].next)
      visit(tree_->nodes_[at].text, Value(*tree_, at + 1));
  }
  std::optional<Value> member(std::string_view name) const;
  std::optional<Value> item(std::size_t index) const;

 private:
  const Node& node() const { return tree_->nodes_[at_]; }

  const JsonTree* tree_;
  std::size_t at_;
};

inline JsonTree::Value JsonTree::root() const {
  return {*this, 0};
}

}  // namespace sluice
