// What `sluice dedup` says about a run: progress while it goes, statistics at its end.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "dedup_infer.hpp"
#include "shared.hpp"
#include "sluice/audit/audit.hpp"
#include "sluice/filters/contract.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/plan/plan.hpp"
#include "sluice/stream/dedup.hpp"

namespace sluice::cli {

struct WindowReport {
  WindowSpec spec;
  bool refreshed = false;
  double slack = 0;
  double npws = 0;
  unsigned generations = 0;
  std::uint64_t growths = 0;
  std::uint64_t disbelieved = 0;  // records whose clocks were too far ahead
  Nanoseconds latest = 0;         // by which records are late
  // Records held back past the window: counted, in a sample of the keys if each stands for more than
  // one, and predicted.
  std::uint64_t slack_lost = 0, slack_predicted = 0, slack_weight = 1;
  std::uint64_t slack_unknown = 0;  // repeats of keys from a loaded state: perhaps past the window
};

// Keys taken back before the run (--forget).
struct ForgetReport {
  std::uint64_t forgotten = 0;
  std::uint64_t missing = 0;
  std::uint64_t kept = 0;     // not removed: it was not clear whose trace they were
  double expected_wrong = 0;  // expected number of other keys that lost their trace
};

// Of `missing` keys that were not there: how many more were, by chance, found and taken back.
double expected_wrong(std::uint64_t missing, double predicted_fpr);

// Where a run continued an unfinished one.
struct ContinuedReport {
  std::string input;
  std::optional<std::uint64_t> offset = {};  // none: a pipe
  std::uint64_t size = 0;                    // of the input
};

// "'in.csv' from byte 4,096 of 8,192 (50.0 %)"
std::string describe(const ContinuedReport& continued);

struct DedupReport {
  DedupCounts counts;
  std::vector<RecordFault> faults;  // the first records without a key
  std::uint64_t bytes_out = 0;
  std::string filter_name;
  Settings settings;
  FilterStats filter;
  double expected_lost = 0;
  std::uint64_t over_target_records = 0;  // judged while the predicted error was above the target
  double worst_fpr = 0;
  HashKind hash = HashKind::xxh3;
  double seconds = 0;
  std::uint64_t memory_bytes = 0;  // peak resident size of the process
  bool interrupted = false;
  bool running = false;  // asked for by SIGUSR1, not the end
  bool invert = false;
  std::optional<ContinuedReport> continued = {};
  std::optional<WindowReport> window = {};
  std::optional<ForgetReport> forget = {};
  std::optional<Planning> plan = {};
  std::optional<Audit::Report> audit = {};
  std::optional<InferReport> infer = {};
  std::optional<SharedReport> shared = {};  // then `filter` and what is about it mean nothing
};

// Whether `count` of the records is one in `in`, and not just one or two.
bool many(std::uint64_t count, std::uint64_t records, unsigned in) noexcept;
// Whether so many records are late that the clock is likely to be wrong, or their order.
bool many_are_late(const DedupCounts& counts) noexcept;

// bits_per_key = allocated bytes × 8 / keys planned for, or held when the filter is unbounded.
double bits_per_key(const FilterStats& stats);
std::uint64_t peak_memory_bytes();

std::string as_text(const DedupReport& report);
std::string as_json(const DedupReport& report);

// A line on the terminal that is overwritten. None if standard error is not a terminal, or if records
// go to a terminal as well: they would run into the line.
class Progress {
 public:
  // `bytes_to_read`: in all; 0 if that is not known. `to_standard_output`: records are written there.
  Progress(std::uint64_t bytes_to_read, bool to_standard_output);
  // `audit` may be null.
  void update(const DedupCounts& counts, const Audit* audit);
  // Clears the line for the output that follows.
  void clear();

 private:
  // "42 %  3s left  ", or nothing if the size of the input is not known.
  std::string so_far(std::uint64_t bytes_in, double seconds) const;

  using Clock = std::chrono::steady_clock;
  bool on_;
  bool shown_ = false;
  std::uint64_t bytes_to_read_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
};

}  // namespace sluice::cli
