// `sluice compare [FILE] --filter A --filter B …`: filters side by side, with the exact truth.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "compare_plot.hpp"
#include "compare_report.hpp"
#include "compare_stream.hpp"
#include "signals.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/settings.hpp"
#include "sluice/window/spec.hpp"
#include "tapped_stream.hpp"

namespace sluice::cli {
namespace {

struct Flags {
  CompareStreamFlags stream;
  std::vector<std::string> filters;
  std::string memory, window, expect, fpr, plot;
  std::string stats = "text";
};

CompareWish wish_of(const Flags& flags, CompareStream& stream) {
  CompareWish wish;
  if (!flags.window.empty()) wish.window = parse_window("--window", flags.window);
  stream.check(wish.window);
  const bool by_time = wish.window && wish.window->by_time();
  if (by_time) wish.window_keys = stream.keys_in(*wish.window);
  if (by_time && !flags.memory.empty() && !wish.window_keys)
    throw BadParameters(
        "--memory and a window of time: how many keys the window holds is not known; give the "
        "stream's --rate, such as 5k/s");
  if (!flags.memory.empty()) wish.memory = parse_size("--memory", flags.memory);
  if (!flags.fpr.empty()) wish.wish.fpr = parse_probability("--fpr", flags.fpr);
  if (flags.expect.empty()) {
    wish.wish.keys = stream.distinct();
    return wish;
  }
  wish.wish.keys = parse_count("--expect", flags.expect);
  if (*wish.wish.keys == 0) throw BadParameters("--expect 0 leaves nothing to do: give 1 or more");
  return wish;
}

std::vector<std::string> filters_of(const Flags& flags) {
  if (!flags.filters.empty()) return flags.filters;
  std::vector<std::string> filters = {"growing", "bloom"};
  if (!flags.window.empty()) filters.push_back("cohort");
  filters.insert(filters.end(), {"reservoir", "stable"});
  return filters;
}

// If every filter says its own keys, nothing is planned for --expect.
void check_expect(const Flags& flags) {
  if (flags.expect.empty() || flags.filters.empty()) return;
  const auto keys_of = [](const std::string& filter) {
    const std::size_t begin = std::min(filter.find(','), filter.size() - 1) + 1;
    const Settings settings = Settings::parse(std::string_view(filter).substr(begin));
    for (const auto& [name, value] : settings.pairs())
      if (name == "keys") return value;
    return std::string();
  };
  for (const std::string& filter : flags.filters) {
    const std::string keys = keys_of(filter);
    if (keys.empty() || parse_count("keys", keys) == parse_count("--expect", flags.expect)) return;
  }
  throw BadParameters(fmt::format("--filter says keys={} and --expect says {}: give one of them",
                                  keys_of(flags.filters.front()), flags.expect));
}

bool wants_json(const std::string& stats) {
  if (stats != "text" && stats != "json")
    throw BadParameters(fmt::format("--stats '{}' is not text or json", stats));
  return stats == "json";
}

int run(const Flags& flags) {
  const bool json = wants_json(flags.stats);
  check_expect(flags);
  StopSignals signals;
  const bool by_time = !flags.window.empty() && parse_window("--window", flags.window).by_time();
  CompareStream stream(flags.stream, signals.wake_descriptor(), by_time);
  const CompareWish wish = wish_of(flags, stream);
  Comparison comparison(wish.window);
  for (const std::string& filter : filters_of(flags))
    comparison.add(filter, make_compared(filter, wish));
  std::optional<FileSink> plot = open_plot(flags.plot, stream.sources());
  stream.run(comparison, [&] { return signals.received() == 0; });
  CompareReport report{.results = comparison.finish(), .wish = wish};
  report.truth = comparison.truth();
  report.interrupted = signals.received() != 0;
  report.unkeyed = stream.unkeyed();
  report.source = stream.describe();
  if (report.truth.counts.records == 0 && report.unkeyed > 0)
    warn("compare", !stream.has_times()
                        ? "no record had the key: check --key and the record format"
                        : "no record had the key and the time: check --key, --event-time and the "
                          "record format");
  if (report.interrupted)
    warn("compare", fmt::format("interrupted: these are the numbers of the first {}",
                                counted(report.truth.counts.records, "record")));
  fmt::print("{}", json ? as_json(report) : as_table(report));
  if (plot) draw(report, *plot);
  return report.interrupted ? 128 + signals.received() : kDone;
}

void add_filter_flags(Command& command, Flags& flags) {
  command.group("Filters");
  command.option(
      "-f,--filter", flags.filters,
      "A filter and its parameters; may be repeated [growing, bloom, reservoir, stable; with "
      "--window also cohort]",
      "NAME[,PARAMETER=VALUE]");
  command.option("-m,--memory", flags.memory,
                 "Memory for each filter of fixed size, unless its parameters say otherwise",
                 "SIZE");
  command.option(
      "-w,--window", flags.window,
      "Count as duplicates only repeats within the last N records let through (1M), a span of time "
      "(10m, 7d), or the current hour or day; filters without a window run unchanged",
      "1M|10m|hour|day");
  command.option("--expect", flags.expect,
                 "Number of distinct keys to plan for [that of the generated stream; otherwise 8M]",
                 "COUNT");
  command.option("--fpr", flags.fpr, "Error to plan for, unless --memory decides it [1e-6]", "P");
}

}  // namespace

void add_compare(Command& app) {
  Command command = app.subcommand(
      "compare", "Run filters side by side over one stream and compare them with the exact truth");
  const auto flags = std::make_shared<Flags>();
  add_stream_flags(command, flags->stream);
  add_filter_flags(command, *flags);
  command.group("Output");
  command.option("--stats", flags->stats, "Print the results as a table or as one JSON object",
                 "text|json");
  command.option("--plot", flags->plot, "Plot the errors over the stream as SVG, with gnuplot",
                 "FILE");
  command.footer(
      "Example:\n"
      "  sluice compare --stream zipf --memory 1MiB --filter bloom --filter stable\n");
  command.run([flags] { return run(*flags); });
}

}  // namespace sluice::cli
