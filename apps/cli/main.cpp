// The `sluice` command: parses, dispatches, returns an exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "command.hpp"
#include "commands.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::cli {
namespace {

std::string version() {
  return fmt::format("sluice {}\ncompiler {}\nsimd {}", SLUICE_VERSION, SLUICE_COMPILER,
                     simd_level());
}

int parse_and_run(int argc, char** argv) {
  CLI::App app(
      "Sluice lets each event of a stream through once, in bounded memory, and says how often "
      "it is wrong.",
      "sluice");
  app.set_version_flag("--version", version, "Version, compiler and instruction set chosen");
  app.require_subcommand(0, 1);
  app.set_help_all_flag("--help-all", "The help of every command");
  app.footer("Start with: sluice dedup --help");
  int exit_code = kDone;
  add_dedup(app, exit_code);
  add_generate(app, exit_code);
  add_filters(app, exit_code);
  add_inspect(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return guarded("help", [&] { return app.exit(done); });
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
    say(fmt::format("sluice{}: error: {}; see sluice{} --help\n", command, error.what(), command));
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
  if (const char* level = std::getenv("SLUICE_SIMD")) {
    const int code = guarded("SLUICE_SIMD", [&] {
      sluice::force_simd_level(level);
      return kDone;
    });
    if (code != kDone) return code;
  }
  return parse_and_run(argc, argv);
}
