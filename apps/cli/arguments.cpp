#include "arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "command.hpp"
#include "help_text.hpp"
#include "printable.hpp"
#include "sluice/base/quantity.hpp"
#include "suggest.hpp"

namespace sluice::cli {
namespace {

// For an option whose value is empty; usage_error() makes the sentence.
constexpr const char* kEmptyValue = "its value is empty";

// An empty value is usually an unset shell variable. Ignoring the flag would, for example, silently
// keep no state. Only an empty --key has a meaning: the whole JSON document.
void refuse_empty_values(CLI::App& app) {
  const CLI::Validator not_empty(
      [](std::string& text) { return std::string(text.empty() ? kEmptyValue : ""); }, "");
  for (CLI::Option* option : app.get_options())
    if (option->get_items_expected_max() > 0 && option->get_name() != "--key")
      option->check(not_empty);
  for (CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);
}

// CLI11 reads an argument [a,b] as a list of two. No argument can hold a NUL, so a NUL appended to
// it prevents this, and is removed again before the value is read.
constexpr char kWhole = '\0';

std::string marked(std::string_view argument) {
  std::string text(argument);
  if (text.starts_with('[') && text.ends_with(']')) text += kWhole;
  return text;
}

void unmark(std::string& text) {
  if (text.ends_with(kWhole)) text.pop_back();
}

void take_literally(CLI::App& app) {
  const CLI::Validator transform(
      [](std::string& text) {
        unmark(text);
        return std::string();
      },
      "");
  for (CLI::Option* option : app.get_options())
    if (option->get_items_expected_max() > 0) option->transform(transform);
  for (CLI::App* command : app.get_subcommands({})) take_literally(*command);
}

// CLI11 takes "--output=" for a flag without its value and makes the next argument the value: an
// input would be overwritten. So CLI11 never sees this form.
std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") {
      arguments.emplace_back(argument);
      while (++i < argc) arguments.push_back(marked(argv[i]));
    } else if (!argument.starts_with("--") || argument.find('=') != argument.size() - 1) {
      arguments.push_back(marked(argument));
    } else if (argument == "--key=") {
      arguments.insert(arguments.end(), {"--key", ""});
    } else {
      throw CLI::ValidationError(std::string(argument.substr(0, argument.size() - 1)), kEmptyValue);
    }
  }
  return arguments;
}

// What is wrong with the arguments, in one sentence of our own. CLI11's sentences name neither the
// flag as a person typed it nor what would be right.

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

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({}))
    if (!command->get_name().empty()) names.push_back(command->get_name());
  return names;
}

std::string no_command(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> commands = commands_of(app);
  if (const auto meant = probably_meant(name, commands))
    return fmt::format("there is no command '{}': did you mean {}?", name, *meant);
  return fmt::format("there is no command '{}': choose from {}", name, fmt::join(commands, ", "));
}

// Flags of other programs, or of other commands, and what does the same here.
constexpr std::array kElsewhere{std::pair("-v", "--version"), std::pair("-V", "--version"),
                                std::pair("--keys", "--expect")};

std::string no_flag(const CLI::App& app, std::string_view flag) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  std::optional<std::string> meant;
  for (const auto& [elsewhere, here] : kElsewhere)
    if (flag == elsewhere && std::ranges::count(flags, here) > 0) meant = here;
  if (!meant) meant = probably_meant(flag, flags);
  return fmt::format("there is no flag {}{}", flag,
                     meant ? fmt::format(": did you mean {}?", *meant) : "");
}

bool is_flag(const std::string& argument) {
  return argument.size() > 1 && argument.starts_with('-');
}

std::string no_such_flag(const CLI::App& app, const std::string& argument) {
  return no_flag(innermost(app), std::string_view(argument).substr(0, argument.find('=')));
}

std::string unexpected(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  if (const auto before = app.remaining(false); !before.empty() && !chosen.empty())
    return fmt::format("{} must come after the command '{}', not before it", before.front(),
                       chosen.front()->get_name());
  const std::string first = app.remaining(true).front();
  if (is_flag(first)) return no_such_flag(app, first);
  if (chosen.empty()) return no_command(app, first);
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

// `app` has just thrown `error` while it parsed.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const std::string_view text = error.what();
  const CLI::Option* option = option_in(command, text);
  if (is<CLI::ExtrasError>(error)) return unexpected(app);
  if (is<CLI::ArgumentMismatch>(error) && option != nullptr) return wrong_number(command, *option);
  if (is<CLI::ArgumentMismatch>(error))  // of a flag, which is named without its dashes
    return fmt::format("--{} takes no value", text.substr(0, text.find(' ')));
  if (is<CLI::ConversionError>(error) && option != nullptr)
    return fmt::format("{} takes no value", option->get_name());
  // The required flag may be there, but mistyped.
  const std::vector<std::string> rest = app.remaining(true);
  if (const auto flag = std::ranges::find_if(rest, is_flag);
      is<CLI::RequiredError>(error) && flag != rest.end())
    return no_such_flag(app, *flag);
  if (is<CLI::RequiredError>(error))
    return option != nullptr
               ? missing(command, *option)
               : fmt::format("'{}' must be followed by one of: {}", command.get_name(),
                             fmt::join(commands_of(command), ", "));
  if (const std::string empty = fmt::format(": {}", kEmptyValue); text.ends_with(empty)) {
    const std::string_view name = text.substr(0, text.size() - empty.size());
    return name.starts_with('-')
               ? fmt::format("{} has an empty value: give one, or leave the flag out", name)
               : std::string("a file has an empty name");
  }
  return std::string(text.starts_with(": ") ? text.substr(2)
                                            : text);  // a hidden option has no name
}

