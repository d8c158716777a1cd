#include "sluice/stream/json_glance.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace sluice {

struct GlanceMarks {
  static constexpr std::size_t kMostWords = mark_words(kGlanceMostBytes);
  const char* text;
  std::size_t size;
  std::array<std::uint64_t, kMostWords + 2> quotes;  // and zeros, where every search ends
  std::array<std::uint64_t, kMostWords + 2> digits;
};

namespace {

constexpr unsigned kMostDepth = 32;  // bounds the recursion
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

// Where the value of another kind than string or number ends that begins at `at`.
std::size_t end_of_other(const GlanceMarks& marks, std::size_t at, unsigned depth) noexcept;

// A place in the text that moves on as tokens are taken. A byte behind the end may be taken for a
// token, but never a quote or a digit, since there are no marks: at most three bytes behind it
// something is missed, and who takes the last token asks whether the end is where it should be. All
// is inlined, so that the place stays in registers.
class Glance {
 public:
  [[gnu::always_inline]] Glance(const GlanceMarks& marks, std::size_t at) noexcept
      : marks_(marks), text_(marks.text), size_(marks.size) {
    move_to(at);
  }

  std::size_t at() const noexcept { return at_; }
  char peek() const noexcept { return text_[at_]; }

  [[gnu::always_inline]] void skip_blanks() noexcept {
    while (at_ < size_ && text_[at_] == ' ') ++at_;
  }

  [[gnu::always_inline]] bool take(char byte) noexcept {
    if (text_[at_] != byte) [[unlikely]] {
      skip_blanks();
      if (text_[at_] != byte) return false;
    }
    ++at_;
    return true;
  }

  // A string without its quotes.
  [[gnu::always_inline]] bool take_string(std::string_view& string) noexcept {
    if (!take('"')) return false;
    // Quotes are met in their order, each once: the next one is this.
    next_quote();
    const std::size_t begin = at_, end = next_quote();
    if (end >= size_) return false;
    string = {text_ + begin, end - begin};
    at_ = end + 1;
    return true;
  }

  // A value as it is written.
  [[gnu::always_inline]] bool take_value(std::string_view& value, unsigned depth) noexcept {
    if (text_[at_] == ' ') [[unlikely]]
      skip_blanks();
    const std::size_t begin = at_;
    std::string_view string;
    const bool taken = text_[at_] == '"' ? take_string(string) : take_bare(depth);
    value = {text_ + begin, at_ - begin};
    return taken;
  }

  // Any but a string.
  [[gnu::always_inline]] bool take_bare(unsigned depth) noexcept {
    if (text_[at_] <= '9') return take_number();
    const std::size_t end = end_of_other(marks_, at_, depth);
    if (end == kNowhere) return false;
    move_to(end);
    return true;
  }

 private:
  [[gnu::always_inline]] void move_to(std::size_t at) noexcept {
    at_ = at;
    word_ = at / kMarkBytes;
    quotes_left_ = marks_.quotes[word_] & (~std::uint64_t{0} << at % kMarkBytes);
  }

  // size_ or more when there is none.
  [[gnu::always_inline]] std::size_t next_quote() noexcept {
    while (quotes_left_ == 0) [[unlikely]] {
        if (++word_ * kMarkBytes >= size_) return size_;
        quotes_left_ = marks_.quotes[word_];
      }
    const auto bit = static_cast<std::size_t>(std::countr_zero(quotes_left_));
    quotes_left_ &= quotes_left_ - 1;
    return word_ * kMarkBytes + bit;
  }

  [[gnu::always_inline]] bool take_number() noexcept {
    at_ += text_[at_] == '-';
    const bool zero = text_[at_] == '0';
    const std::size_t whole = take_digits();
    if (whole == 0 || (zero && whole > 1)) return false;
    if (text_[at_] == '.') {
      ++at_;
      if (take_digits() == 0) return false;
    }
    if ((text_[at_] | 0x20) != 'e') [[likely]]
      return true;
    ++at_;
    at_ += text_[at_] == '+' || text_[at_] == '-';
    return take_digits() != 0;
  }

