// Compressed inputs against unpacking them on the way, with the programs that people would use.
#include <fmt/format.h>

#include "contest.hpp"
#include "options.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::bench {
namespace {

struct Kind {
  const char* suffix;
  const char* pipe;  // $0 is the file, $1 the command
  double least;      // how many times as fast as the pipe we are
};

// The clock of a pipe is that of its slower end, and ours that of the slower thread.
constexpr Kind kKinds[] = {
    {".gz", R"(gzip -dc "$0" | "$1" dedup)", 1.0},
    {".zst", R"(zstd -dcq "$0" | "$1" dedup)", 0.9},
};

}  // namespace

void run_compressed(const Options& options, Report& report) {
  const std::uint64_t records = options.quick ? 1'000'000 : 5'000'000;
  report.table(fmt::format("{} clicks, compressed, file in cache to /dev/null", in_short(records)),
               {"input", "command", "million records per second", "CPU seconds of both ends",
                "peak memory of the largest"});
  for (const Kind& kind : kKinds) {
    const TemporaryFile input(std::string("clicks") + kind.suffix);
    generate(input, {"clicks", "--records", std::to_string(records), "--seed", "1"});
    // bash reads from no file, and knows its arguments.
    std::vector<Contestant> both = {
        {"sluice dedup FILE", {"bash", "-c", R"("$1" dedup "$0")", input.path(), cli_program()}},
        {kind.pipe, {"bash", "-c", kind.pipe, input.path(), cli_program()}}};
    for (Contestant& each : both) each.reads_input_only = true;
    race(both, options.quick ? 3 : 7, input.path());
    for (const Contestant& each : both)
      report.row({kind.suffix, each.name,
                  each.done ? fmt::format("{:.2f}",
                                          static_cast<double>(records) / median(each.seconds) / 1e6)
                            : "not available",
                  fmt::format("{:.2f}", median(each.cpu_seconds)),
                  format_size(static_cast<std::uint64_t>(each.peak_bytes))});
    report.flush();
    if (both[0].done && both[1].done)
      report.at_least(
          fmt::format("dedup FILE{} / unpacking it on the way: records per second", kind.suffix),
          times_as_fast(both[0], both[1]), kind.least);
  }
}

}  // namespace sluice::bench
