// The words of a command, read one after another. Every error is a BadParameters that names the word and
// what would be right.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::server {

class Words {
 public:
  // `first` is the number of the first word in the whole command: host.hpp opens keys by it.
  explicit Words(std::span<const std::string_view> words, std::size_t first = 0)
      : words_(words), first_(first) {}

  bool empty() const noexcept { return words_.empty(); }
  std::size_t size() const noexcept { return words_.size(); }
  // The number of the next word in the whole command.
  std::size_t number() const noexcept { return first_; }
  // The next word, which stays. There must be one.
  std::string_view peek() const noexcept { return words_.front(); }
  // The next word; `what` names it in the error if there is none: "the value of WINDOW".
  std::string_view next(std::string_view what);
  // Skips the next word if it is this keyword, in any case.
  bool take(std::string_view keyword);
  // All words that are left.
  std::span<const std::string_view> rest();
  // Throws unless all words were read.
  void finish() const;

 private:
  std::span<const std::string_view> words_;
  std::size_t first_;
};

// ASCII letters are equal in either case.
bool same_word(std::string_view a, std::string_view b) noexcept;
// Whether it is one or more decimal digits, and nothing else.
bool is_digits(std::string_view word) noexcept;
// In small letters.
std::string in_small(std::string_view word);

// A whole number in decimal digits, `least` to `most`. `field` is what the error names.
std::int64_t whole_number(std::string_view field, std::string_view word, std::int64_t least,
                          std::int64_t most);

// For messages: printable, cut after some 60 bytes, in quotes.
std::string quoted(std::string_view word);

}  // namespace sluice::server
