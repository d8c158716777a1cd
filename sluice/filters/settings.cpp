#include "sluice/filters/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/share_range.hpp"

namespace sluice {

Settings Settings::parse(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view pair = text.substr(0, comma);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == pair.size())
      throw BadParameters(
          fmt::format("a filter's parameters are written name=value,…: '{}' is not", pair));
    settings.add(pair.substr(0, equals), pair.substr(equals + 1));
    if (comma + 1 == text.size())
      throw BadParameters(
          "a filter's parameters are written name=value,…: nothing follows the last comma");
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return settings;
}

void Settings::add(std::string_view name, std::string_view value) {
  const auto same = [&](const auto& pair) { return pair.first == name; };
  if (std::ranges::any_of(pairs_, same))
    throw BadParameters(fmt::format("filter parameter '{}' is given twice: give it once", name));
  pairs_.emplace_back(name, value);
}

void Settings::add(std::string_view name, std::uint64_t value) {
  add(name, std::string_view(std::to_string(value)));
}

void Settings::add(std::string_view name, double value) {
  add(name, std::string_view(fmt::format("{}", value)));
}

std::string Settings::text() const {
  std::string text;
  for (const auto& [name, value] : pairs_)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  return text;
}

SettingsReader::SettingsReader(std::string_view filter, const Settings& settings,
                               std::span<const ParameterInfo> known)
    : filter_(filter), settings_(settings) {
  for (const auto& [name, value] : settings.pairs()) {
    if (std::ranges::find(known, name, &ParameterInfo::name) != known.end()) continue;
    std::string names;
    for (const ParameterInfo& info : known)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
    throw BadParameters(fmt::format("filter '{}' has no parameter '{}': it has {}", filter, name,
                                    names.empty() ? "none" : names));
  }
}

const std::string* SettingsReader::find(std::string_view name) const {
  for (const auto& [each, value] : settings_.pairs())
    if (each == name) return &value;
  return nullptr;
}

void SettingsReader::refuse(std::string_view name, std::string_view value,
                            std::string_view expected) const {
  throw BadParameters(fmt::format("parameter '{}' of filter '{}' is '{}': it takes {}", name,
                                  filter_, value, expected));
}

std::optional<std::uint64_t> SettingsReader::count(std::string_view name, std::uint64_t least,
                                                   std::uint64_t most) const {
  const std::string* text = find(name);
  if (text == nullptr) return {};
  const std::uint64_t value = parse_count(fmt::format("{} of filter '{}'", name, filter_), *text);
  if (value < least || value > most)
    refuse(name, *text, fmt::format("{} to {}", format_count(least), format_count(most)));
  return value;
}

std::optional<std::uint64_t> SettingsReader::size(std::string_view name, std::uint64_t least,
                                                  std::uint64_t most) const {
  const std::string* text = find(name);
  if (text == nullptr) return {};
  const std::uint64_t value = parse_size(fmt::format("{} of filter '{}'", name, filter_), *text);
  if (value < least || value > most)
    refuse(name, *text, fmt::format("{} to {}", exact_size(least), exact_size(most)));
  return value;
}

std::optional<double> SettingsReader::probability(std::string_view name) const {
  const std::string* text = find(name);
  if (text == nullptr) return {};
  const double value = parse_probability(fmt::format("{} of filter '{}'", name, filter_), *text);
  if (!can_be_asked(value))
    throw BadParameters(fmt::format("{} of filter '{}' {}", name, filter_, kShareRange));
  return value;
}

std::optional<std::string> SettingsReader::choice(std::string_view name,
                                                  std::span<const std::string_view> choices) const {
  const std::string* text = find(name);
  if (text == nullptr) return {};
  if (std::ranges::find(choices, *text) == choices.end())
    refuse(name, *text, fmt::format("{}", fmt::join(choices, " or ")));
  return *text;
}

}  // namespace sluice
