#include "sluice/stream/key_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>
#include <vector>

namespace sluice {
namespace {

// As take_part, for a form whose end may be missing.
std::string_view take_part_or_rest(std::string_view& form) {
  std::size_t length = 0;
  unsigned shift = 0;
  bool more = true;
  while (more && !form.empty() && shift < 64) {
    const auto byte = static_cast<unsigned char>(form.front());
    form.remove_prefix(1);
    length |= static_cast<std::size_t>(byte & 0x7F) << shift;
    shift += 7;
    more = byte >= 0x80;
  }
  const std::string_view part = form.substr(0, length);
  form.remove_prefix(part.size());
  return part;
}

// "-12e1" as -120. Numbers that would be long stay as they are.
std::string plain_number(std::string_view form) {
  constexpr std::size_t kLong = 20;
  const std::size_t mark = form.find('e');
  int exponent = 0;
  if (mark == form.npos) return std::string(form);
  const auto read = std::from_chars(form.data() + mark + 1, form.data() + form.size(), exponent);
  std::string_view digits = form.substr(0, mark);
  std::string text;
  if (digits.starts_with('-')) {
    text = "-";
    digits.remove_prefix(1);
  }
  const auto places = static_cast<std::size_t>(std::abs(exponent));
  if (read.ec != std::errc() || places > kLong || digits.size() > kLong) return std::string(form);
  if (exponent > 0) return text.append(digits).append(places, '0');
  if (digits.size() <= places)
    return text.append("0.").append(places - digits.size(), '0').append(digits);
  const std::size_t before = digits.size() - places;
  return text.append(digits.substr(0, before)).append(".").append(digits.substr(before));
}

// Writes one value as JSON. Nested values are written as they come, so nothing is recursive.
class JsonText {
 public:
  explicit JsonText(std::string_view form) : form_(form) {}

  std::string read() {
    while (!form_.empty()) value();
    return std::move(text_);
  }

 private:
  // What stands before a value: nothing after an opening bracket, a colon after a name.
  void separate() {
    if (text_.empty() || after_open_) {
      after_open_ = false;
    } else {
      text_ += after_name_ ? ":" : ",";
    }
  }

  void value() {
    const char kind = form_.front();
    form_.remove_prefix(1);
    if (kind == ']' || kind == '}') {
      text_ += kind;
      if (!objects_.empty()) objects_.pop_back();
      after_open_ = after_name_ = false;
      return;
    }
    separate();
    // In an object, strings and values take turns, beginning with a name.
    const bool is_name = !objects_.empty() && objects_.back() && !after_name_;
    after_name_ = is_name;
    switch (kind) {
      case '[':
      case '{':
        text_ += kind;
        objects_.push_back(kind == '{');
        after_open_ = true;
        break;
      case 's':
        text_ += '"';
        for (const char byte : take_part_or_rest(form_))
          byte == '"' || byte == '\\' ? text_ += {'\\', byte} : text_ += byte;
        text_ += '"';
        break;
      case 'd': {
        const std::size_t end = std::min(form_.find(';'), form_.size());
        text_ += plain_number(form_.substr(0, end));
        form_.remove_prefix(std::min(end + 1, form_.size()));
        break;
      }
      default:
        text_ += kind == 'n' ? "null" : kind == 't' ? "true" : "false";
    }
  }

  std::string_view form_;
  std::string text_;
  std::vector<bool> objects_;  // brackets that are open: whether it is an object's
  bool after_open_ = false, after_name_ = false;
};

}  // namespace

std::string key_text(Format::Kind kind, std::size_t parts, std::string_view form) {
  if (kind == Format::Kind::json) return JsonText(form).read();
  if (parts <= 1) return std::string(form);
  std::string text;
  for (std::size_t i = 0; !form.empty() && i < parts; ++i) {
    if (i > 0) text += ',';
    text += take_part_or_rest(form);
  }
  return text;
}

}  // namespace sluice
