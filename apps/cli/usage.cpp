#include "usage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

template <class Kind>
bool is(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

// CLI11's errors carry text alone: an option is found again by its name in that text.
const CLI::Option* option_in(const CLI::App& app, std::string_view text) {
  const CLI::Option* found = nullptr;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (name.empty()) continue;
    const bool named = text.starts_with(name + ": ") || text.starts_with(name + " is ") ||
                       text.starts_with("Could not convert: " + name + " = ");
    if (named) found = option;
  }
  return found;
}

std::string commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({}))
    if (!command->get_name().empty()) names.push_back(command->get_name());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string unexpected(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  if (const auto before = app.remaining(false); !before.empty() && !chosen.empty())
    return fmt::format("{} must come after the command '{}', not before it", before.front(),
                       chosen.front()->get_name());
  const std::string first = app.remaining(true).front();
  if (first.size() > 1 && first.starts_with('-'))
    return fmt::format("there is no flag {}", first.substr(0, first.find('=')));
  if (chosen.empty())
    return fmt::format("there is no command '{}': choose from {}", first, commands_of(app));
  return fmt::format("the argument '{}' is one too many", first);
}

std::string wrong_number(const CLI::App& command, const CLI::Option& option) {
  const auto given = static_cast<std::uint64_t>(option.count());
  const std::string name = option.get_name();
  if (name.starts_with('-'))
    return given > 1 ? fmt::format("{} is given {} times: give it once", name, given)
                     : fmt::format("{} needs a value: {} {}", name, name, option.get_type_name());
  const auto least = static_cast<std::uint64_t>(option.get_items_expected_min());
  const auto most = static_cast<std::uint64_t>(option.get_items_expected_max());
  return fmt::format("{} given: {} takes at {} {}", counted(given, "file"), command.get_name(),
                     given < least ? "least" : "most", given < least ? least : most);
}

std::string missing(const CLI::App& command, const CLI::Option& option) {
  const std::string name = option.get_name();
  if (name.starts_with('-')) return fmt::format("{} {} is required", name, option.get_type_name());
  const auto least = static_cast<std::uint64_t>(option.get_items_expected_min());
  const bool more = option.get_items_expected_max() > option.get_items_expected_min();
  return fmt::format("no file given: {} takes {}{}", command.get_name(), more ? "at least " : "",
                     least);
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const std::string_view text = error.what();
  const CLI::Option* option = option_in(command, text);
  if (is<CLI::ExtrasError>(error)) return unexpected(app);
  if (is<CLI::ArgumentMismatch>(error) && option != nullptr) return wrong_number(command, *option);
  if (is<CLI::ConversionError>(error) && option != nullptr)
    return fmt::format("{} takes no value", option->get_name());
  if (is<CLI::RequiredError>(error))
    return option != nullptr ? missing(command, *option)
                             : fmt::format("'{}' must be followed by one of: {}",
                                           command.get_name(), commands_of(command));
  if (const std::string empty = fmt::format(": {}", kEmptyValue); text.ends_with(empty)) {
    const std::string_view name = text.substr(0, text.size() - empty.size());
    return name.starts_with('-')
               ? fmt::format("{} has an empty value: give one, or leave the flag out", name)
               : std::string("a file has an empty name");
  }
  return std::string(text.starts_with(": ") ? text.substr(2)
                                            : text);  // a hidden option has no name
}

}  // namespace sluice::cli