  // How many there were.
  [[gnu::always_inline]] std::size_t take_digits() noexcept {
    const std::size_t begin = at_;
    std::size_t room, run;
    do {
      const std::size_t bit = at_ % kMarkBytes;
      room = kMarkBytes - bit;
      run = static_cast<std::size_t>(std::countr_one(marks_.digits[at_ / kMarkBytes] >> bit));
      at_ += run;
    } while (run == room);
    return at_ - begin;
  }

  const GlanceMarks& marks_;
  const char* text_;
  std::size_t size_;
  std::size_t at_ = 0;
  std::size_t word_ = 0;           // of the quotes that are being met
  std::uint64_t quotes_left_ = 0;  // in that word
};

// The quotes, one after the other.
class Quotes {
 public:
  explicit Quotes(const GlanceMarks& marks) noexcept : marks_(marks), left_(marks.quotes[0]) {}
  // The size or more when there is none.
  [[gnu::always_inline]] std::size_t next() noexcept {
    while (left_ == 0) [[unlikely]] {
        if (++word_ * kMarkBytes >= marks_.size) return marks_.size;
        left_ = marks_.quotes[word_];
      }
    const auto bit = static_cast<std::size_t>(std::countr_zero(left_));
    left_ &= left_ - 1;
    return word_ * kMarkBytes + bit;
  }

 private:
  const GlanceMarks& marks_;
  std::size_t word_ = 0;
  std::uint64_t left_;
};

std::size_t end_of_object(const GlanceMarks& marks, std::size_t at, unsigned depth) noexcept {
  Glance glance(marks, at + 1);
  if (glance.take('}')) return glance.at();
  std::string_view name, value;
  do {
    if (!glance.take_string(name) || !glance.take(':') || !glance.take_value(value, depth))
      return kNowhere;
  } while (glance.take(','));
  return glance.take('}') ? glance.at() : kNowhere;
}

std::size_t end_of_array(const GlanceMarks& marks, std::size_t at, unsigned depth) noexcept {
  Glance glance(marks, at + 1);
  if (glance.take(']')) return glance.at();
  std::string_view item;
  do {
    if (!glance.take_value(item, depth)) return kNowhere;
  } while (glance.take(','));
  return glance.take(']') ? glance.at() : kNowhere;
}

[[gnu::noinline]] std::size_t end_of_other(const GlanceMarks& marks, std::size_t at,
                                           unsigned depth) noexcept {
  if (at >= marks.size) return kNowhere;
  const std::string_view rest(marks.text + at, marks.size - at);
  const auto after = [&](std::string_view word) {
    return rest.starts_with(word) ? at + word.size() : kNowhere;
  };
  switch (rest.front()) {
    case '{':
      return depth < kMostDepth ? end_of_object(marks, at, depth + 1) : kNowhere;
    case '[':
      return depth < kMostDepth ? end_of_array(marks, at, depth + 1) : kNowhere;
    case 't':
      return after("true");
    case 'f':
      return after("false");
    case 'n':
      return after("null");
    default:
      return kNowhere;
  }
}

// False when the text holds what is not for us.
[[gnu::always_inline]] inline bool mark_text(MarkJson mark, std::string_view text,
                                             GlanceMarks& marks) noexcept {
  marks.text = text.data();
  marks.size = text.size();
  const std::size_t words = mark_words(text.size());
  const JsonBytes bytes = mark(text.data(), text.size(), marks.quotes.data(), marks.digits.data());
  if (bytes.odd) return false;
  if (bytes.high && !simdjson::validate_utf8(text.data(), text.size())) return false;
  marks.quotes[words] = marks.quotes[words + 1] = 0;
  marks.digits[words] = marks.digits[words + 1] = 0;
  return true;
}

}  // namespace

ShortText::ShortText(std::string_view text) noexcept : size_(std::min(text.size(), kMostBytes)) {
  std::memcpy(words_.data(), text.data(), size_);
  std::memset(masks_.data(), 0xFF, size_);
}

