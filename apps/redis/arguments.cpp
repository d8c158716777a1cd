#include "apps/redis/arguments.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace sluice::server {
namespace {

using Type = Argument::Type;

constexpr bool is_capital(char c) noexcept {
  return c >= 'A' && c <= 'Z';
}

// Typed as it is: RATE, NOCREATE.
bool is_token(std::string_view word) noexcept {
  return !word.empty() && std::ranges::all_of(word, is_capital);
}

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& c : text)
    if (is_capital(c)) c = static_cast<char>(c - 'A' + 'a');
  return text;
}

Type type_of(std::string_view name) {
  constexpr std::array<std::string_view, 3> kKeys{"key", "source", "destination"};
  constexpr std::array<std::string_view, 5> kIntegers{"ms", "cursor", "seed", "capacity",
                                                      "expansion"};
  constexpr std::array<std::string_view, 4> kReals{"probability", "share", "error", "error_rate"};
  if (std::ranges::find(kKeys, name) != kKeys.end()) return Type::key;
  if (std::ranges::find(kIntegers, name) != kIntegers.end()) return Type::integer;
  if (std::ranges::find(kReals, name) != kReals.end()) return Type::real;
  return Type::text;
}

Argument named(std::string_view word) {
  if (is_token(word)) return {.name = lower(word), .token = std::string(word), .type = Type::token};
  return {.name = std::string(word), .type = type_of(word)};
}

// Two or more are one block.
Argument together(std::vector<Argument> parts) {
  assert(!parts.empty());
  if (parts.size() == 1) return std::move(parts.front());
  Argument block{
      .name = parts.front().token.empty() ? parts.front().name : lower(parts.front().token),
      .type = Type::block};
  block.parts = std::move(parts);
  return block;
}

Argument one_of(std::vector<Argument> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  Argument choice{.type = Type::one_of};
  for (const Argument& part : parts)
    choice.name +=
        (choice.name.empty() ? "" : "-") + (part.token.empty() ? part.name : lower(part.token));
  choice.parts = std::move(parts);
  return choice;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  // Up to the end, or to a bracket or bar that is not of it.
  std::vector<Argument> sequence() {
    std::vector<Argument> all;
    while (true) {
      skip_spaces();
      if (text_.empty() || text_.front() == ']' || text_.front() == '|') return all;
      if (text_.starts_with("...")) {
        text_.remove_prefix(3);
        repeated_ = true;
      } else if (text_.front() == '[') {
        bracket(all);
      } else {
        word(all);
      }
    }
  }

 private:
  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size())); }

  // A token and the value after it are one argument.
  void word(std::vector<Argument>& all) {
    const std::string_view whole = text_.substr(0, text_.find_first_of(" ]"));
    text_.remove_prefix(whole.size());
    std::vector<Argument> choices;
    for (std::string_view rest = whole; !rest.empty();) {
      const std::string_view part = rest.substr(0, rest.find('|'));
      choices.push_back(named(part));
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
    Argument read = one_of(std::move(choices));
    const bool valued = read.type != Type::token && !all.empty() && all.back().type == Type::token;
    if (valued) {
      read.token = all.back().token;
      if (read.type == Type::one_of) read.name = lower(read.token);
      all.back() = std::move(read);
    } else {
      all.push_back(std::move(read));
    }
  }

  void bracket(std::vector<Argument>& all) {
    std::vector<Argument> choices;
    repeated_ = false;
    do {
      text_.remove_prefix(1);  // the bracket or the bar
      choices.push_back(together(sequence()));
    } while (!text_.empty() && text_.front() == '|');
    assert(!text_.empty() && text_.front() == ']');
    text_.remove_prefix(std::min<std::size_t>(1, text_.size()));
    Argument read = one_of(std::move(choices));
    const bool repeats = std::exchange(repeated_, false);
    if (repeats && !all.empty() && read.name == all.back().name) {
      all.back().multiple = true;
      return;
    }
    read.optional = true;
    read.multiple = repeats;
    all.push_back(std::move(read));
  }

  std::string_view text_;
  bool repeated_ = false;  // "..." was read in this bracket
};

}  // namespace

std::vector<Argument> arguments_of(std::string_view usage) {
  return Reader(usage).sequence();
}

}  // namespace sluice::server
