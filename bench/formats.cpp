// The command line against its own limits: the split-and-copy probe for lines, simdjson for JSON,
// plain lines for CSV; with a window, without a filter, and on ten times as many lines.
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "contest.hpp"
#include "options.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"

namespace sluice::bench {
namespace {

constexpr std::uint64_t kLineBytes = 43;

void make_lines(const TemporaryFile& file, std::uint64_t lines) {
  generate(file, {"lines", "--records", std::to_string(lines), "--duplicates", "0.3", "--length",
                  std::to_string(kLineBytes - 1)});
}

Contestant ours(const char* name, Command flags) {
  Command command = {cli_program(), "dedup"};
  command.insert(command.end(), flags.begin(), flags.end());
  return {name, command};
}

void tell(const std::string& title, const std::vector<Contestant>& all, std::uint64_t records,
          std::uint64_t bytes, Report& report) {
  report.table(title, {"command", "million records per second", "GB per second", "/ first row",
                       "CPU seconds", "peak memory"});
  for (const Contestant& each : all) {
    if (!each.done) {
      report.row({each.name, "failed"});
      continue;
    }
    const double seconds = median(each.seconds);
    report.row({each.name, fmt::format("{:.2f}", static_cast<double>(records) / seconds / 1e6),
                fmt::format("{:.2f}", static_cast<double>(bytes) / seconds / 1e9),
                fmt::format("{:.2f}", times_as_fast(each, all[0])),
                fmt::format("{:.2f}", median(each.cpu_seconds)),
                format_size(static_cast<std::uint64_t>(each.peak_bytes))});
  }
  report.flush();
}

bool all_done(const std::vector<Contestant>& all) {
  for (const Contestant& each : all)
    if (!each.done) return false;
  return true;
}

void measure_lines(const Options& options, Report& report) {
  const std::uint64_t lines = options.quick ? 1'000'000 : 10'000'000;
  const TemporaryFile file("lines");
  make_lines(file, lines);
  std::vector<Contestant> all = {{"the split-and-copy probe", {bench_program(), "probe-lines"}},
                                 ours("sluice dedup", {}),
                                 ours("sluice dedup --filter none", {"--filter", "none"}),
                                 ours("sluice dedup --window 1M", {"--window", "1M"}),
                                 ours("sluice dedup --expect 10M", {"--expect", "10M"}),
                                 ours("sluice dedup --filter exact", {"--filter", "exact"}),
                                 {"cat", {"cat"}}};
  race(all, options.quick ? 5 : 9, file.path());
  tell(fmt::format("{} lines of {} bytes, 30 % duplicates, file in cache to /dev/null",
                   in_short(lines), kLineBytes),
       all, lines, file.bytes(), report);
  if (!all_done(all)) return;
  report.claim(fmt::format(
      "It reads {:.1f} million such lines per second, {:.2f} × the rate of only splitting the "
      "input "
      "into lines and copying them.",
      static_cast<double>(lines) / median(all[1].seconds) / 1e6, times_as_fast(all[1], all[0])));
  report.at_least("dedup / the split-and-copy probe: lines per second",
                  times_as_fast(all[1], all[0]), 0.4);
  report.at_most("the split-and-copy probe / dedup --filter none: lines per second",
                 times_as_fast(all[0], all[2]), 1.2);
  report.at_least("dedup --window 1M / dedup: lines per second", times_as_fast(all[3], all[1]),
                  0.8);
}

void measure_json(const Options& options, Report& report) {
  const std::uint64_t records = options.quick ? 500'000 : 3'000'000;
  const TemporaryFile file("clicks");
  // simdjson stops at the first record that is damaged.
  generate(file, {"clicks", "--records", std::to_string(records), "--malformed", "0"});
  std::vector<Contestant> all = {
      {"simdjson, parse_many", {bench_program(), "probe-json"}},
      ours("sluice dedup --json --key /user,/ad", {"--json", "--key", "/user,/ad"}),
      ours("sluice dedup, whole lines", {})};
  race(all, options.quick ? 5 : 7, file.path());
  tell(fmt::format("{} clicks as JSON, file in cache to /dev/null", in_short(records)), all,
       records, file.bytes(), report);
  if (all_done(all))
    report.at_least("dedup --json --key /user,/ad / simdjson's parse of the same bytes",
                    times_as_fast(all[1], all[0]), 0.5);
}

// The lines as CSV of as many bytes: of every four records one has a quoted field, of every sixteen
// one a delimiter and a doubled quote inside of it.
void make_csv(const TemporaryFile& from, const TemporaryFile& to) {
  std::ifstream in(from.path(), std::ios::binary);
  std::ofstream out(to.path(), std::ios::binary);
  out << "event,rest\n";
  for (std::string line; std::getline(in, line);) {
    const std::size_t comma = line.find(',');
    // By the line itself, so that what was equal is equal.
    const unsigned kind = static_cast<unsigned char>(line[comma - 1]) % 16;
    if (kind % 4 == 0) line[comma + 1] = line.back() = '"';
    if (kind == 0) line.replace(comma + 4, 3, ",\"\"");
    out << line << '\n';
  }
  if (!out.flush()) throw IoError("cannot write " + to.path(), errno);
}

void measure_csv(const Options& options, Report& report) {
  const std::uint64_t lines = options.quick ? 1'000'000 : 5'000'000;
  const TemporaryFile plain("lines"), file("csv");
  make_lines(plain, lines);
  make_csv(plain, file);
  std::vector<Contestant> all = {
      ours("sluice dedup, whole lines", {}), ours("sluice dedup --csv", {"--csv"}),
      ours("sluice dedup --csv --key event", {"--csv", "--key", "event"}),
      ours("sluice dedup --csv --key rest", {"--csv", "--key", "rest"})};
  race(all, options.quick ? 5 : 7, file.path());
  tell(fmt::format("{} records of CSV, one in four with quotes, file in cache to /dev/null",
                   in_short(lines)),
       all, lines, file.bytes(), report);
  if (!all_done(all)) return;
  report.at_least("dedup --csv / the same bytes as lines: bytes per second",
                  times_as_fast(all[1], all[0]), 0.5);
  report.at_least("dedup --csv --key rest, quoted / the same bytes as lines: bytes per second",
                  times_as_fast(all[3], all[0]), 0.5);
}

std::uint64_t available_memory() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("MemAvailable:"))
      return std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10) << 10;
  return 0;
}

