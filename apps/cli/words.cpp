#include "words.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "sluice/base/fields.hpp"

namespace sluice::cli {
namespace {

using namespace std::string_view_literals;

// Fields whose flags have their names, with dashes.
constexpr std::array kSame{"alive_fpr"sv,
                           "binary"sv,
                           "cost_duplicate_field"sv,
                           "cost_lost_field"sv,
                           "delimiter"sv,
                           "distinct"sv,
                           "duplicates"sv,
                           "event_time"sv,
                           "expect"sv,
                           "failed"sv,
                           "filter"sv,
                           "fnr"sv,
                           "fpr"sv,
                           "inner"sv,
                           "key"sv,
                           "key_bytes"sv,
                           "key_regex"sv,
                           "length"sv,
                           "lines"sv,
                           "malformed"sv,
                           "max_ahead"sv,
                           "max_record"sv,
                           "memory"sv,
                           "no_header"sv,
                           "npws"sv,
                           "prior_field"sv,
                           "rate"sv,
                           "records"sv,
                           "rule"sv,
                           "seed"sv,
                           "sites"sv,
                           "skew"sv,
                           "slack"sv,
                           "slicing"sv,
                           "state_previous"sv,
                           "strict"sv,
                           "time_bytes"sv,
                           "time_format"sv,
                           "time_zone"sv,
                           "tolerate"sv,
                           "untrusted_keys"sv,
                           "users"sv,
                           "window"sv,
                           "year"sv};

// And the others.
constexpr std::array kOther{std::pair("keys"sv, "--expect"sv)};

std::optional<std::string> flag_of(std::string_view field) {
  for (const auto& [name, flag] : kOther)
    if (name == field) return std::string(flag);
  if (std::ranges::find(kSame, field) == kSame.end()) return {};
  std::string flag = "--";
  flag += field;
  std::ranges::replace(flag, '_', '-');
  return flag;
}

}  // namespace

std::string in_flags(std::string_view message) {
  return in_words_of(message, flag_of);
}

}  // namespace sluice::cli
