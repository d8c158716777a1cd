#include "sluice/stream/json_tree.hpp"

namespace sluice {
namespace {

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

bool is_space(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

bool is_continuation(unsigned byte) {
  return (byte & 0xC0) == 0x80;
}

// How many bytes the UTF-8 sequence at the front of `rest` has; 0 when it is none: overlong, a
// surrogate, past U+10FFFF or cut.
std::size_t sequence_bytes(std::string_view rest) {
  const auto byte = [&](std::size_t i) {
    return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0u;
  };
  const unsigned lead = byte(0);
  const unsigned second = byte(1);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4 || !is_continuation(byte(1))) return 0;
  if (lead < 0xE0) return 2;
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if (!is_continuation(byte(2))) return 0;
  if (lead < 0xF0) return 3;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return is_continuation(byte(3)) ? 4 : 0;
}

// How many bytes at the front of `rest` stand for themselves in a string: ASCII but for quotes,
// backslashes and control characters.
std::size_t plain_bytes(std::string_view rest) {
  std::size_t count = 0;
  while (count < rest.size()) {
    const auto byte = static_cast<unsigned char>(rest[count]);
    if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\') break;
    ++count;
  }
  return count;
}

void append_utf8(std::uint32_t point, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  const auto tail = [&](unsigned shift) { put(0x80 | ((point >> shift) & 0x3F)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | (point >> 6));
    tail(0);
  } else if (point < 0x10000) {
    put(0xE0 | (point >> 12));
    tail(6);
    tail(0);
  } else {
    put(0xF0 | (point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

bool JsonTree::parse(std::string_view text) {
  text_ = text;
  at_ = 0;
  nodes_.clear();
  unescaped_.clear();
  if (!take_value(0)) return false;
  skip_space();
  return at_ == text_.size();
}

bool JsonTree::take(char byte) {
  if (at_ == text_.size() || text_[at_] != byte) return false;
  ++at_;
  return true;
}

void JsonTree::skip_space() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

bool JsonTree::take_value(std::size_t depth) {
  skip_space();
  if (at_ == text_.size()) return false;
  switch (text_[at_]) {
    case '{':
      return take_container(JsonKind::object, depth + 1);
    case '[':
      return take_container(JsonKind::array, depth + 1);
    case '"':
      return take_string();
    case 'n':
      return take_word("null", JsonKind::null);
    case 't':
      return take_word("true", JsonKind::true_);
    case 'f':
      return take_word("false", JsonKind::false_);
    default:
      return take_number();
  }
}

bool JsonTree::take_word(std::string_view word, JsonKind kind) {
  if (!text_.substr(at_).starts_with(word)) return false;
  at_ += word.size();
  add(kind, {});
  return true;
}

bool JsonTree::take_container(JsonKind kind, std::size_t depth) {
  if (depth > kJsonMostDepth) return false;
  ++at_;
  const std::size_t node = nodes_.size();
  add(kind, {});
  if (!take_items(kind == JsonKind::object ? '}' : ']', depth)) return false;
  nodes_[node].next = nodes_.size();
  return true;
}

bool JsonTree::take_items(char close, std::size_t depth) {
  skip_space();
  if (take(close)) return true;
  do {
    if (close == '}') {
      skip_space();
      if (!take_string()) return false;
      skip_space();
      if (!take(':')) return false;
    }
    if (!take_value(depth)) return false;
    skip_space();
  } while (take(','));
  return take(close);
}

bool JsonTree::take_string() {
  if (!take('"')) return false;
  const std::size_t begin = at_;
  const std::size_t unescaped_begin = unescaped_.size();
  bool escaped = false;
  while (at_ < text_.size()) {
    const char byte = text_[at_];
    if (byte == '"') {
      const std::string_view plain = text_.substr(begin, at_ - begin);
      add(JsonKind::string, escaped ? std::string_view(unescaped_).substr(unescaped_begin) : plain);
      ++at_;
      return true;
    }
    if (byte == '\\') {
      if (!escaped) {
        escaped = true;
        // Text never grows when it is unescaped, so this is room for every string to come.
        unescaped_.reserve(text_.size());
        unescaped_ += text_.substr(begin, at_ - begin);
      }
      if (!take_escape()) return false;
      continue;
    }
    std::size_t bytes = plain_bytes(text_.substr(at_));
    if (bytes == 0 && static_cast<unsigned char>(byte) >= 0x80)
      bytes = sequence_bytes(text_.substr(at_));
    if (bytes == 0) return false;
    if (escaped) unescaped_ += text_.substr(at_, bytes);
    at_ += bytes;
  }
  return false;
}

bool JsonTree::take_escape() {
  static constexpr std::string_view kEscapes = "\"\\/bfnrt";
  static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (++at_ == text_.size()) return false;
  const char escape = text_[at_++];
  if (escape == 'u') return take_code_point();
  const std::size_t which = kEscapes.find(escape);
  if (which == std::string_view::npos) return false;
  unescaped_ += kMeanings[which];
  return true;
}

bool JsonTree::take_code_unit(std::uint32_t& unit) {
  if (text_.size() - at_ < 4) return false;
  unit = 0;
  for (const std::size_t end = at_ + 4; at_ < end; ++at_) {
    const char byte = text_[at_];
    const char letter = static_cast<char>(byte | 0x20);
    if (is_digit(byte)) {
      unit = unit * 16 + static_cast<std::uint32_t>(byte - '0');
    } else if (letter >= 'a' && letter <= 'f') {
      unit = unit * 16 + static_cast<std::uint32_t>(letter - 'a' + 10);
    } else {
      return false;
    }
  }
  return true;
}

// Half a surrogate pair has no UTF-8: malformed, as in simdjson.
bool JsonTree::take_code_point() {
  std::uint32_t point = 0;
  if (!take_code_unit(point)) return false;
  if (point >= 0xDC00 && point <= 0xDFFF) return false;
  if (point >= 0xD800 && point <= 0xDBFF) {
    std::uint32_t low = 0;
    if (!take('\\') || !take('u') || !take_code_unit(low)) return false;
    if (low < 0xDC00 || low > 0xDFFF) return false;
    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(point, unescaped_);
  return true;
}

bool JsonTree::take_digits() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  return at_ > begin;
}

bool JsonTree::take_number() {
  const std::size_t begin = at_;
  take('-');
  if (!take('0') && !take_digits()) return false;
  if (take('.') && !take_digits()) return false;
  if (take('e') || take('E')) {
    if (!take('+')) take('-');
    if (!take_digits()) return false;
  }
  add(JsonKind::number, text_.substr(begin, at_ - begin));
  return true;
}

std::optional<JsonTree::Value> JsonTree::Value::member(std::string_view name) const {
  for (std::size_t at = at_ + 1; at < node().next; at = tree_->nodes_[at + 1].next)
    if (tree_->nodes_[at].text == name) return Value(*tree_, at + 1);
  return {};
}

std::optional<JsonTree::Value> JsonTree::Value::item(std::size_t index) const {
  for (std::size_t at = at_ + 1; at < node().next; at = tree_->nodes_[at].next)
    if (index-- == 0) return Value(*tree_, at);
  return {};
}

}  // namespace sluice