// Page cache and filter must fit into what is free, or the disk would be measured.
std::string why_not_many(std::uint64_t bytes) {
  const std::uint64_t free = available_memory();
  if (free < bytes * 3 / 2)
    return fmt::format("needs {} of free memory, and there are {}", format_size(bytes * 3 / 2),
                       format_size(free));
  const std::uint64_t room =
      std::filesystem::space(std::filesystem::temp_directory_path()).available;
  if (room < bytes + (1 << 30))
    return fmt::format("needs {} of disk, and there are {}", format_size(bytes), format_size(room));
  return "";
}

void measure_many(const Options& options, Report& report) {
  const std::uint64_t few = options.quick ? 1'000'000 : 10'000'000, many = 10 * few;
  report.table(fmt::format("sluice dedup on {} lines of {} bytes and on ten times as many",
                           in_short(few), kLineBytes),
               {"lines", "million lines per second", "/ first row", "peak memory"});
  if (const std::string reason = why_not_many(many * kLineBytes); !reason.empty()) {
    report.row({in_short(many), "not run: " + reason});
    return;
  }
  const TemporaryFile short_file("few"), long_file("many");
  make_lines(short_file, few);
  make_lines(long_file, many);
  const Command dedup = {cli_program(), "dedup"};
  Command on_few = dedup, on_many = dedup;
  on_few.push_back(short_file.path());
  on_many.push_back(long_file.path());
  Samples few_ns, many_ns;
  double few_peak = 0, many_peak = 0;
  for (int round = 0; round < 3; ++round) {
    const Run one = run(on_few), other = run(on_many);
    if (!one.done || !other.done) throw Error("'sluice dedup' failed");
    few_ns.push_back(one.seconds * 1e9 / static_cast<double>(few));
    many_ns.push_back(other.seconds * 1e9 / static_cast<double>(many));
    few_peak = one.peak_bytes;
    many_peak = other.peak_bytes;
  }
  report.row({in_short(few), fmt::format("{:.2f}", 1e3 / median(few_ns)), "1.00",
              format_size(static_cast<std::uint64_t>(few_peak))});
  report.row({in_short(many), fmt::format("{:.2f}", 1e3 / median(many_ns)),
              fmt::format("{:.2f}", ratio(few_ns, many_ns)),
              format_size(static_cast<std::uint64_t>(many_peak))});
  report.at_least(
      fmt::format("dedup on {} lines / on {}: lines per second", in_short(many), in_short(few)),
      ratio(few_ns, many_ns), 0.75);
}

}  // namespace

void run_formats(const Options& options, Report& report) {
  measure_lines(options, report);
  measure_json(options, report);
  measure_csv(options, report);
  measure_many(options, report);
}

}  // namespace sluice::bench
