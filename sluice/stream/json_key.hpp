// The key form of JSON values, and the pointers that choose them.
//
// Two values have the same form if and only if they are equal: members in any order, the first of a
// repeated name; numbers as exact decimals, of any spelling and size; strings unescaped. No form is
// a prefix of another, so that a sequence of forms is one key without ambiguity:
//
//   null n    true t    false f
//   string    s, length (see append_length), bytes
//   number    d, sign, digits without zeros at either end, e and exponent unless 0, ;
//             0 and -0 are d0;   -120 is d-12e1;   0.5 is d5e-1;
//   array     [ items ]
//   object    { names, as strings, and values, ascending by the length of the names, then bytes }
//
// Digests of these bytes outlive the process: see key_form.hpp before changing one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/stream/key_extractor.hpp"
#include "sluice/stream/key_form.hpp"

namespace sluice {

// The most levels of nested arrays and objects. Limits the recursion on hostile input.
inline constexpr std::size_t kJsonMostDepth = 1024;

enum class JsonKind : std::uint8_t { null, true_, false_, number, string, array, object };

// `number` is a JSON number. Its exponent may have any number of digits.
void append_decimal(std::string_view number, std::string& out);
void append_integer(std::uint64_t magnitude, bool negative, std::string& out);

// The text of a form that is a number or a string; otherwise empty.
std::optional<std::string_view> json_scalar_text(std::string_view form);

// A JSON Pointer (RFC 6901), its tokens unescaped.
struct JsonPointer {
  std::vector<std::string> tokens;
  std::string text = {};  // as it was written
};

// One value of --key: pointers separated by a comma that is followed by '/', so that a pointer may
// hold other commas. Throws BadParameters.
std::vector<JsonPointer> parse_json_pointers(std::string_view key);

// A token as an array index: digits without a leading zero. "-", the item after the last, is not an
// index.
std::optional<std::size_t> parse_json_index(std::string_view token);

// What a pointer leads to. The first member wins where a name repeats.
template <class Value>
std::optional<Value> find_json(Value root, const JsonPointer& pointer) {
  std::optional<Value> value = root;
  for (const std::string& token : pointer.tokens) {
    if (value->kind() == JsonKind::object) {
      value = value->member(token);
    } else if (value->kind() == JsonKind::array) {
      const auto index = parse_json_index(token);
      value = index ? value->item(*index) : std::nullopt;
    } else {
      return {};
    }
    if (!value) return {};
  }
  return value;
}

// Writes key forms of the values of one parser: JsonTree's or simdjson's.
template <class Value>
class JsonKeyWriter {
 public:
  // Appends one form per pointer. Empty: this parser does not know the exact value of a number.
  // Unless it returns `keyed`, drop what was appended.
  std::optional<KeyStatus> append_key(const Value& root, std::span<const JsonPointer> pointers,
                                      std::string& out) {
    members_.clear();
    for (const JsonPointer& pointer : pointers) {
      const std::optional<Value> value = find_json(root, pointer);
      if (!value) return KeyStatus::missing;
      if (!append(*value, out)) return {};
    }
    return KeyStatus::keyed;
  }

 private:
  struct Member {
    std::string_view name;
    std::size_t order;
    Value value;
  };

  // False when a number is not known exactly.
  bool append(const Value& value, std::string& out) {
    switch (value.kind()) {
      case JsonKind::null:
        out += 'n';
        return true;
      case JsonKind::true_:
        out += 't';
        return true;
      case JsonKind::false_:
        out += 'f';
        return true;
      case JsonKind::number:
        return value.append_number(out);
      case JsonKind::string:
        append_string(value.text(), out);
        return true;
      case JsonKind::array:
        return append_array(value, out);
      case JsonKind::object:
        break;
    }
    return append_object(value, out);
  }

  static void append_string(std::string_view text, std::string& out) {
    out += 's';
    append_part(text, out);
  }

  bool append_array(const Value& array, std::string& out) {
    out += '[';
    bool exact = true;
    array.visit_items([&](const Value& item) { exact = exact && append(item, out); });
    out += ']';
    return exact;
  }

  bool append_object(const Value& object, std::string& out) {
    const std::size_t begin = members_.size();
    object.visit_members([&](std::string_view name, const Value& value) {
      members_.push_back({name, members_.size(), value});
    });
    const std::size_t end = members_.size();
    // Any total order works; lengths are compared first because that is faster.
    const auto before = [](const Member& a, const Member& b) {
      if (a.name.size() != b.name.size()) return a.name.size() < b.name.size();
      const int names = a.name.compare(b.name);
      return names != 0 ? names < 0 : a.order < b.order;
    };
    std::sort(members_.begin() + static_cast<std::ptrdiff_t>(begin), members_.end(), before);
    out += '{';
    for (std::size_t i = begin; i < end; ++i) {
      // A copy: nested members may reallocate the vector.
      const Member member = members_[i];
      if (i > begin && members_[i - 1].name == member.name) continue;
      append_string(member.name, out);
      if (!append(member.value, out)) return false;
    }
    out += '}';
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(begin), members_.end());
    return true;
  }

  std::vector<Member> members_;  // of the objects that are open, the innermost last
};

}  // namespace sluice
