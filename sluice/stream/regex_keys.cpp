// Keys of lines and nul records by a regular expression: its groups, or the whole match.
//
// RE2, because its time is linear in the length of a record, whatever the expression and the record
// are. It works on bytes (RE2's Latin-1): logs hold bytes that are not UTF-8, and in UTF-8 mode such a
// byte is matched by nothing, not even by a dot.
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <optional>

#include "sluice/stream/format_keys.hpp"
#include "sluice/stream/key_form.hpp"

namespace sluice {
namespace {

constexpr const char* kTime = "time";

// For the program of an expression and the states of its automaton, of each thread: little compared
// with what --memory reserves. Room for some 16,000 instructions.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;

[[noreturn]] void refuse(const std::string& expression, const std::string& why) {
  throw BadKey(fmt::format("{}: {}", quoted(expression), why));
}

// Bytes outside ASCII where RE2 would take one of them for a character.
void check_bytes(const std::string& expression) {
  const auto is_wide = [](char byte) { return static_cast<unsigned char>(byte) >= 0x80; };
  bool in_class = false;
  std::size_t class_begin = 0;
  for (std::size_t at = 0; at < expression.size(); ++at) {
    const char byte = expression[at];
    if (byte == '\\' && at + 1 < expression.size()) {
      ++at;
      if (expression[at] == 'p' || expression[at] == 'P')
        refuse(expression,
               fmt::format("\\{} at byte {} is a class of Unicode characters, and expressions work "
                           "on bytes",
                           expression[at], at));
    } else if (in_class) {
      const bool first =
          at == class_begin + 1 || (at == class_begin + 2 && expression[at - 1] == '^');
      if (byte == ']' && !first) in_class = false;
      if (is_wide(byte))
        refuse(expression,
               fmt::format("at byte {}, a class in [] has a character outside ASCII, and "
                           "expressions work on bytes: write (?:a|b) instead of [ab]",
                           at + 1));
    } else if (byte == '[') {
      in_class = true;
      class_begin = at;
    } else if (is_wide(byte) && at + 1 < expression.size() &&
               std::string_view("*+?{").find(expression[at + 1]) != std::string_view::npos) {
      refuse(expression,
             fmt::format("at byte {}, '{}' follows a character outside ASCII, and expressions work "
                         "on bytes: put the character in (?: )",
                         at + 2, expression[at + 1]));
    }
  }
}

// What RE2 leaves out, in the words of those who miss it.
std::string hint(const RE2& re) {
  const std::string& part = re.error_arg();
  if (re.error_code() == RE2::ErrorBadEscape && part.size() >= 2 && part[1] >= '1' &&
      part[1] <= '9')
    return "; backreferences are not supported (RE2)";
  if (re.error_code() == RE2::ErrorRepeatSize) return "; repetitions multiply to at most 1000";
  for (const auto& [begin, name] :
       {std::pair("(?=", "lookahead"), std::pair("(?!", "lookahead"),
        std::pair("(?<=", "lookbehind"), std::pair("(?<!", "lookbehind"),
        std::pair("(?>", "an atomic group")})
    if (part.starts_with(begin)) return fmt::format("; {} is not supported (RE2)", name);
  // RE2 reads up to the first character that it does not know.
  if (part.starts_with("(?<")) {
    const std::size_t at = re.pattern().find(part);
    const std::string_view rest = std::string_view(re.pattern()).substr(at);
    if (rest.starts_with("(?<=") || rest.starts_with("(?<!"))
      return "; lookbehind is not supported (RE2)";
    return "; write a named group as (?P<name>…)";
  }
  return "";
}

std::unique_ptr<RE2> compile(const std::string& expression) {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  options.set_max_mem(kMostBytes);
  auto re = std::make_unique<RE2>(expression, options);
  if (re->error_code() == RE2::ErrorPatternTooLarge)
    refuse(expression, fmt::format("the expression is too large: it needs more than {} MiB; repeat "
                                   "fewer times",
                                   kMostBytes >> 20));
  // RE2 copies the places of all groups for each character.
  constexpr int kMostGroups = 100;
  if (re->ok() && re->NumberOfCapturingGroups() > kMostGroups)
    refuse(expression,
           fmt::format("it has {} groups: give at most {}, and write the others as (?:…)",
                       re->NumberOfCapturingGroups(), kMostGroups));
  if (!re->ok() && re->error_code() == RE2::ErrorMissingParen)
    refuse(
        expression,
        R"(missing ) after a group that begins with (: close it, or write \( for the character ()");
  if (!re->ok()) {
    const std::size_t at = expression.find(re->error_arg());
    const bool placed =
        at != std::string::npos && !re->error_arg().empty() && re->error_arg() != expression;
    std::string why = re->error();
    // It was quoted already.
    const std::string again = ": " + expression;
    if (why.ends_with(again)) why.resize(why.size() - again.size());
    refuse(expression, why + (placed ? fmt::format(" (at byte {})", at + 1) : "") + hint(*re));
  }
  check_bytes(expression);
  return re;
}

std::optional<std::size_t> time_group(const RE2& re) {
  const auto& names = re.NamedCapturingGroups();
  const auto found = names.find(kTime);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found->second);
}

std::string_view view(const re2::StringPiece& piece) {
  return {piece.data(), piece.size()};
}

// What the key and the time of a record have in common: the match.
class Matcher {
 public:
  explicit Matcher(const std::string& expression)
      : re_(compile(expression)), time_(time_group(*re_)) {
    const auto groups = static_cast<std::size_t>(re_->NumberOfCapturingGroups());
    for (std::size_t group = 1; group <= groups; ++group)
      if (group != time_) parts_.push_back(group);
    if (parts_.empty()) parts_.push_back(0);
    groups_.resize(groups + 1);
  }

