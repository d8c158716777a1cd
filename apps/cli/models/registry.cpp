#include "apps/cli/models/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>

#include "apps/cli/models/registry_parts.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::model {
namespace {

// "10", "1e-4", "5.7k", "2%", "-3": a number and a unit, nothing else.
std::optional<double> parse_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const std::optional<double> value = read_number(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  if (percent && std::string_view("kMG").find(text.back()) != std::string_view::npos)
    return std::nullopt;
  return *value / (percent ? 100 : 1) * (negative ? -1 : 1);
}

bool fits(const ModelParameter& parameter, double value) {
  switch (parameter.takes) {
    case Takes::chance:
      return value > 0 && value < 1;
    case Takes::whole:
      return value == std::floor(value) && value >= parameter.least && value <= parameter.most;
    default:
      return value >= parameter.least && value <= parameter.most;
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return words;
}

std::string flags_of(const ModelInfo& model) {
  std::string flags;
  for (const ModelParameter& parameter : model.parameters)
    flags += fmt::format("{}--{}", flags.empty() ? "" : ", ", parameter.name);
  return flags;
}

[[noreturn]] void refuse_value(const ModelInfo& model, const ModelParameter& parameter,
                               std::string_view text) {
  throw BadParameters(fmt::format("model '{}': --{} is '{}', but takes {}", model.name,
                                  parameter.name, text, range_of(parameter)));
}

using Given = std::span<const std::pair<std::string, std::string>>;

void check_names(const ModelInfo& model, Given given) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& name = given[i].first;
    if (std::ranges::none_of(model.parameters,
                             [&](const ModelParameter& known) { return known.name == name; }))
      throw BadParameters(
          fmt::format("model '{}' has no --{}: it takes {}", model.name, name, flags_of(model)));
    if (std::ranges::any_of(given.first(i), [&](const auto& pair) { return pair.first == name; }))
      throw BadParameters(fmt::format("model '{}': --{} is given twice", model.name, name));
  }
}

}  // namespace

void refuse_unless(bool right, std::string_view sentence) {
  if (!right) throw BadParameters(std::string(sentence));
}

double ModelArguments::number(std::string_view name) const {
  assert(numbers_.contains(name) && "a model asks for a number that it does not declare");
  return numbers_.at(name);
}

unsigned ModelArguments::whole(std::string_view name) const {
  return static_cast<unsigned>(number(name));
}

std::string_view ModelArguments::choice(std::string_view name) const {
  assert(choices_.contains(name) && "a model asks for a choice that it does not declare");
  return choices_.at(name);
}

bool ModelArguments::given(std::string_view name) const {
  return numbers_.contains(name) || choices_.contains(name);
}

std::string range_of(const ModelParameter& parameter) {
  switch (parameter.takes) {
    case Takes::chance:
      return "a number above 0 and below 1, such as 1e-4 or 2%";
    case Takes::whole:
      return fmt::format("a whole number from {:.12g} to {:.12g}", parameter.least, parameter.most);
    case Takes::number:
      return fmt::format("a number from {:.12g} to {:.12g}", parameter.least, parameter.most);
    case Takes::choice:
      break;
  }
  std::string words;
  const std::vector<std::string_view> choices = words_of(parameter.choices);
  for (std::size_t i = 0; i < choices.size(); ++i)
    words += fmt::format("{}{}", i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ", choices[i]);
  return words;
}

const ModelParameter& ModelInfo::parameter(std::string_view wanted) const {
  const auto found = std::ranges::find(parameters, wanted, &ModelParameter::name);
  assert(found != parameters.end());
  return *found;
}

ModelResults ModelInfo::run(Given given) const {
  check_names(*this, given);
  ModelArguments arguments;
  for (const ModelParameter& wanted : parameters) {
    const auto found = std::ranges::find(given, wanted.name, &Given::value_type::first);
    if (found == given.end() && wanted.may_lack) continue;
    const std::string_view text = found == given.end() ? wanted.standard : found->second;
    if (found == given.end() && text.empty())
      throw BadParameters(
          fmt::format("model '{}' needs --{}: {}", name, wanted.name, wanted.meaning));
    if (wanted.takes == Takes::choice) {
      const std::vector<std::string_view> words = words_of(wanted.choices);
      const auto word = std::ranges::find(words, text);
      if (word == words.end()) refuse_value(*this, wanted, text);
      arguments.choices_.emplace(wanted.name, *word);
      if (const auto value = parse_number(*word)) arguments.numbers_.emplace(wanted.name, *value);
    } else {
      const std::optional<double> value = parse_number(text);
      if (!value || !fits(wanted, *value)) refuse_value(*this, wanted, text);
      arguments.numbers_.emplace(wanted.name, *value);
    }
  }
  const std::vector<double> values = compute(arguments);
  assert(values.size() == outputs.size() && "a model tells other than it declares");
  ModelResults results;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    results.emplace_back(outputs[i].name, values.at(i));
  return results;
}

std::span<const ModelInfo> models() {
  static const std::vector<ModelInfo> all = [] {
    std::vector<ModelInfo> list;
    for (const std::span<const ModelInfo> part :
         {set_models(), window_models(), sliced_models(), dynamic_models(), endless_models(),
          infer_models()})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }();
  return all;
}

const ModelInfo& model_named(std::string_view name) {
  std::string names;
  for (const ModelInfo& model : models()) {
    if (model.name == name) return model;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", model.name);
  }
  throw BadParameters(fmt::format("there is no model '{}': there are {}", name, names));
}

}  // namespace sluice::model
