// The `sluice` command: its subcommands, and where it starts.
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::cli {
namespace {

std::string version() {
  return fmt::format("sluice {}\ncompiler {}\nsimd {}", SLUICE_VERSION, SLUICE_COMPILER,
                     simd_level());
}

void add_commands(Command& app) {
  add_dedup(app);
  add_generate(app);
  add_filters(app);
  add_inspect(app);
  add_merge(app);
  add_delta(app);
  add_apply(app);
  add_plan(app);
  add_model(app);
  add_compare(app);
  add_count(app);
  add_cluster(app);
  add_repro(app);
}

constexpr Program kProgram = {
    .summary =
        "Sluice lets each event of a stream through once, in bounded memory, and reports "
        "how often it is wrong.",
    .footer = "Start with: sluice help dedup",
    .version = version,
    .version_help = "Print the version, the compiler and the instruction set in use",
    .add_commands = add_commands,
};

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
  return parse_and_run(kProgram, argc, argv);
}
