#include "dedup_shared.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "json_writer.hpp"
#include "printable.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "words.hpp"

namespace sluice::cli {
namespace {

using Given = std::vector<std::pair<bool, const char*>>;

const char* first_of(const Given& flags) {
  for (const auto& [given, flag] : flags)
    if (given) return flag;
  return nullptr;
}

// What the filter was made with.
Given of_filter(const DedupFlags& flags) {
  return {{!flags.window.empty(), "--window"},       {flags.refresh, "--refresh"},
          {!flags.expect.empty(), "--expect"},       {!flags.fpr.empty(), "--fpr"},
          {!flags.rate.empty(), "--rate"},           {!flags.slack.empty(), "--slack"},
          {!flags.npws.empty(), "--npws"},           {!flags.growth.empty(), "--growth"},
          {!flags.memory.empty(), "--memory"},       {!flags.seed.empty(), "--seed"},
          {flags.untrusted_keys, "--untrusted-keys"}};
}

Given of_state(const DedupFlags& flags) {
  return {{!flags.state.empty(), "--state"},
          {!flags.checkpoint_every.empty(), "--checkpoint-every"},
          {flags.state_previous, "--state-previous"},
          {flags.abandon, "--abandon"}};
}

Given of_audit(const DedupFlags& flags) {
  return {{!flags.audit.empty(), "--audit"},
          {!flags.audit_memory.empty(), "--audit-memory"},
          {!flags.audit_ghosts.empty(), "--audit-ghosts"}};
}

Given of_costs(const DedupFlags& flags) {
  return {{!flags.cost_lost.empty(), "--cost-lost"},
          {!flags.cost_duplicate.empty(), "--cost-duplicate"},
          {!flags.cost_lost_field.empty(), "--cost-lost-field"},
          {!flags.cost_duplicate_field.empty(), "--cost-duplicate-field"},
          {!flags.prior_field.empty(), "--prior-field"},
          {!flags.prior_table.empty(), "--prior-table"},
          {flags.learn_priors, "--learn-priors"},
          {flags.posterior, "--posterior"}};
}

// Only for a window of time.
Given of_time(const DedupFlags& flags) {
  const char* const time = time_flag(flags);
  return {{time != nullptr, time},
          {flags.arrival_time, "--arrival-time"},
          {!flags.max_ahead.empty(), "--max-ahead"},
          {!flags.late.empty(), "--late"},
          {!flags.late_output.empty(), "--late-output"}};
}

void refuse_flags(const DedupFlags& flags) {
  if (const char* const flag = first_of(of_filter(flags)))
    throw BadParameters(
        fmt::format("{} says how a filter is made, and this one stands on servers: leave it out, "
                    "and give it to `sluice cluster create`",
                    flag));
  if (const char* const flag = first_of(of_state(flags)))
    throw BadParameters(
        fmt::format("{} keeps a filter in a file, and this one stands on servers, which keep it: "
                    "leave it out. What was read and not yet written is not kept: give a run that "
                    "was interrupted its input from there on",
                    flag));
  if (const char* const flag = first_of(of_audit(flags)))
    throw BadParameters(
        fmt::format("{} measures a filter of this process, and this one stands on servers: leave "
                    "it out; `sluice cluster status` shows the error that its slices predict",
                    flag));
  if (const char* const flag = first_of(of_costs(flags)))
    throw BadParameters(
        fmt::format("{} needs a filter of this process, which knows the age of its keys: leave it "
                    "out, or give another --filter",
                    flag));
  if (!flags.forget.empty())
    throw BadParameters(
        "--forget takes keys back from a filter of this process, and this one stands on servers: "
        "leave it out, or give another --filter");
}

// So that the parser of --window reads the same again.
std::string text_of(const WindowSpec& window) {
  switch (window.kind) {
    case WindowSpec::Kind::count:
      return fmt::format("{}", window.size);
    case WindowSpec::Kind::time:
      return fmt::format("{}ns", window.size);
    case WindowSpec::Kind::landmark:
      break;
  }
  return window.size == parse_window("--window", "day").size ? "day" : "hour";
}

const char* fate_of(const std::string& rule) {
  return rule == "duplicate" ? "held back" : "let through";
}

double per_record(std::uint64_t bytes, const DedupReport& report) {
  return report.counts.records == 0
             ? 0
             : static_cast<double>(bytes) / static_cast<double>(report.counts.records);
}

}  // namespace

std::shared_ptr<SharedFilter> open_filter(DedupFlags& flags) {
  if (!is_server_url(flags.filter)) {
    const char* const flag = first_of({{!flags.password_file.empty(), "--password-file"},
                                       {!flags.when_unreachable.empty(), "--when-unreachable"}});
    if (flag != nullptr)
      throw BadParameters(fmt::format(
          "{} is for a filter on servers: it needs --filter redis://host:port/name", flag));
    return nullptr;
  }
  refuse_flags(flags);
  SharedFlags shared{.url = flags.filter, .password_file = flags.password_file};
  if (!flags.when_unreachable.empty()) shared.when_unreachable = flags.when_unreachable;
  auto filter = open_shared(shared);
  const cluster::Layout& layout = filter->layout();
  if (const char* const flag = first_of(of_time(flags));
      flag != nullptr && !(layout.window && layout.window->by_time()))
    throw BadParameters(
        fmt::format("{} needs a window of time, and the filter '{}' remembers {}: leave it out",
                    flag, flags.filter, window_text(layout)));
  flags.filter = "none";
  if (layout.window) {
    flags.window = text_of(*layout.window);
    flags.refresh = layout.anchor == Anchor::refreshed;
  }
  return filter;
}

std::string reading_of_shared(const DedupRequest& request) {
  const cluster::Layout& layout = request.shared->layout();
  std::string text =
      fmt::format("filter: {}, {}", window_text(layout),
                  layout.sites() == 1 ? std::string("on one server")
                                      : fmt::format("in {}", counted(layout.sites(), "slice")));
  if (layout.window && layout.window->by_time())
    text += request.options.event_time
                ? fmt::format(", by event time {}", *request.options.event_time)
                : std::string(", by arrival");
  return text;
}

std::string shared_rows(const DedupReport& report) {
  const SharedReport& shared = *report.shared;
  std::string rows = fmt::format("  filter      {}\n", printable(shared.url));
  rows +=
      fmt::format("  servers     {}, {:.1f} bytes per record sent, {:.1f} received{}\n",
                  counted(shared.traffic.requests, "request"),
                  per_record(shared.bytes_sent, report), per_record(shared.bytes_received, report),
                  shared.traffic.unanswered == 0
                      ? ""
                      : fmt::format("; {} not answered", format_count(shared.traffic.unanswered)));
  if (shared.ruled > 0)
    rows += fmt::format("  by rule     {:>15}  {:5} without an answer that can be believed, {}\n",
                        format_count(shared.ruled), "", fate_of(shared.rule));
  if (shared.unsure > 0)
    rows += fmt::format(
        "  unsure      {:>15}  {:5} let through after an answer that came too late: "
        "they may be repeats\n",
        format_count(shared.unsure), "");
  if (!shared.problem.empty()) rows += fmt::format("  problem     {}\n", printable(shared.problem));
  return rows;
}

void add_shared(JsonWriter& json, const DedupReport& report) {
  const SharedReport& shared = *report.shared;
  if (report.window) {
    json.begin("window").field("kind", name_of(report.window->spec.kind));
    if (report.window->spec.by_time())
      json.field("size", static_cast<double>(report.window->spec.size) * 1e-9);
    else
      json.field("size", report.window->spec.size);
    json.field("anchor", report.window->refreshed ? "refreshed" : "delivered")
        .field("slack", report.window->slack)
        .field("late", report.counts.late)
        .field("disbelieved", report.window->disbelieved)
        .end();
  }
  json.begin("shared")
      .field("filter", shared.url)
      .field("when_unreachable", shared.rule)
      .field("requests", shared.traffic.requests)
      .field("unanswered", shared.traffic.unanswered)
      .field("ruled", shared.ruled)
      .field("unsure", shared.unsure)
      .field("bytes_sent", shared.bytes_sent)
      .field("bytes_received", shared.bytes_received)
      .field("problem", shared.problem)
      .end();
}

}  // namespace sluice::cli