[[gnu::always_inline]] inline bool ShortText::begins(const char* bytes) const noexcept {
  const auto differs = [&](std::size_t word) {
    std::uint64_t there;
    std::memcpy(&there, bytes + 8 * word, sizeof there);
    return (there ^ words_[word]) & masks_[word];
  };
  if ((differs(0) | differs(1)) != 0) return false;
  return size_ <= kMostBytes / 2 || (differs(2) | differs(3)) == 0;
}

JsonGlance::JsonGlance(std::vector<std::string> names)
    : names_(std::move(names)), mark_(json_marker()) {
  std::vector<std::string> sorted = names_;
  std::ranges::sort(sorted);
  unique_ = std::ranges::adjacent_find(sorted) == sorted.end();
}

bool JsonGlance::read(std::string_view text, std::span<std::string_view> values) noexcept {
  // A line's end of two bytes leaves its first with us.
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.empty() || text.size() > kGlanceMostBytes) return false;
  GlanceMarks marks;
  if (!mark_text(mark_, text, marks)) return false;
  for (std::string_view& value : values) value = {};
  if (members_ != 0 && follow(marks, values)) return true;
  return walk(marks, values);
}

// By the shape of the object before. Where things are follows from the quotes alone, so that
// nothing waits for the end of a number: that must only be where the next member begins. As in
// Glance, bytes behind the end may be taken for those that are looked for, but never a quote or a
// digit, and the last look is at the end.
bool JsonGlance::follow(const GlanceMarks& marks,
                        std::span<std::string_view> values) const noexcept {
  const char* const text = marks.text;
  Quotes quotes(marks);
  std::size_t at = 0;
  for (const Member& member : std::span(shape_).first(members_)) {
    const std::size_t begin = quotes.next() - member.quote;
    if (begin != at || !member.before.begins(text + begin)) return false;
    const std::size_t from = begin + member.before.size();
    quotes.next();
    std::string_view value;
    if (member.string) {
      quotes.next();
      const std::size_t end = quotes.next();
      if (end >= marks.size) return false;
      value = {text + from - 1, end - from + 2};
      at = end + 1;
    } else {
      Glance glance(marks, from);
      if (!glance.take_bare(kMostDepth)) return false;
      at = glance.at();
      value = {text + from, at - from};
    }
    if (member.wanted != kUnwanted) values[member.wanted] = value;
  }
  return tail_.begins(text + at) && at + tail_.size() == marks.size;
}

bool JsonGlance::walk(const GlanceMarks& marks, std::span<std::string_view> values) noexcept {
  for (std::string_view& value : values) value = {};
  learning_ = unique_;
  members_ = 0;
  const bool whole = walk_members(marks, values);
  if (!whole || !learning_) members_ = 0;
  return whole;
}

bool JsonGlance::walk_members(const GlanceMarks& marks,
                              std::span<std::string_view> values) noexcept {
  Glance glance(marks, 0);
  if (!glance.take('{')) return false;
  const char* before = marks.text;
  if (!glance.take('}')) {
    do {
      std::string_view name, value;
      if (!glance.take_string(name) || !glance.take(':') || !glance.take_value(value, 1))
        return false;
      std::size_t wanted = kUnwanted;
      for (std::size_t i = 0; i < names_.size(); ++i)
        if (names_[i] == name && values[i].empty()) values[wanted = i] = value;
      learn({before, static_cast<std::size_t>(value.data() - before)}, value, wanted);
      before = value.data() + value.size();
    } while (glance.take(','));
    if (!glance.take('}')) return false;
  }
  glance.skip_blanks();
  const std::string_view tail(before, static_cast<std::size_t>(marks.text + marks.size - before));
  learning_ = learning_ && tail.size() <= ShortText::kMostBytes;
  tail_ = ShortText(tail);
  return glance.at() == marks.size;
}

// One more member of the shape, unless that cannot be followed.
void JsonGlance::learn(std::string_view before, std::string_view value,
                       std::size_t wanted) noexcept {
  const bool string = value.front() == '"', nested = value.front() == '{' || value.front() == '[';
  if (string) before = {before.data(), before.size() + 1};
  if (members_ == kMostMembers || before.size() > ShortText::kMostBytes || nested)
    learning_ = false;
  if (learning_) shape_[members_++] = {ShortText(before), before.find('"'), string, wanted};
}

}  // namespace sluice
