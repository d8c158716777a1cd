#include "dedup_report.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "command.hpp"
#include "dedup_shared.hpp"
#include "json_writer.hpp"
#include "printable.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/kernels/simd.hpp"
#include "sluice/stream/event_time.hpp"
#include "words.hpp"

namespace sluice::cli {
namespace {

constexpr auto kProgressEvery = std::chrono::milliseconds(200);

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

double per_second(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string count_row(std::string_view name, std::uint64_t count, std::uint64_t records,
                      std::string_view fate) {
  return fmt::format("  {:<11} {:>15}  {:>5.1f} %  {}\n", name, format_count(count),
                     share(count, records), fate);
}

// Indented as the last column of the counts.
std::string fault_rows(const std::vector<RecordFault>& faults) {
  std::string rows;
  for (const RecordFault& fault : faults)
    rows += fmt::format("{:40}{}\n", "",
                        printable(fmt::format("{}: record {}: {}", fault.source,
                                              format_count(fault.record), fault.reason)));
  return rows;
}

std::string filter_row(const DedupReport& report) {
  const FilterStats& filter = report.filter;
  const std::string name = printable(report.filter_name);
  if (filter.bytes == 0) return fmt::format("  filter      {}\n", name);
  if (filter.listed > 0)
    return fmt::format("  filter      {}: {}, a list of {} so far, exact\n", name,
                       format_size(filter.bytes), counted(filter.listed, "key"));
  const std::string keys =
      filter.capacity > 0 ? fmt::format("planned for {}, holds {}", counted(filter.capacity, "key"),
                                        format_count(filter.keys))
                          : "holds " + counted(filter.keys, "key");
  return fmt::format("  filter      {}: {}, {}, {:.1f} bits per key\n", name,
                     format_size(filter.bytes), keys, bits_per_key(filter));
}

std::string window_row(const DedupReport& report) {
  if (!report.window) return "";
  const WindowReport& window = *report.window;
  std::string row = fmt::format("  window      {}", describe(window.spec, window.refreshed));
  if (window.generations > 0)
    row += fmt::format("; {}, slack {:.1f} %", counted(window.generations, "generation"),
                       100 * window.slack);
  if (window.growths > 0) row += "; grew " + counted(window.growths, "time");
  if (window.disbelieved > 0)
    row += fmt::format("; {} not believed", counted(window.disbelieved, "time"));
  if (report.counts.forgotten_early > 0)
    row += fmt::format("; {} forgotten early, because --memory was used up",
                       counted(report.counts.forgotten_early, "key"));
  return row + "\n";
}

// `size` is in keys for a count window, otherwise in seconds. How far the two ways of forgetting
// reach: a window, and at random.
double farthest(const Planning& planning, bool at_random) {
  std::uint64_t keys = 0;
  for (const Plan& plan : planning.candidates)
    if (plan.feasible() && (plan.fnr > 0) == at_random) keys = std::max(keys, plan.holds);
  return static_cast<double>(keys);
}

void add_plan(JsonWriter& json, const Planning& planning) {
  json.begin("plan")
      .field("memory", *planning.request.memory)
      .field("filter", planning.choice().filter);
  if (!planning.request.window && !planning.request.expect)
    json.field("window_keys", farthest(planning, false))
        .field("random_keys", farthest(planning, true));
  json.field("reason", in_flags(planning.reason)).end();
}

void add_window(JsonWriter& json, const DedupReport& report) {
  const WindowReport& window = *report.window;
  const auto known = [&](std::uint64_t count) -> std::optional<std::uint64_t> {
    return window.slack_unknown > 0 ? std::nullopt : std::optional(count);
  };
  json.begin("window").field("kind", name_of(window.spec.kind));
  if (window.spec.by_time())
    json.field("size", static_cast<double>(window.spec.size) * 1e-9);
  else
    json.field("size", window.spec.size);
  json.field("anchor", window.refreshed ? "refreshed" : "delivered")
      .field("slack", window.slack)
      .field("npws", window.npws)
      .field("slack_lost", known(window.slack_lost))
      .field("slack_lost_low", window.slack_lost)
      .field("slack_lost_high", window.slack_lost + window.slack_unknown)
      .field("slack_predicted", known(window.slack_predicted))
      .field("slack_sample", window.slack_weight)
      .field("generations", window.generations)
      .field("growths", window.growths)
      .field("late", report.counts.late)
      .field("disbelieved", window.disbelieved)
      .field("forgotten_early", report.counts.forgotten_early)
      .field("stash", report.filter.stash)
      .end();
}

std::string forget_row(const DedupReport& report) {
  if (!report.forget) return "";
  return fmt::format(
      "  forgotten   {:>15}  keys of --forget; not held: {}{}; about {} other keys were forgotten "
      "by mistake\n",
      format_count(report.forget->forgotten), format_count(report.forget->missing),
      report.forget->kept == 0 ? "" : fmt::format("; kept: {}", format_count(report.forget->kept)),
      report.forget->expected_wrong < 0.05 ? "0"
                                           : fmt::format("{:.1f}", report.forget->expected_wrong));
}

std::string error_row(const DedupReport& report) {
  const FilterStats& filter = report.filter;
  if (filter.target_fpr == 0) return "";
  const bool growth_failed = filter.over_target && report.window && report.window->growths > 0 &&
                             filter.planned_fpr > filter.target_fpr;
  return fmt::format(
      "  error       predicted false positives {} at this fill (target {}{}){}; about {} "
      "distinct records lost so far{}\n",
      format_probability(filter.predicted_fpr), format_probability(filter.target_fpr),
      growth_failed ? fmt::format(", which growth could not hold: {} when full",
                                  format_probability(filter.planned_fpr))
                    : "",
      report.over_target_records == 0 ? ""
                                      : fmt::format(", was above the target for {}, at most {}",
                                                    counted(report.over_target_records, "record"),
                                                    format_probability(report.worst_fpr)),
      report.expected_lost < 0.05 ? "0" : fmt::format("{:.1f}", report.expected_lost),
      report.infer && report.infer->options.has_costs() ? " by the filter alone" : "");
}

std::string slack_row(const DedupReport& report) {
  if (!report.window) return "";
  const WindowReport& window = *report.window;
  if (window.slack_unknown > 0)
    return fmt::format(
        "  slack       unknown for {}{} of keys from the loaded state; besides these, {} held back "
        "a window or more after the one let through\n",
        window.slack_weight == 1 ? "" : "about ", counted(window.slack_unknown, "repeat"),
        counted(window.slack_lost, "record"));
  if (window.slack_lost == 0 && window.slack_predicted == 0) return "";
  return fmt::format(
      "  slack       {}{} held back a window or more after the one let through, {} predicted{}\n",
      window.slack_weight == 1 ? "" : "about ", counted(window.slack_lost, "record"),
      format_count(window.slack_predicted),
      window.slack_lost == 0 ? "" : ": --slack makes it less");
}

// The audit does not know which keys a loaded state holds, so the first events of keys count
// neither way.
std::string positives_of(const Audit::Report& audit) {
  if (audit.positives.trials == 0 && !audit.knows_all) return "unknown (keys from before this run)";
  return describe(audit.positives);
}

// Ghosts at the end, if more were asked for than every run has.
std::string ghosts_of(const Audit::Report& audit) {
  constexpr double kAsked = 1000;
  const std::string average = describe(audit.ghosts);
  if (audit.ghosts_now.trials < kAsked) return average;
  return fmt::format("{}, now {}", average, describe(audit.ghosts_now));
}

std::string audit_row(const DedupReport& report) {
  if (!report.audit) return "";
  const Audit::Report& audit = *report.audit;
  return fmt::format(
      "  audit       1/{} of the keys{}: false positives {}, false negatives {}; ghosts {}; {} of "
      "{}\n",
      audit.sample,
      audit.doublings == 0 ? ""
                           : fmt::format(" (1/{} at first, halved to stay within its memory)",
                                         audit.sample >> audit.doublings),
      positives_of(audit), describe(audit.negatives), ghosts_of(audit), format_size(audit.bytes),
      format_size(audit.most_bytes));
}

// If no error was seen the rate is null, not 0: it is only known to be below the upper end.
void add_rate(JsonWriter& json, const std::string& name, const Rate& rate) {
  json.field(name, rate.value().value_or(std::numeric_limits<double>::quiet_NaN()))
      .field(name + "_low", rate.low())
      .field(name + "_high", rate.high());
}

void add_audit(JsonWriter& json, const Audit::Report& audit) {
  json.begin("audit").field("sample", audit.sample);
  add_rate(json, "fpr", audit.positives);
  add_rate(json, "fnr", audit.negatives);
  add_rate(json, "ghost_fpr", audit.ghosts);
  add_rate(json, "ghost_fpr_now", audit.ghosts_now);
  json.field("ghost_probes", static_cast<std::uint64_t>(audit.ghosts.trials))
      .field("ghost_probes_now", static_cast<std::uint64_t>(audit.ghosts_now.trials))
      .field("distinct", audit.positives.trials)
      .field("duplicates", audit.negatives.trials)
      .field("undecided", audit.undecided)
      .field("doublings", audit.doublings)
      .field("keys", audit.keys)
      .field("bytes", audit.bytes)
      .field("most_bytes", audit.most_bytes)
      .field("knows_all", audit.knows_all)
      .end();
}

// A short form for the progress line.
std::string in_short(const Audit::Report& audit) {
  const auto rate = [](const Rate& seen) {
    if (!(seen.trials > 0)) return std::string("?");
    return seen.value() ? format_probability(*seen.value()) : "<" + format_probability(seen.high());
  };
  return fmt::format("false+ {} false- {} ghosts {}", rate(audit.positives), rate(audit.negatives),
                     rate(audit.ghosts));
}

}  // namespace

std::string describe(const ContinuedReport& continued) {
  if (!continued.offset)
    return fmt::format("'{}' from what it brings now", printable(continued.input));
  return fmt::format("'{}' from byte {} of {} ({:.1f} %)", printable(continued.input),
                     format_count(*continued.offset), format_count(continued.size),
                     share(*continued.offset, continued.size));
}

double expected_wrong(std::uint64_t missing, double predicted_fpr) {
  return static_cast<double>(missing) * loss_odds(predicted_fpr);
}

bool many(std::uint64_t count, std::uint64_t records, unsigned in) noexcept {
  constexpr std::uint64_t kHandful = 5;
  return count >= kHandful && count >= (records + in - 1) / in;
}

bool many_are_late(const DedupCounts& counts) noexcept {
  return many(counts.late, counts.records, 10);
}

double bits_per_key(const FilterStats& stats) {
  const std::uint64_t keys = stats.capacity > 0 ? stats.capacity : stats.keys;
  return keys == 0 ? 0 : 8.0 * static_cast<double>(stats.bytes) / static_cast<double>(keys);
}

// Not from getrusage where /proc tells it: what that says includes the process that started this
// one.
std::uint64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  std::uint64_t kilobytes = 0;
  for (std::string name; status >> name; status.ignore(std::numeric_limits<int>::max(), '\n'))
    if (name == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

std::string as_text(const DedupReport& report) {
  const DedupCounts& counts = report.counts;
  std::string text = fmt::format(
      "{}, {} in {} ({}, {}/s){}\n", counted(counts.records, "record"),
      format_size(counts.bytes_in),
      format_duration(std::chrono::microseconds(static_cast<std::int64_t>(report.seconds * 1e6))),
      format_rate(per_second(counts.records, report.seconds)),
      format_size(static_cast<std::uint64_t>(per_second(counts.bytes_in, report.seconds))),
      report.interrupted ? ", interrupted"
      : report.running   ? ", still running"
                         : "");
  if (report.continued) text += fmt::format("  continued   {}\n", describe(*report.continued));
  const char* others = report.invert ? "held back" : "let through";
  text += count_row("distinct", counts.distinct, counts.records, others);
  text += count_row("duplicates", counts.duplicates, counts.records,
                    report.invert ? "let through" : "held back");
  if (counts.unkeyed > 0)
    text += count_row("unkeyed", counts.unkeyed, counts.records,
                      fmt::format("{} ({} malformed, {} without the key)", others,
                                  format_count(counts.malformed),
                                  format_count(counts.unkeyed - counts.malformed))) +
            fault_rows(report.faults);
  if (counts.late > 0)
    text += count_row("late", counts.late, counts.records,
                      fmt::format("a window or more behind the latest time, {}",
                                  format_time(report.window->latest)));
  text += forget_row(report);
  text += window_row(report);
  if (report.shared) {
    text += shared_rows(report);
  } else {
    text += filter_row(report);
    text += error_row(report);
    text += slack_row(report);
  }
  text += audit_row(report);
  if (report.infer) text += infer_row(*report.infer);
  text +=
      fmt::format("  memory      {} peak, for the whole process", format_size(report.memory_bytes));
  return text;
}

std::string as_json(const DedupReport& report) {
  const DedupCounts& counts = report.counts;
  JsonWriter json;
  json.begin()
      .field("records", counts.records)
      .field("distinct", counts.distinct)
      .field("duplicates", counts.duplicates)
      .field("unkeyed", counts.unkeyed)
      .field("malformed", counts.malformed)
      .field("late", counts.late)
      .field("bytes_in", counts.bytes_in)
      .field("bytes_out", report.bytes_out)
      .field("unfinished_bytes", counts.unfinished_bytes)
      .field("interrupted", report.interrupted)
      .field("running", report.running)
      .field("seconds", report.seconds)
      .field("records_per_second", per_second(counts.records, report.seconds))
      .field("memory_bytes", report.memory_bytes)
      .field("hash", name_of(report.hash))
      .field("simd", simd_level());
  json.begin_list("faults");
  for (const RecordFault& fault : report.faults)
    json.begin()
        .field("input", fault.source)
        .field("record", fault.record)
        .field("reason", fault.reason)
        .end();
  json.end_list();
  if (report.continued) {
    json.begin("continued").field("input", report.continued->input);
    if (report.continued->offset)
      json.field("offset", *report.continued->offset).field("size", report.continued->size);
    json.end();
  }
  if (report.plan) add_plan(json, *report.plan);
  if (report.forget)
    json.begin("forget")
        .field("forgotten", report.forget->forgotten)
        .field("missing", report.forget->missing)
        .field("kept", report.forget->kept)
        .field("expected_wrong", report.forget->expected_wrong)
        .end();
  if (report.shared) {
    add_shared(json, report);
    json.end();
    return json.text() + "\n";
  }
  if (report.window) add_window(json, report);
  if (report.audit) add_audit(json, *report.audit);
  if (report.infer) add_infer(json, *report.infer);
  json.begin("filter")
      .field("name", report.filter_name)
      .field("bytes", report.filter.bytes)
      .field("bits_per_key", bits_per_key(report.filter))
      .field("keys", report.filter.keys)
      .field("listed", report.filter.listed)
      .field("capacity", report.filter.capacity)
      .field("target_fpr", report.filter.target_fpr)
      .field("predicted_fpr", report.filter.predicted_fpr)
      .field("expected_lost", report.expected_lost)
      .field("over_target", report.filter.over_target || report.over_target_records > 0)
      .field("over_target_records", report.over_target_records)
      .field("worst_fpr", report.worst_fpr);
  json.begin("parameters");
  for (const auto& [name, value] : report.settings.pairs()) json.field(name, value);
  json.end().end().end();
  return json.text() + "\n";
}

Progress::Progress(std::uint64_t bytes_to_read, bool to_standard_output)
    : on_(stderr_is_terminal() && !(to_standard_output && isatty(STDOUT_FILENO) == 1)),
      bytes_to_read_(bytes_to_read) {}

// Files that grow while they are read may have more than was known.
std::string Progress::so_far(std::uint64_t bytes_in, double seconds) const {
  if (bytes_to_read_ == 0 || bytes_in > bytes_to_read_) return {};
  std::string text = fmt::format("{:.0f} %  ", std::floor(share(bytes_in, bytes_to_read_)));
  if (bytes_in == 0 || seconds < 1) return text;
  const double left =
      seconds * static_cast<double>(bytes_to_read_ - bytes_in) / static_cast<double>(bytes_in);
  return text +
         fmt::format("{} left  ",
                     format_duration(std::chrono::seconds(static_cast<std::int64_t>(left) + 1)));
}

void Progress::update(const DedupCounts& counts, const Audit* audit) {
  if (!on_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kProgressEvery;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::string line = fmt::format("{}  {}  {:.1f} % duplicates", counted(counts.records, "record"),
                                 format_rate(per_second(counts.records, seconds)),
                                 share(counts.duplicates, counts.records));
  if (audit != nullptr) line += "  " + in_short(audit->report());
  line += "  " + format_size(peak_memory_bytes());
  line = so_far(counts.bytes_in, seconds) + line;
  // A line that the terminal wraps cannot be overwritten.
  winsize window{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
    line.resize(std::min<std::size_t>(line.size(), window.ws_col - 1u));
  say(fmt::format("\r{}\033[K", line));
  shown_ = true;
}

void Progress::clear() {
  if (shown_) say("\r\033[K");
  shown_ = false;
}

}  // namespace sluice::cli
