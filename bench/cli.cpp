// The command line against what people would use instead: wall-clock time and peak memory of child
// processes that read one file in the page cache and write to /dev/null, alone and in a pipe.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "contest.hpp"
#include "options.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::bench {
namespace {

// The first is ours, the last is not among those that keep the order of lines.
std::vector<Contestant> contestants() {
  return {{"sluice dedup", {cli_program(), "dedup"}},
          {"mawk '!seen[$0]++'", {"mawk", "!seen[$0]++"}},
          {"gawk '!seen[$0]++'", {"gawk", "!seen[$0]++"}},
          {"perl -ne 'print if !$s{$_}++'", {"perl", "-ne", "print if !$s{$_}++"}},
          {"datamash rmdup 1", {"datamash", "rmdup", "1"}, true},
          {"sort -u", {"sort", "-u"}}};
}

// After the first round: one that took much longer than the fastest of the others will not be the
// fastest of them, and is not asked again; it would take most of the time. By CPU time, which a
// busy machine lengthens little: by the clock, the fastest might be left out with one slow run.
void leave_out_slow(std::vector<Contestant>& all) {
  const std::span<Contestant> others(all.begin() + 1, all.end() - 1);
  double fastest = 1e300;
  for (const Contestant& each : others)
    if (each.done) fastest = std::min(fastest, each.cpu_seconds[0]);
  for (Contestant& each : others) each.again = each.cpu_seconds[0] < 1.5 * fastest;
}

struct Best {
  double fastest = 1e300;    // how many times as fast as it we are, at least
  double leanest = 0;        // our memory in its, at most
  std::size_t compared = 0;  // how many there were
};

// Against contestants [from, to).
Best against(const std::vector<Contestant>& all, std::size_t from, std::size_t to) {
  Best best;
  for (std::size_t i = from; i < to; ++i) {
    if (!all[i].done) continue;
    ++best.compared;
    best.fastest = std::min(best.fastest, times_as_fast(all[0], all[i]));
    best.leanest = std::max(best.leanest, all[0].peak_bytes / all[i].peak_bytes);
  }
  return best;
}

void tell(const std::string& title, const std::vector<Contestant>& all, std::uint64_t lines,
          Report& report) {
  report.table(title, {"command", "million lines per second", "sluice's speed / its", "CPU seconds",
                       "peak memory", "sluice's memory / its"});
  for (const Contestant& each : all) {
    if (!each.done || !all[0].done) {
      report.row({each.name, "not available"});
      continue;
    }
    report.row({each.name,
                fmt::format("{:.2f}", static_cast<double>(lines) / median(each.seconds) / 1e6),
                fmt::format("{:.1f}", times_as_fast(all[0], each)),
                fmt::format("{:.2f}", median(each.cpu_seconds)),
                format_size(static_cast<std::uint64_t>(each.peak_bytes)),
                fmt::format("{:.3f}", all[0].peak_bytes / each.peak_bytes)});
  }
  report.flush();
}

}  // namespace

void run_cli(const Options& options, Report& report) {
  const std::uint64_t lines = options.quick ? 1'000'000 : 10'000'000;
  const int rounds = 3;
  const TemporaryFile input("lines");
  generate(input,
           {"lines", "--records", std::to_string(lines), "--duplicates", "0.3", "--length", "42"});
  const std::string of = fmt::format("{} lines of 43 bytes, 30 % duplicates", in_short(lines));

  std::vector<Contestant> alone = contestants(), piped = contestants();
  race(alone, 1, input.path());
  leave_out_slow(alone);
  race(alone, rounds - 1, input.path());
  tell(of + ", file in cache to /dev/null", alone, lines, report);
  race_in_pipe(piped, 1, input.path());
  leave_out_slow(piped);
  race_in_pipe(piped, rounds - 1, input.path());
  tell(of + ", cat FILE | COMMAND | cat >/dev/null", piped, lines, report);

  Chart chart{"dedup",
              of,
              "million lines per second",
              {"file to /dev/null", "in a pipe: cat | command | cat"}};
  chart.logarithmic = true;
  for (std::size_t i = 0; i < alone.size(); ++i)
    if (alone[i].done && piped[i].done)
      chart.rows.push_back({alone[i].name,
                            {static_cast<double>(lines) / median(alone[i].seconds) / 1e6,
                             static_cast<double>(lines) / median(piped[i].seconds) / 1e6}});
  report.chart(chart);

  if (!alone[0].done || !piped[0].done) return;
  const std::size_t sorting = alone.size() - 1;
  const Best keeping = against(alone, 1, sorting), all = against(alone, 1, alone.size());
  const Best in_pipe = against(piped, 1, piped.size());
  if (keeping.compared > 0)
    report.at_least("dedup / the fastest of mawk, gawk, perl, datamash: lines per second",
                    keeping.fastest, 20);
  if (alone[sorting].done)
    report.at_least("dedup / sort -u: lines per second", times_as_fast(alone[0], alone[sorting]),
                    12);
  if (in_pipe.compared > 0)
    report.at_least("dedup / the fastest of all of these, in a pipe: lines per second",
                    in_pipe.fastest, 8);
  if (keeping.compared > 0 && alone[sorting].done && in_pipe.compared > 0)
    report.claim(fmt::format(
        "{}: `sluice dedup` is {:.1f} × as fast as the fastest of mawk, gawk, perl and datamash, "
        "and {:.1f} × as fast as `sort -u`. In a pipe it is {:.1f} × as fast as the fastest of all "
        "of these. Reading a file, it takes {:.1f} % of the memory of the one that needs least.",
        of, keeping.fastest, times_as_fast(alone[0], alone[sorting]), in_pipe.fastest,
        100 * all.leanest));
  if (all.compared > 0)
    report.at_most("dedup / the one with the least memory, reading a file: peak memory",
                   all.leanest, 1.0 / 8);
}

}  // namespace sluice::bench
