#include "sluice/base/fields.hpp"

#include <algorithm>

namespace sluice {
namespace {

constexpr char kMark = '`';

bool is_field(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

std::string in_words_of(std::string_view message, const FieldWords& words) {
  std::string said;
  while (true) {
    const std::size_t begin = message.find(kMark);
    if (begin == std::string_view::npos) return said.append(message);
    said.append(message.substr(0, begin));
    message.remove_prefix(begin);
    const std::size_t end = message.find(kMark, 1);
    const auto field = end == std::string_view::npos ? "" : message.substr(1, end - 1);
    const auto word = is_field(field) ? words(field) : std::nullopt;
    // A mark that belongs to something else stays, and the next one may begin a field.
    said.append(word ? *word : std::string(1, kMark));
    message.remove_prefix(word ? end + 1 : 1);
  }
}

}  // namespace sluice
