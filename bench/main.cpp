// sluice_bench [PART…] [--short] [--json FILE] [--out DIR]
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

#include "options.hpp"
#include "report.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::bench {
namespace {

struct Part {
  std::string_view name;
  std::string_view what;
  void (*run)(const Options&, Report&);
};

// `cli` comes first: the peak memory of a child is at least that of its parent when it was started,
// so it must be started while we are small.
constexpr Part kParts[] = {
    {"cli", "sluice dedup against other tools on a file of 10 million lines", run_cli},
    {"limits", "what the machine's memory allows", run_limits},
    {"filters", "every filter against the machine's limit", run_filters},
    {"dynamic", "series of Bloom filters: plain and sliced, alike and tightening", run_dynamic},
    {"windows", "window filters at steady state", run_windows},
    {"threads", "filters sliced for two threads against one, out of cache", run_threads},
    {"burst", "a window of 24 hours through bursts; with --out, a plot of it", run_burst},
    {"growing", "growing from empty against a filter of known size", run_growing},
    {"infer", "verdicts of least cost against the plain observe, in cache", run_infer},
    {"layouts", "block layouts of the Bloom filter side by side", run_layouts},
    {"prefetch", "how far ahead to prefetch, and from what size of table on", run_prefetch},
};

int usage() {
  fmt::print(stderr, "usage: sluice_bench [PART…] [--short] [--json FILE] [--out DIR]\n\nparts:\n");
  for (const Part& part : kParts) fmt::print(stderr, "  {:10}{}\n", part.name, part.what);
  fmt::print(stderr, "  {:10}{}\n", "all", "all of them, as without a part");
  return 2;
}

int run(std::span<char*> arguments) {
  Options options;
  std::string json_file;
  std::vector<std::string_view> wanted;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--short") {
      options.quick = true;
    } else if (argument == "--json" && i + 1 < arguments.size()) {
      json_file = arguments[++i];
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
  fmt::print("instruction set: {}\n", simd_level());
  for (const Part& part : kParts) {
    bool chosen = wanted.empty();
    for (const std::string_view name : wanted) chosen |= name == part.name || name == "all";
    if (chosen) part.run(options, report);
  }
  report.finish();
  if (json_file.empty()) return 0;
  std::FILE* file = std::fopen(json_file.c_str(), "w");
  const std::string json = report.json();
  const bool written =
      file != nullptr && std::fwrite(json.data(), 1, json.size(), file) == json.size();
  if ((file != nullptr && std::fclose(file) != 0) || !written) {
    fmt::print(stderr, "sluice_bench: cannot write --json '{}'\n", json_file);
    return 1;
  }
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