// The command of `sluice` that `app` is or belongs to: "generate" for `sluice generate clicks`.
std::string command_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent->get_parent() == nullptr ? app.get_name() : command_of(*parent);
}

// `sluice help dedup` is `sluice dedup --help`. A wrong command is refused here: the parser would
// overlook it if --help follows.
void spell_out(const CLI::App& app, std::vector<std::string>& arguments) {
  const bool help = !arguments.empty() && arguments.front() == "help";
  if (help) arguments.erase(arguments.begin());
  if (help && !arguments.empty() && arguments.front() == "help") arguments.clear();
  if (!arguments.empty() && !arguments.front().starts_with('-') &&
      std::ranges::count(commands_of(app), arguments.front()) == 0)
    throw CLI::ValidationError("", no_command(app, arguments.front()));
  if (help) arguments.push_back("--help");
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
    // A part of another help is broken into lines with that.
    return mode == CLI::AppFormatMode::Sub ? help : fit_to_terminal(help);
  }
};

}  // namespace

Command Command::subcommand(const char* name, const char* summary) {
  return {*app_->add_subcommand(name, summary), *exit_code_};
}

void Command::need_subcommand(const char* what) {
  app_->require_subcommand(1);
  // Any other name becomes the value of this hidden option, which refuses every value.
  const CLI::Validator refuse(
      [what](const std::string& name) { return fmt::format("'{}' is not {}", name, what); }, "");
  app_->add_option("name")->check(refuse)->group("");
}

void Command::group(const char* heading) {
  app_->option_defaults()->group(heading);
}

void Command::flag(const char* names, bool& value, const char* help) {
  app_->add_flag(names, value, help)->disable_flag_override();
}

void Command::option(const char* names, std::string& value, const char* help, const char* type) {
  app_->add_option(names, value, help)->type_name(type)->capture_default_str();
}

void Command::option(const char* names, std::vector<std::string>& values, const char* help,
                     const char* type) {
  app_->add_option(names, values, help)->type_name(type)->allow_extra_args(false);
}

void Command::required_option(const char* names, std::string& value, const char* help,
                              const char* type) {
  app_->add_option(names, value, help)->type_name(type)->required();
}

void Command::positional(const char* name, std::string& value, const char* help, const char* type) {
  app_->add_option(name, value, help)->type_name(type)->required();
}

void Command::positionals(const char* name, std::vector<std::string>& values, const char* help,
                          const char* shown) {
  app_->add_option(name, values, help)->option_text(shown);
}

void Command::positionals(const char* name, std::vector<std::string>& values, const char* help,
                          const char* shown, int least, int most) {
  app_->add_option(name, values, help)->option_text(shown)->required()->expected(least, most);
}

void Command::footer(const char* text) {
  app_->footer(text);
}

std::string Command::help() const {
  return app_->help("sluice");
}

void Command::run(std::function<int()> body) {
  app_->callback([app = app_, exit_code = exit_code_, body = std::move(body)] {
    *exit_code = guarded(command_of(*app), body);
  });
}

void Command::run_with_rest(std::function<int(const std::vector<std::string>& rest)> body) {
  app_->prefix_command();
  run([app = app_, body = std::move(body)] {
    std::vector<std::string> rest = app->remaining();
    std::for_each(rest.begin(), rest.end(), unmark);
    return body(rest);
  });
}

int parse_and_run(const Program& program, int argc, char** argv) {
  CLI::App app(program.summary, "sluice");
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(kHelpIndent);
  app.formatter(formatter);
  app.set_version_flag("--version", program.version, program.version_help);
  app.require_subcommand(0, 1);
  app.set_help_all_flag("--help-all", "Print the help of every command");
  app.footer(program.footer);
  int exit_code = kDone;
  Command all(app, exit_code);
  program.add_commands(all);
  refuse_empty_values(app);
  take_literally(app);
  try {
    std::vector<std::string> arguments = arguments_of(argc, argv);
    spell_out(app, arguments);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(std::move(arguments));
  } catch (const CLI::Success& done) {
    return guarded("help", [&] { return app.exit(done); });
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
    const std::string what = printable(usage_error(app, error));
    say(fmt::format("sluice{}: error: {}{} sluice{} --help\n", command, what,
                    what.ends_with('?') ? " See" : "; see", command));
    return kUsage;
  }
  if (app.get_subcommands().empty()) {
    say(app.help());
    return kUsage;
  }
  return exit_code;
}

}  // namespace sluice::cli
