#include "sluice/stream/key_extractor.hpp"

#include <fmt/format.h>

#include <charconv>

#include "sluice/stream/format_keys.hpp"

namespace sluice {

namespace {

std::unique_ptr<KeyExtractor> make_field_keys(const Format& format,
                                              std::span<const std::string> keys, bool apart) {
  switch (format.kind) {
    case Format::Kind::csv:
    case Format::Kind::tsv:
      return make_csv_keys(format, keys, apart);
    case Format::Kind::json:
      return make_json_keys(keys);
    case Format::Kind::lines:
    case Format::Kind::nul:
      break;
  }
  return make_line_keys(format, keys);
}

bool is_table(const Format& format) {
  return format.kind == Format::Kind::csv || format.kind == Format::Kind::tsv;
}

void need_lines(const Format& format, const std::string& key) {
  if (is_table(format) || format.kind == Format::Kind::json)
    throw BadKey(
        fmt::format("'{}' is for lines and NUL records: columns of CSV and TSV have names "
                    "and numbers, and values of JSON have pointers (`key`)",
                    key));
}

}  // namespace

std::unique_ptr<KeyExtractor> make_key_extractor(const Format& format,
                                                 std::span<const std::string> keys,
                                                 const KeyStyle& style) {
  using By = KeyStyle::By;
  const bool changes = style.ignore_case || style.trim;
  if (style.by != By::fields) need_lines(format, keys.front());
  std::unique_ptr<KeyExtractor> extractor;
  switch (style.by) {
    case By::time_group:
      return make_regex_times(keys.front());
    case By::regex:
      extractor = make_regex_keys(keys.front());
      break;
    case By::bytes:
      extractor = make_byte_keys(keys);
      break;
    case By::fields:
      extractor = make_field_keys(format, keys, changes);
      break;
  }
  const KeyFormKind form = format.kind == Format::Kind::json             ? KeyFormKind::json
                           : is_table(format) && keys.empty() && changes ? KeyFormKind::parts
                                                                         : KeyFormKind::plain;
  if (changes) extractor = make_folded_keys(std::move(extractor), form, style);
  if (!style.unless_empty || keys.empty()) return extractor;
  return make_unless_empty_keys(std::move(extractor), form);
}

std::string part_of_key(std::string_view key, std::string_view part) {
  return key == part ? fmt::format("'{}'", part) : fmt::format("'{}': '{}'", key, part);
}

std::optional<std::size_t> parse_field_number(std::string_view text) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number == 0 || number > kMostFields) return {};
  return number - 1;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kMostBytes = 60;
  if (text.size() <= kMostBytes) return fmt::format("'{}'", text);
  std::size_t end = kMostBytes;
  // Not within a UTF-8 character, which has at most three more bytes.
  while (end > kMostBytes - 3 && (text[end] & 0xC0) == 0x80) --end;
  return fmt::format("'{}…'", text.substr(0, end));
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace sluice