  bool match(std::string_view text) {
    return re_->Match({text.data(), text.size()}, 0, text.size(), RE2::UNANCHORED, groups_.data(),
                      static_cast<int>(groups_.size()));
  }
  // Of the last match. Without data if the group took no part in it.
  std::string_view group(std::size_t number) const { return view(groups_[number]); }
  std::string_view time() const { return group(*time_); }

  std::span<const std::size_t> parts() const { return parts_; }
  bool has_time() const { return time_.has_value(); }

 private:
  std::unique_ptr<RE2> re_;
  std::optional<std::size_t> time_;
  std::vector<std::size_t> parts_;  // the groups of the key
  std::vector<re2::StringPiece> groups_;
};

class RegexKeys final : public KeyExtractor {
 public:
  explicit RegexKeys(const std::string& expression) : matcher_(expression), times_(kBatchRecords) {
    if (matcher_.has_time() && matcher_.parts()[0] == 0)
      refuse(expression,
             "the group 'time' is not part of the key, and there is no other group: put what makes "
             "the key in ( )");
    check_empty(expression);
  }

  std::size_t extract(std::span<const Record> records, std::span<std::string_view> keys,
                      std::span<KeyStatus> status) override {
    buffer_.clear();
    std::size_t keyed = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      keys[i] = times_[i] = {};
      status[i] = KeyStatus::missing;
      if (!matcher_.match(records[i].text()) || !take(i, keys[i])) continue;
      if (matcher_.has_time()) times_[i] = matcher_.time();
      status[i] = KeyStatus::keyed;
      ++keyed;
    }
    buffer_.place(keys);
    return keyed;
  }

  std::span<const std::string_view> times() const override { return times_; }
  std::size_t parts() const override { return matcher_.parts().size(); }
  std::string name() const override { return "the expression"; }

  std::string why_not(const Record& record) override {
    if (!matcher_.match(record.text()))
      return fmt::format("the expression does not match {}", quoted(record.text()));
    std::string_view key;
    KeyStatus status{};
    if (extract({&record, 1}, {&key, 1}, {&status, 1}) == 1) return "";
    return fmt::format("no group took part in the match in {}", quoted(record.text()));
  }

 private:
  // The key of the match; false if none of its groups took part in it.
  bool take(std::size_t record, std::string_view& key) {
    const auto parts = matcher_.parts();
    if (parts.size() == 1) {
      key = matcher_.group(parts[0]);
      return key.data() != nullptr;
    }
    std::size_t most = 0;
    bool any = false;
    for (const std::size_t part : parts) {
      const std::string_view text = matcher_.group(part);
      any |= text.data() != nullptr;
      most += most_part_bytes(text.size());
    }
    if (!any) return false;
    char* to = buffer_.room(most);
    for (const std::size_t part : parts) {
      const std::string_view text = matcher_.group(part);
      to = text.data() == nullptr ? std::ranges::copy(kAbsentPart, to).out : put_part(text, to);
    }
    buffer_.keep(record, to);
    return true;
  }

  // An expression that matches nothing at the start of any record, such as \d*, would give most
  // records the same empty key, and all but one of them would be lost.
  void check_empty(const std::string& expression) {
    const char bytes[1 + kPaddingBytes] = {1};
    const Record record{bytes, 1, 1};
    std::string_view key;
    KeyStatus status{};
    if (extract({&record, 1}, {&key, 1}, {&status, 1}) == 0) return;
    for (const std::size_t part : matcher_.parts())
      if (!matcher_.group(part).empty()) return;
    if (!matcher_.group(0).empty()) return;
    refuse(expression,
           "it matches no bytes at the start of any record, so most records would have the same "
           "empty key: use + instead of *, or begin with what stands before the key");
  }

  Matcher matcher_;
  std::vector<std::string_view> times_;
  KeyBuffer buffer_;
};

class RegexTimes final : public KeyExtractor {
 public:
  explicit RegexTimes(const std::string& expression) : matcher_(expression) {
    if (!matcher_.has_time()) refuse(expression, "there is no group (?P<time>…)");
  }

  std::size_t extract(std::span<const Record> records, std::span<std::string_view> keys,
                      std::span<KeyStatus> status) override {
    std::size_t keyed = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      keys[i] = {};
      if (matcher_.match(records[i].text())) keys[i] = matcher_.time();
      status[i] = keys[i].data() == nullptr ? KeyStatus::missing : KeyStatus::keyed;
      keyed += status[i] == KeyStatus::keyed;
    }
    return keyed;
  }

  std::size_t parts() const override { return 1; }
  std::string name() const override { return "group 'time'"; }
  std::string why_not(const Record& record) override {
    if (matcher_.match(record.text()) && matcher_.time().data() != nullptr) return "";
    return fmt::format("group 'time' took no part in the match in {}", quoted(record.text()));
  }

 private:
  Matcher matcher_;
};

}  // namespace

std::unique_ptr<KeyExtractor> make_regex_keys(const std::string& expression) {
  return std::make_unique<RegexKeys>(expression);
}

std::unique_ptr<KeyExtractor> make_regex_times(const std::string& expression) {
  return std::make_unique<RegexTimes>(expression);
}

bool has_time_group(const std::string& expression) {
  return time_group(*compile(expression)).has_value();
}

}  // namespace sluice
