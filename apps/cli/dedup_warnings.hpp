// What a run of `dedup` warns of: each warning once, without the line of progress, as soon as it is known
// or at the end.
#pragma once

#include "dedup_report.hpp"
#include "dedup_request.hpp"
#include "sluice/judge/judge.hpp"
#include "sluice/stream/dedup.hpp"

namespace sluice::cli {

class DedupWarnings {
 public:
  // Refers to all three.
  DedupWarnings(const DedupRequest& request, const Judge& judge, Progress& progress)
      : request_(request), judge_(judge), progress_(progress) {}

  // More false positives than the target.
  void look_at_error();
  // Keys forgotten before their window ended, because of --memory.
  void look_at_memory(const DedupCounts& counts);
  void look_at_late(const DedupCounts& counts);
  void look_at_slack(const DedupCounts& counts) const;
  // Lines that became one record, because quotes are not closed.
  static void look_at_quotes(const std::optional<OpenQuotes>& quotes);
  // A run shorter than its window of time by arrival, over what may be old records.
  void look_at_arrival(const DedupCounts& counts, bool reads_pipe, double seconds) const;
  // No record with a key.
  void look_at_keys(const DedupCounts& counts) const;
  // More memory than --memory.
  void look_at_peak() const;

 private:
  const DedupRequest& request_;
  const Judge& judge_;
  Progress& progress_;
  bool warned_error_ = false;
  bool warned_memory_ = false;
  bool warned_late_ = false;
};

}  // namespace sluice::cli
