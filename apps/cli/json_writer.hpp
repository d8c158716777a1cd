// Writes one JSON object as a line. By hand, because what we write is flat and small; a JSON
// library would cost more to build than these lines.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "printable.hpp"

namespace sluice::cli {

class JsonWriter {
 public:
  JsonWriter& begin(std::string_view name = {}) {
    head(name);
    text_ += '{';
    first_ = true;
    return *this;
  }
  JsonWriter& end() {
    text_ += '}';
    first_ = false;
    return *this;
  }

  // [object,…]: begin() and end() each.
  JsonWriter& begin_list(std::string_view name) {
    head(name);
    text_ += '[';
    first_ = true;
    return *this;
  }
  JsonWriter& end_list() {
    text_ += ']';
    first_ = false;
    return *this;
  }

  JsonWriter& field(std::string_view name, std::string_view value) {
    head(name);
    quote(value);
    return *this;
  }
  JsonWriter& field(std::string_view name, const char* value) {
    return field(name, std::string_view(value));
  }
  JsonWriter& field(std::string_view name, bool value) {
    return raw(name, value ? "true" : "false");
  }
  template <std::integral Number>
  JsonWriter& field(std::string_view name, Number value) {
    return raw(name, fmt::format("{}", value));
  }
  // What is not known is null.
  template <class Value>
  JsonWriter& field(std::string_view name, const std::optional<Value>& value) {
    return value ? field(name, *value) : raw(name, "null");
  }
  // Six significant digits; what is no number has no place in JSON and becomes null.
  JsonWriter& field(std::string_view name, double value) { return number(name, value, 6); }
  JsonWriter& number(std::string_view name, double value, int digits) {
    return raw(name, std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "null");
  }

  // [["name","value"],…]
  JsonWriter& pairs(std::string_view name,
                    const std::vector<std::pair<std::string, std::string>>& values) {
    head(name);
    text_ += '[';
    for (const auto& [first, second] : values) {
      if (text_.back() != '[') text_ += ',';
      text_ += '[';
      quote(first);
      text_ += ',';
      quote(second);
      text_ += ']';
    }
    text_ += ']';
    return *this;
  }

  const std::string& text() const { return text_; }

 private:
  JsonWriter& raw(std::string_view name, std::string_view value) {
    head(name);
    text_ += value;
    return *this;
  }
  void head(std::string_view name) {
    if (!first_) text_ += ',';
    first_ = false;
    if (name.empty()) return;
    quote(name);
    text_ += ':';
  }
  // JSON is UTF-8: a byte that is none becomes U+FFFD. What a terminal could obey is escaped.
  void quote(std::string_view value) {
    text_ += '"';
    while (!value.empty()) {
      const std::size_t length = utf8_length(value);
      const char c = value.front();
      if (length == 0)
        text_ += "\\ufffd";
      else if (c == '"' || c == '\\')
        text_ += {'\\', c};
      else if (is_control(value.substr(0, length)))
        text_ += fmt::format("\\u{:04x}", utf8_code(value.substr(0, length)));
      else
        text_ += value.substr(0, length);
      value.remove_prefix(length == 0 ? 1 : length);
    }
    text_ += '"';
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace sluice::cli
