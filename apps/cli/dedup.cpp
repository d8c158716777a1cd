// `sluice dedup`: the flags and their help.
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "dedup_infer.hpp"
#include "dedup_request.hpp"
#include "dedup_run.hpp"
#include "dedup_window.hpp"

namespace sluice::cli {

void add_input_flags(Command& command, DedupFlags& flags) {
  command.group("Records and keys");
  add_record_flags(command, flags);
  command.flag(
      "--strict", flags.strict,
      "Stop at a record that is malformed or lacks the key, instead of passing it through");
  command.option("--max-record", flags.max_record, "Stop at a record longer than this", "SIZE");
}

std::vector<std::string> record_arguments(const DedupFlags& flags) {
  std::vector<std::string> arguments;
  for (const auto& [given, flag] :
       {std::pair(flags.nul, "--null"), std::pair(flags.csv, "--csv"),
        std::pair(flags.tsv, "--tsv"), std::pair(flags.json, "--json"),
        std::pair(flags.no_header, "--no-header"), std::pair(flags.ignore_case, "--ignore-case"),
        std::pair(flags.trim, "--trim"), std::pair(flags.empty_keys, "--empty-keys"),
        std::pair(flags.strict, "--strict"), std::pair(flags.binary, "--binary")})
    if (given) arguments.push_back(flag);
  for (const std::string& key : flags.keys) arguments.insert(arguments.end(), {"--key", key});
  for (const auto& [value, flag] :
       {std::pair(&flags.key_regex, "--key-regex"), std::pair(&flags.key_bytes, "--key-bytes"),
        std::pair(&flags.log, "--log"), std::pair(&flags.delimiter, "--delimiter")})
    if (!value->empty()) arguments.insert(arguments.end(), {flag, *value});
  if (flags.max_record != DedupFlags().max_record)
    arguments.insert(arguments.end(), {"--max-record", flags.max_record});
  return arguments;
}

namespace {

void add_filter_flags(Command& command, DedupFlags& flags) {
  command.group("Filter");
  command.option("-n,--expect", flags.expect,
                 "Number of distinct keys to plan for [unknown: the filter grows]", "COUNT");
  command.option("--fpr", flags.fpr,
                 "Share of distinct records that may be judged duplicates, and so be lost [1e-6]",
                 "P");
  command.option(
      "-f,--filter", flags.filter,
      "The filter and its parameters; `sluice filters` lists them [growing; with --expect "
      "bloom, with --window cohort]. Or a filter on servers that many producers share: "
      "redis://host:port/name, redis+cluster://host:port/name; `sluice cluster create` makes it",
      "NAME[,PARAMETER=VALUE]|URL");
  command.option("--password-file", flags.password_file,
                 "Password of the servers: the first line of this file [the environment variable "
                 "SLUICE_REDIS_PASSWORD, if it is set]",
                 "FILE");
  command.option("--when-unreachable", flags.when_unreachable,
                 "What becomes of a record whose server does not answer: wait until it does, hold "
                 "the record back as a duplicate, or let it through as distinct [wait]",
                 "wait|duplicate|distinct");
  command.option("-m,--memory", flags.memory,
                 "The most memory that the whole process may take. Alone: remembers as much of the "
                 "recent past "
                 "as fits, or forgets keys at random if that remembers longer. With --window or "
                 "--expect: with "
                 "the lowest error that fits (time windows: 1e-6 or more), unless --fpr is given",
                 "SIZE");
  command.option(
      "--seed", flags.seed,
      "Derive the hash's secret from a number: reproducible, but unsafe with hostile keys", "N");
  command.flag(
      "--untrusted-keys", flags.untrusted_keys,
      "An attacker may choose keys: hash with a keyed pseudo-random function, a little slower");
}

void add_output_flags(Command& command, DedupFlags& flags) {
  command.group("Output and state");
  command.option(
      "-o,--output", flags.output,
      "Write to this file instead of standard output (-); a name that ends in .gz or .zst "
      "compresses it",
      "FILE");
  command.option("--duplicates", flags.duplicates,
                 "Write the duplicates to this file; - is standard output", "FILE");
  command.flag("--invert", flags.invert,
               "Let the duplicates through; hold back all other records, unkeyed ones included");
  command.option(
      "--forget", flags.forget,
      "Before reading the input, forget the keys of the records in this file, which has the "
      "input's format. Only growing, exact, counting, dynamic with forget=yes and cohort "
      "can",
      "FILE");
  command.option("--state", flags.state,
                 "Remember keys across runs: load this file if it exists, and save it at the end",
                 "FILE");
  command.option("--checkpoint-every", flags.checkpoint_every,
                 "Also save the state at this interval, a duration or a number of records [30s]",
                 "30s|1M");
  command.flag("--state-previous", flags.state_previous,
               "Load FILE.previous, the state before the last save; refused if FILE is intact");
  command.flag("--abandon", flags.abandon,
               "Give up the state's unfinished run: keep its keys, and begin a new run");
  command.option("--audit", flags.audit,
                 "Measure the filter's errors: remember one key in N exactly, and report in the "
                 "statistics how often the filter was wrong about these",
                 "1/N");
  command.option(
      "--audit-memory", flags.audit_memory,
      "Memory for the audit; when it is full, N doubles [1MiB; with --memory 1/32 of it, at "
      "most 1MiB]",
      "SIZE");
  command.option(
      "--audit-ghosts", flags.audit_ghosts,
      "Keys never inserted to probe at exit and at each SIGUSR1, to measure small errors, in "
      "addition to one per 64 records; an error of 1e-6 needs 4M [0]",
      "COUNT");
  command.option(
      "--threads", flags.threads,
      "Threads that may work at once; the second works only while the input is fast enough "
      "[2, or 1 on a single processor]",
      "1|2");
  command.option("--stats", flags.stats,
                 "Statistics on standard error, at the end and at each SIGUSR1", "text|json|none");
}

constexpr const char* kExamples =
    "Examples:\n"
    "  sluice dedup access.log > once.log\n"
    "  sluice dedup --json --key /user,/ad --expect 50M clicks.ndjson > once.ndjson\n"
    "  sluice dedup --key-regex 'user=(\\w+) .* path=(\\S+)' app.log > once.log\n"
    "  sluice dedup --csv --key order_id --state seen --duplicates again.csv new.csv\n"
    "  sluice dedup --json -k /id -w 10m --event-time /time in.ndjson > out.ndjson\n"
    "  tail -f events | sluice dedup --memory 64MiB\n"
    "  tail -f events | sluice dedup -k 2 -d , --checkpoint-every 10s --state seen\n"
    "\n"
    "Exit codes: 0 done, 1 the run failed, 2 wrong usage or state file refused, 129, 130 or "
    "143 interrupted (state saved).\n";

}  // namespace

void add_dedup(Command& app) {
  Command command = app.subcommand("dedup", "Let each record of a stream through once");
  const auto flags = std::make_shared<DedupFlags>();
  command.positionals("files", flags->files,
                      "Input files, read one after another; standard input if - or none",
                      "FILE ...");
  add_input_flags(command, *flags);
  command.flag("--follow", flags->follow,
               "At the end of the files, wait for more, as tail -F does: also when a file is "
               "rotated, truncated or not there yet");
  add_window_flags(command, *flags);
  add_filter_flags(command, *flags);
  add_infer_flags(command, *flags);
  add_output_flags(command, *flags);
  command.footer(kExamples);
  command.run([flags, command] {
    // With --forget alone there is something to do: do not wait for input at a terminal.
    if (flags->files.empty() && !flags->forget.empty() && isatty(STDIN_FILENO) == 1)
      flags->files.push_back("/dev/null");
    if (flags->files.empty() && isatty(STDIN_FILENO) == 1) {
      say(command.help());
      return kUsage;
    }
    return run_dedup(understand(*flags));
  });
}

}  // namespace sluice::cli
