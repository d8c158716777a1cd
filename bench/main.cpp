// sluice_bench [PART…] [--short] [--out DIR]
// sluice_bench probe-lines|probe-json FILE
// sluice_bench guard-lines|guard-growth|guard-calls|guard-instructions|guard-seen
#include <fmt/format.h>

#include <cctype>
#include <cstdio>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

#include "machine.hpp"
#include "options.hpp"
#include "page.hpp"
#include "report.hpp"

namespace sluice::bench {
namespace {

struct Part {
  std::string_view name;
  std::string_view what;
  void (*run)(const Options&, Report&);
  bool study = false;  // a study behind a past choice: runs only when named
};

// The limits come first; then the commands: the peak memory of a child is at least that of its
// parent at the start, so they are started while this process is small.
constexpr Part kParts[] = {
    {"limits", "what the machine allows: lines of memory, hashing, copying, pipes", run_limits},
    {"cli", "the command against other tools, alone and in a pipe", run_cli},
    {"compressed", "compressed files against unpacking them in a pipe", run_compressed},
    {"memory", "what is held while a stream is read, against other tools; with --out, a plot",
     run_memory},
    {"formats", "the command against its own limits: lines, JSON, CSV, windows", run_formats},
    {"filters", "every filter: all verbs, batched and not, in cache and out of it", run_filters},
    {"windows", "window filters at steady state", run_windows},
    {"levels", "instruction sets side by side", run_levels},
    {"threads", "two threads against one", run_threads},
    {"evenness", "the worst batch against the median one", run_evenness},
    {"lines", "cache lines of a key, counted", run_lines},
    {"growing", "growing from empty against a filter of known size", run_growing},
    {"dynamic", "series of Bloom filters: plain and in a matrix, alike and tightening", run_dynamic,
     true},
    {"burst", "a window of 24 hours through bursts", run_burst},
    {"snapshots", "snapshots and state files against the same bytes, copied, written and read",
     run_snapshots},
    {"infer", "verdicts of least cost against the plain observe, in cache", run_infer},
    {"layouts", "block layouts of the Bloom filter side by side", run_layouts, true},
    {"prefetch", "how far ahead to prefetch, and from what size of table on", run_prefetch, true},
};

int usage() {
  fmt::print(stderr, "usage: sluice_bench [PART…] [--short] [--out DIR]\n\nparts:\n");
  for (const Part& part : kParts)
    fmt::print(stderr, "  {:12}{}{}\n", part.name, part.what, part.study ? " *" : "");
  fmt::print(stderr, "  {:12}{}\n", "all", "all of them; without a part, all but those marked *");
  return 2;
}

int run(std::span<char*> arguments) {
  if (arguments.size() == 3 && std::string_view(arguments[1]) == "probe-lines") {
    split_and_copy(arguments[2]);
    return 0;
  }
  if (arguments.size() == 3 && std::string_view(arguments[1]) == "probe-json") {
    parse_json(arguments[2]);
    return 0;
  }
  if (arguments.size() == 2 && std::string_view(arguments[1]) == "guard-lines") {
    guard_lines();
    return 0;
  }
  if (arguments.size() == 2 && std::string_view(arguments[1]) == "guard-growth") {
    guard_growth();
    return 0;
  }
  if (arguments.size() == 2 && std::string_view(arguments[1]) == "guard-calls") {
    guard_calls();
    return 0;
  }
  if (arguments.size() == 2 && std::string_view(arguments[1]) == "guard-instructions") {
    guard_instructions();
    return 0;
  }
  if (arguments.size() == 2 && std::string_view(arguments[1]) == "guard-seen") {
    guard_seen();
    return 0;
  }
  Options options;
  std::vector<std::string_view> wanted;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--short") {
      options.quick = true;
    } else if (argument == "--out" && i + 1 < arguments.size()) {
      options.out = arguments[++i];
    } else {
      bool known = argument == "all";
      for (const Part& part : kParts) known |= part.name == argument;
      if (!known) return usage();
      wanted.push_back(argument);
    }
  }
  Report report;
  if (options.quick) report.is_short();
  for (const auto& [what, value] : machine()) fmt::print("{}: {}\n", what, value);
  for (const Part& part : kParts) {
    bool chosen = wanted.empty() && !part.study;
    for (const std::string_view name : wanted) chosen |= name == part.name || name == "all";
    if (!chosen) continue;
    std::string heading(part.what);
    heading[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(heading[0])));
    report.part(heading);
    part.run(options, report);
    report.flush();
  }
  report.finish();
  if (!options.out.empty()) write_results(options.out, report);
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  try {
    return sluice::bench::run(std::span(argv, static_cast<std::size_t>(argc)));
  } catch (const std::exception& error) {
    fmt::print(stderr, "sluice_bench: {}\n", error.what());
    return 1;
  }
}
