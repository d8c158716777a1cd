// `sluice dedup`: the flags and their help.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "command.hpp"
#include "commands.hpp"
#include "dedup_infer.hpp"
#include "dedup_request.hpp"
#include "dedup_run.hpp"
#include "dedup_window.hpp"

namespace sluice::cli {
namespace {

void add_record_flags(CLI::App& command, DedupFlags& flags) {
  const char* group = "Records and keys";
  command.add_flag("-0,--null", flags.nul, "Records end with a NUL byte instead of a newline")
      ->group(group);
  command.add_flag("--csv", flags.csv, "CSV with a header; quoted fields may hold newlines")
      ->group(group);
  command.add_flag("--tsv", flags.tsv, "Like --csv, with tabs")->group(group);
  command.add_flag("--json", flags.json, "One JSON value per line")->group(group);
  command.add_flag("--no-header", flags.no_header, "CSV and TSV: the first record is data")
      ->group(group);
  command
      .add_option(
          "-k,--key", flags.keys,
          "The fields that make two records the same [the whole record]. CSV, TSV: column names "
          "or numbers. JSON: pointers (/user/id,/ad). Lines: field numbers. May be repeated")
      ->type_name("FIELD[,FIELD]")
      ->allow_extra_args(false)  // one value per --key: what follows is a file
      ->group(group);
  command
      .add_option("-d,--delimiter", flags.delimiter,
                  "Lines: the byte that separates fields [runs of blanks and tabs]")
      ->type_name("CHAR")
      ->group(group);
  command
      .add_flag(
          "--strict", flags.strict,
          "Stop at a record that is malformed or lacks the key, instead of passing it through")
      ->group(group);
  command.add_option("--max-record", flags.max_record, "Stop at a record longer than this")
      ->type_name("SIZE")
      ->capture_default_str()
      ->group(group);
}

void add_filter_flags(CLI::App& command, DedupFlags& flags) {
  const char* group = "Filter";
  command
      .add_option("-n,--expect", flags.expect,
                  "Number of distinct keys to plan for [unknown: the filter grows]")
      ->type_name("COUNT")
      ->group(group);
  command
      .add_option("--fpr", flags.fpr,
                  "Share of distinct records that may be judged duplicates, and so be lost [1e-6]")
      ->type_name("P")
      ->group(group);
  command
      .add_option(
          "-f,--filter", flags.filter,
          "The filter and its parameters; `sluice filters` lists them [growing; with --expect "
          "bloom, with --window cohort]")
      ->type_name("NAME[,PARAMETER=VALUE]")
      ->group(group);
  command
      .add_option(
          "-m,--memory", flags.memory,
          "Memory budget. Alone: for the whole process; remembers as much of the recent past as "
          "fits, or forgets keys at random if that remembers longer. With --window or --expect: "
          "for the filter and its buffers")
      ->type_name("SIZE")
      ->group(group);
  command
      .add_option(
          "--seed", flags.seed,
          "Derive the hash's secret from a number: reproducible, but unsafe with hostile keys")
      ->type_name("N")
      ->group(group);
  command
      .add_flag(
          "--untrusted-keys", flags.untrusted_keys,
          "An attacker may choose keys: hash with a keyed pseudo-random function, a little slower")
      ->group(group);
}

void add_output_flags(CLI::App& command, DedupFlags& flags) {
  const char* group = "Output and state";
  command.add_option("-o,--output", flags.output, "Write to this file instead of standard output")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--duplicates", flags.duplicates, "Write the duplicates to this file")
      ->type_name("FILE")
      ->group(group);
  command
      .add_flag("--invert", flags.invert,
                "Let the duplicates through; hold back all other records, unkeyed ones included")
      ->group(group);
  command
      .add_option(
          "--forget", flags.forget,
          "Before reading the input, forget the keys of the records in this file, which has the "
          "input's format. Only growing, exact, counting, dynamic with forget=yes and cohort "
          "can")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--state", flags.state,
                  "Remember keys across runs: load this file if it exists, and save it at the end")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--checkpoint-every", flags.checkpoint_every,
                  "Also save the state at this interval, a duration or a number of records [30s]")
      ->type_name("30s|1M")
      ->group(group);
  command
      .add_flag("--state-previous", flags.state_previous,
                "Load FILE.previous, the state before the last save; refused if FILE is intact")
      ->group(group);
  command
      .add_option("--audit", flags.audit,
                  "Measure the filter's errors: remember one key in N exactly, and report in the "
                  "statistics how often the filter was wrong about these")
      ->type_name("1/N")
      ->group(group);
  command
      .add_option(
          "--audit-memory", flags.audit_memory,
          "Memory for the audit; when it is full, N doubles [1MiB; with --memory 1/32 of it, at "
          "most 1MiB]")
      ->type_name("SIZE")
      ->group(group);
  command
      .add_option(
          "--audit-ghosts", flags.audit_ghosts,
          "Keys never inserted to probe at exit and at each SIGUSR1, to measure small errors, in "
          "addition to one per 64 records; an error of 1e-6 needs 4M [0]")
      ->type_name("COUNT")
      ->group(group);
  command
      .add_option(
          "--threads", flags.threads,
          "Threads that may work at once; the second works only while the input is fast enough "
          "[2, or 1 on a single processor]")
      ->type_name("1|2")
      ->group(group);
  command
      .add_option("--stats", flags.stats,
                  "Statistics on standard error, at the end and at each SIGUSR1")
      ->type_name("text|json|none")
      ->capture_default_str()
      ->group(group);
}

constexpr const char* kExamples =
    "Examples:\n"
    "  sluice dedup access.log > once.log\n"
    "  sluice dedup --json --key /user,/ad clicks.ndjson --expect 50M --fpr 1e-7 > once.ndjson\n"
    "  sluice dedup --csv --key order_id --state seen.sluice --duplicates again.csv orders.csv\n"
    "  sluice dedup --json --key /id --window 10m --event-time /time events.ndjson > once.ndjson\n"
    "  tail -f events | sluice dedup --memory 64MiB\n"
    "  tail -f events | sluice dedup -k 2 -d , --checkpoint-every 10s --state seen.sluice\n"
    "\n"
    "Exit codes: 0 done, 1 the run failed, 2 wrong usage or state file refused, 130 interrupted "
    "(state saved).\n";

}  // namespace

void add_dedup(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("dedup", "Let each record of a stream through once");
  const auto flags = std::make_shared<DedupFlags>();
  command
      .add_option("files", flags->files,
                  "Input files, read one after another; standard input if - or none")
      ->type_name("FILE")
      ->option_text("FILE ...");
  add_record_flags(command, *flags);
  add_window_flags(command, *flags);
  add_filter_flags(command, *flags);
  add_infer_flags(command, *flags);
  add_output_flags(command, *flags);
  command.footer(kExamples);
  command.callback([flags, &command, &exit_code] {
    // With --forget alone there is something to do: do not wait for input at a terminal.
    if (flags->files.empty() && !flags->forget.empty() && isatty(STDIN_FILENO) == 1)
      flags->files.push_back("/dev/null");
    if (flags->files.empty() && isatty(STDIN_FILENO) == 1) {
      say(command.help("sluice"));
      exit_code = kUsage;
      return;
    }
    exit_code = guarded("dedup", [&] { return run_dedup(understand(*flags)); });
  });
}

}  // namespace sluice::cli
