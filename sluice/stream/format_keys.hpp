// One key extractor per format; make_key_extractor chooses. Only stream/ includes this.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/stream/key_extractor.hpp"
#include "sluice/stream/record.hpp"

namespace sluice {

std::unique_ptr<KeyExtractor> make_line_keys(const Format& format,
                                             std::span<const std::string> keys);
// `apart`: the key of a whole record has its fields as parts, with their lengths.
std::unique_ptr<KeyExtractor> make_csv_keys(const Format& format, std::span<const std::string> keys,
                                            bool apart);
std::unique_ptr<KeyExtractor> make_json_keys(std::span<const std::string> keys);
std::unique_ptr<KeyExtractor> make_regex_keys(const std::string& expression);
std::unique_ptr<KeyExtractor> make_regex_times(const std::string& expression);
std::unique_ptr<KeyExtractor> make_byte_keys(std::span<const std::string> ranges);
// Keys of `inner`, with their parts changed as `style` says.
enum class KeyFormKind : std::uint8_t { plain, parts, json };
std::unique_ptr<KeyExtractor> make_folded_keys(std::unique_ptr<KeyExtractor> inner,
                                               KeyFormKind form, const KeyStyle& style);
std::unique_ptr<KeyExtractor> make_unless_empty_keys(std::unique_ptr<KeyExtractor> inner,
                                                     KeyFormKind form);

// A field number as people write it, counted from 1, turned into an index from 0; empty if it is
// not a number. It is limited, since fields up to the highest one are kept for each record.
inline constexpr std::size_t kMostFields = 1'000'000;
std::optional<std::size_t> parse_field_number(std::string_view text);

// How a message names a part of a key: "'a,b': 'b'".
std::string part_of_key(std::string_view key, std::string_view part);

std::vector<std::string_view> split_at_commas(std::string_view text);

// The beginning of a text that may be long, in quotes, for messages: 'GET /index…'. Whoever shows it
// must escape control characters.
std::string quoted(std::string_view text);

}  // namespace sluice
