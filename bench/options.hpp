// Options of every part of the benchmark.
#pragma once

#include <string>

#include "report.hpp"

namespace sluice::bench {

struct Options {
  bool quick = false;  // --short: fewer keys and rounds, same tables
  std::string out;     // --out: where plots go; none are drawn without
  int rounds() const { return quick ? 3 : 7; }
};

// `sluice_bench probe-lines FILE` and `probe-json FILE`: baselines for the command.
void split_and_copy(const char* file);
void parse_json(const char* file);

// `guard-lines`, `guard-instructions` and their kin: figures that tests compare with guard.tsv.
// Counting lines takes long: what shares the code of another subject is counted at full counts only.
bool full_counts() noexcept;
void guard_lines();
void guard_growth();
void guard_calls();
void guard_instructions();
void guard_seen();

void run_limits(const Options& options, Report& report);
void run_filters(const Options& options, Report& report);
void run_layouts(const Options& options, Report& report);
void run_prefetch(const Options& options, Report& report);
void run_dynamic(const Options& options, Report& report);
void run_levels(const Options& options, Report& report);
void run_evenness(const Options& options, Report& report);
void run_lines(const Options& options, Report& report);
void run_threads(const Options& options, Report& report);
void run_windows(const Options& options, Report& report);
void run_burst(const Options& options, Report& report);
void run_growing(const Options& options, Report& report);
void run_snapshots(const Options& options, Report& report);
void run_infer(const Options& options, Report& report);
void run_formats(const Options& options, Report& report);
void run_cli(const Options& options, Report& report);
void run_compressed(const Options& options, Report& report);
void run_memory(const Options& options, Report& report);

}  // namespace sluice::bench
