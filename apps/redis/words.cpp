#include "apps/redis/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "sluice/base/error.hpp"

namespace sluice::server {
namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_digits(std::string_view word) noexcept {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

std::string in_small(std::string_view word) {
  std::string small(word);
  std::ranges::transform(small, small.begin(), lower);
  return small;
}

std::string quoted(std::string_view word) {
  constexpr std::size_t kMost = 60;
  std::string text = "'";
  for (const char c : word.substr(0, kMost)) {
    if (c >= ' ' && c <= '~')
      text += c;
    else
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text + (word.size() > kMost ? "...'" : "'");
}

std::string_view Words::next(std::string_view what) {
  if (words_.empty()) throw BadParameters(fmt::format("{} is missing", what));
  const std::string_view word = words_.front();
  words_ = words_.subspan(1);
  ++first_;
  return word;
}

bool Words::take(std::string_view keyword) {
  if (words_.empty() || !same_word(words_.front(), keyword)) return false;
  words_ = words_.subspan(1);
  ++first_;
  return true;
}

std::span<const std::string_view> Words::rest() {
  const auto all = words_;
  first_ += all.size();
  words_ = {};
  return all;
}

void Words::finish() const {
  if (!words_.empty())
    throw BadParameters(fmt::format("{} is not expected here", quoted(words_.front())));
}

std::int64_t whole_number(std::string_view field, std::string_view word, std::int64_t least,
                          std::int64_t most) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < least || number > most)
    throw BadParameters(fmt::format("{} must be a whole number from {} to {}, not {}", field, least,
                                    most, quoted(word)));
  return number;
}

}  // namespace sluice::server
