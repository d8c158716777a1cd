#include "dedup_warnings.hpp"

#include <fmt/format.h>

#include "command.hpp"
#include "dedup_report.hpp"
#include "dedup_window.hpp"
#include "sluice/plan/sizing.hpp"

namespace sluice::cli {
namespace {

// What to check when no record had a time.
const char* time_flags(const DedupOptions& options) {
  if (!options.event_time) return "";
  switch (options.time_by) {
    case KeyStyle::By::bytes:
      return ", --time-bytes, --time-format";
    case KeyStyle::By::time_group:
      return ", --time-format";
    default:
      return ", --event-time, --time-format";
  }
}

// One that looks the same when rounded is not printed.
std::string above_target(double fpr, double target) {
  const std::string shown = format_probability(fpr), limit = format_probability(target);
  return shown == limit ? fmt::format("a little above the target of {}", limit)
                        : fmt::format("{}, above the target of {}", shown, limit);
}

}  // namespace

void DedupWarnings::look_at_error() {
  if (warned_error_) return;
  const FilterStats stats = judge_.filter().stats();
  const std::uint64_t records = judge_.meter().over_target(stats);
  if (records == 0) return;
  // An error below the default that nobody asked for: it was the lowest that --memory had room for.
  if (request_.plan && !request_.fpr_given &&
      judge_.meter().worst_fpr(stats) <= planning::kStandardFpr)
    return;
  warned_error_ = true;
  progress_.clear();
  const bool is_over = stats.predicted_fpr > stats.target_fpr;
  // Those that forget at random hold what their parameters make them hold, give or take chance.
  if (judge_.window() == nullptr && !judge_.filter().promises().no_false_negatives) {
    const double fpr = is_over ? stats.predicted_fpr : judge_.meter().worst_fpr(stats);
    warn("dedup",
         fmt::format("the filter's predicted false-positive rate {} {}: its parameters are "
                     "for a higher error, or its table is small, and chance fills it "
                     "unevenly; leave the parameters to --fpr, or give it more memory",
                     is_over ? "is now" : "has been", above_target(fpr, stats.target_fpr)));
    return;
  }
  if (!is_over) {
    warn("dedup",
         fmt::format("the filter's predicted false-positive rate was {}, for {}: more keys came at "
                     "once than it was planned for; plan for the highest rate, with --rate or "
                     "--expect",
                     above_target(judge_.meter().worst_fpr(stats), stats.target_fpr),
                     counted(records, "record")));
    return;
  }
  // The error of a series of filters rises with each filter added, though none is overfull.
  const bool overfull = stats.keys > stats.capacity && stats.capacity > 0;
  warn("dedup",
       fmt::format("the filter holds {}{}: its predicted false-positive rate is now {}, and "
                   "rises; run again with {}",
                   counted(stats.keys, "key"),
                   stats.capacity == 0
                       ? ""
                       : fmt::format(" and was planned for {}", format_count(stats.capacity)),
                   above_target(stats.predicted_fpr, stats.target_fpr),
                   overfull ? "--expect set to the number of distinct keys"
                   : judge_.window() != nullptr
                       ? "--rate or --expect set to what comes"
                       : "the default filter, which holds it at any number of keys"));
}

void DedupWarnings::look_at_memory(const DedupCounts& counts) {
  if (warned_memory_ || counts.forgotten_early == 0) return;
  warned_memory_ = true;
  progress_.clear();
  warn(
      "dedup",
      "more keys came in a window than --memory has room for: the oldest are forgotten before the "
      "window ends, so duplicates of them pass; give more --memory, a shorter --window or a higher "
      "--fpr");
}

void DedupWarnings::look_at_late(const DedupCounts& counts) {
  if (warned_late_ || !many_are_late(counts)) return;
  warned_late_ = true;
  progress_.clear();
  warn(
      "dedup",
      fmt::format("{} of {} are late: a window or more older than the window's latest time, {}; if "
                  "a wrong clock said that, start {}and lower --max-ahead; if records come newest "
                  "first, or inputs overlap in time, sort the records by time first, and give "
                  "rotated files oldest first",
                  format_count(counts.late), counted(counts.records, "record"),
                  format_time(request_.shared ? request_.shared->report().latest
                                              : judge_.window()->clock().now()),
                  !request_.state.empty() ? "a new state without its records "
                                          : "again without its records "));
}

// Repeats that come after just a window, such as those of daily records in a window of 24h.
void DedupWarnings::look_at_slack(const DedupCounts& counts) const {
  const SlackMeter* const slack = judge_.slack();
  if (slack == nullptr || slack->unknown() > 0 || !many(slack->counted(), counts.records, 100))
    return;
  warn(
      "dedup",
      fmt::format("{}{} of {} were held back a window or more after the one let through, because a "
                  "key may be remembered for {:.1f} % longer than the window: give a smaller "
                  "--slack, or a --window that ends well before such repeats",
                  slack->weight() > 1 ? "about " : "", format_count(slack->counted()),
                  counted(counts.records, "record"), 100 * judge_.window()->slack()));
}

void DedupWarnings::look_at_quotes(const std::optional<OpenQuotes>& quotes) {
  if (!quotes) return;
  const std::string where =
      quotes->record == 0 ? "the header" : fmt::format("record {}", format_count(quotes->record));
  warn("dedup",
       fmt::format("input '{}': in {} ('{}'), a quote is opened and never closed: it and the lines "
                   "after it, {} ({}), were taken as one record; close the quote and run again",
                   quotes->source, where, quotes->begin, counted(quotes->lines, "line"),
                   counted(quotes->bytes, "byte")));
}

// check_arrival() refuses files; a pipe may bring events as they happen, or an old log.
void DedupWarnings::look_at_arrival(const DedupCounts& counts, bool reads_pipe,
                                    double seconds) const {
  const Window* const window = judge_.window();
  if (window == nullptr || request_.arrival_time || request_.options.event_time || !reads_pipe ||
      counts.duplicates == 0)
    return;
  const WindowSpec& spec = window->params().spec;
  if (!spec.by_time() || seconds >= static_cast<double>(spec.size) / 1e9) return;
  warn("dedup",
       fmt::format(
           "{} {} by the time of arrival, in a run that was shorter "
           "than the window: if these are old records, such as a log, give the field with "
           "their times (--event-time FIELD) and run again; --arrival-time says that this "
           "is meant",
           counted(counts.duplicates, "record"),
           counts.duplicates == 1 ? "was taken for a duplicate" : "were taken for duplicates"));
}

// Long records, or a system whose libraries take more than planned for.
void DedupWarnings::look_at_peak() const {
  const std::uint64_t peak = peak_memory_bytes();
  if (request_.memory && peak > *request_.memory)
    warn("dedup",
         fmt::format("the run took {} at its peak, more than --memory {}: give it more, or "
                     "limit the length of records (--max-record)",
                     format_size(peak), exact_size(*request_.memory)));
}

void DedupWarnings::look_at_keys(const DedupCounts& counts) const {
  if (counts.records == 0 || counts.unkeyed != counts.records) return;
  warn("dedup",
       fmt::format("no record had the key{}, so all were {}: check {}{} and the record format",
                   request_.options.event_time ? " and the time" : "",
                   request_.options.invert ? "held back" : "passed through",
                   key_flag(request_.options.key_style), time_flags(request_.options)));
}

}  // namespace sluice::cli
