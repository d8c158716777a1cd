// The `sluice` command: parses, dispatches, returns an exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command.hpp"
#include "commands.hpp"
#include "printable.hpp"
#include "sluice/kernels/simd.hpp"
#include "usage.hpp"

namespace sluice::cli {
namespace {

std::string version() {
  return fmt::format("sluice {}\ncompiler {}\nsimd {}", SLUICE_VERSION, SLUICE_COMPILER,
                     simd_level());
}

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

void take_literally(CLI::App& app) {
  const CLI::Validator unmark(
      [](std::string& text) {
        if (text.ends_with(kWhole)) text.pop_back();
        return std::string();
      },
      "");
  for (CLI::Option* option : app.get_options())
    if (option->get_items_expected_max() > 0) option->transform(unmark);
  for (CLI::App* command : app.get_subcommands({})) take_literally(*command);
}

std::string marked(std::string_view argument) {
  std::string text(argument);
  if (text.starts_with('[') && text.ends_with(']')) text += kWhole;
  return text;
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

int parse_and_run(int argc, char** argv) {
  CLI::App app(
      "Sluice lets each event of a stream through once, in bounded memory, and reports how often "
      "it is wrong.",
      "sluice");
  app.set_version_flag("--version", version,
                       "Print the version, the compiler and the instruction set in use");
  app.require_subcommand(0, 1);
  app.set_help_all_flag("--help-all", "Print the help of every command");
  app.footer("Start with: sluice dedup --help");
  int exit_code = kDone;
  add_dedup(app, exit_code);
  add_generate(app, exit_code);
  add_filters(app, exit_code);
  add_inspect(app, exit_code);
  add_merge(app, exit_code);
  add_delta(app, exit_code);
  add_apply(app, exit_code);
  add_plan(app, exit_code);
  add_model(app, exit_code);
  add_compare(app, exit_code);
  add_repro(app, exit_code);
  refuse_empty_values(app);
  take_literally(app);
  try {
    std::vector<std::string> arguments = arguments_of(argc, argv);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(std::move(arguments));
  } catch (const CLI::Success& done) {
    return guarded("help", [&] { return app.exit(done); });
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
    say(fmt::format("sluice{}: error: {}; see sluice{} --help\n", command,
                    printable(usage_error(app, error)), command));
    return kUsage;
  }
  if (app.get_subcommands().empty()) {
    say(app.help());
    return kUsage;
  }
  return exit_code;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using namespace sluice::cli;
  hold_standard_descriptors();
  // For tests and measurements: run on a narrower instruction set than the processor has.
  if (const char* level = std::getenv("SLUICE_SIMD"); level != nullptr && *level != '\0') {
    const int code = guarded("SLUICE_SIMD", [&] {
      sluice::force_simd_level(level);
      return kDone;
    });
    if (code != kDone) return code;
  }
  return parse_and_run(argc, argv);
}
