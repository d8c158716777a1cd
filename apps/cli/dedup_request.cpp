#include "dedup_request.hpp"

#include <fmt/format.h>

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "dedup_infer.hpp"
#include "dedup_room.hpp"
#include "dedup_shared.hpp"
#include "dedup_window.hpp"
#include "log_flags.hpp"

#include "sluice/base/error.hpp"
#include "sluice/plan/nearest.hpp"

namespace sluice::cli {
namespace {

DedupRequest::Stats stats_of(const std::string& text) {
  if (text == "text") return DedupRequest::Stats::text;
  if (text == "json") return DedupRequest::Stats::json;
  if (text == "none") return DedupRequest::Stats::none;
  throw BadParameters(fmt::format("--stats '{}' is not text, json or none", text));
}

// Processors that this process may run on; there may be more.
unsigned processors() {
#ifdef __linux__
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    return static_cast<unsigned>(CPU_COUNT(&allowed));
#endif
  return std::thread::hardware_concurrency();
}

unsigned threads_of(const std::string& text) {
  if (text.empty()) return processors() > 1 ? 2 : 1;
  if (text == "1") return 1;
  if (text == "2") return 2;
  throw BadParameters(fmt::format("--threads '{}' is not 1 or 2", text));
}

void understand_state(const DedupFlags& flags, DedupRequest& request) {
  if (flags.state.empty() && flags.state_previous)
    throw BadParameters("--state-previous needs --state FILE");
  if (flags.state.empty() && flags.abandon)
    throw BadParameters("--abandon gives up the unfinished run of a state: it needs --state FILE");
  if (flags.state.empty() && !flags.checkpoint_every.empty())
    throw BadParameters("--checkpoint-every needs --state FILE: without one nothing is saved");
  if (!flags.state.empty() && request.filter.substr(0, request.filter.find(',')) == "none")
    throw BadParameters("--filter none remembers nothing: there is no state to keep, drop --state");
  if (!flags.checkpoint_every.empty())
    request.checkpoint_every =
        parse_duration_or_count("--checkpoint-every", flags.checkpoint_every);
}

// An unfinished run can be continued only with the same: its outputs would be of two kinds.
std::string shape_of(const DedupFlags& flags) {
  std::string shape;
  const auto add = [&shape](std::string_view flag, std::string_view value = {}) {
    shape +=
        fmt::format("{}{}{}{}", shape.empty() ? "" : " ", flag, value.empty() ? "" : " ", value);
  };
  if (flags.binary) add("--binary");
  if (flags.invert) add("--invert");
  if (flags.learn_priors) add("--learn-priors");
  if (flags.posterior) add("--posterior");
  for (const auto& [flag, value] :
       {std::pair("--late", &flags.late), std::pair("--cost-lost", &flags.cost_lost),
        std::pair("--cost-duplicate", &flags.cost_duplicate),
        std::pair("--cost-lost-field", &flags.cost_lost_field),
        std::pair("--cost-duplicate-field", &flags.cost_duplicate_field),
        std::pair("--prior-field", &flags.prior_field),
        std::pair("--prior-table", &flags.prior_table)})
    if (!value->empty()) add(flag, *value);
  return shape;
}

// The audit takes a share of --memory, too.
constexpr std::uint64_t kAuditShare = 32;
constexpr std::uint64_t kMostGhosts = 1'000'000'000;

void understand_audit(const DedupFlags& flags, DedupRequest& request) {
  if (flags.audit.empty()) {
    for (const auto& [value, flag] : {std::pair(&flags.audit_memory, "--audit-memory"),
                                      std::pair(&flags.audit_ghosts, "--audit-ghosts")})
      if (!value->empty()) throw BadParameters(fmt::format("{} needs --audit 1/N", flag));
    return;
  }
  const std::string_view text = flags.audit;
  double sample = 0;
  if (text.starts_with("1/")) {
    sample = read_number(text.substr(2)).value_or(0);
  } else if (text.find_first_of(".%e") != std::string_view::npos) {
    const bool percent = text.ends_with('%');
    const std::string_view number = text.substr(0, text.size() - (percent ? 1 : 0));
    // A share has no unit, such as the k of 1k.
    if (number.find_first_of("kMG") == std::string_view::npos)
      sample = (percent ? 100 : 1) / read_number(number).value_or(0);
    // 1 % is one in 100, whatever rounding makes of it.
    constexpr double kRounding = 1e-9;
    if (std::abs(sample - std::round(sample)) <= kRounding * sample) sample = std::round(sample);
  }
  if (!(sample >= 1 && sample <= static_cast<double>(Audit::kMostSample)) ||
      sample != std::floor(sample))
    throw BadParameters(
        fmt::format("--audit '{}' is not a share of the keys: give one in N, such as 1/1024 or 1%, "
                    "with a whole N from 1 to {}",
                    text, Audit::kMostSample));
  Audit::Params audit;
  audit.sample = static_cast<std::uint64_t>(sample);
  if (!flags.audit_memory.empty()) {
    audit.most_bytes = parse_size("--audit-memory", flags.audit_memory);
    request.audit_memory_given = true;
    if (audit.most_bytes < Audit::kLeastBytes)
      throw BadParameters(fmt::format("--audit-memory {} is too small: give {} or more",
                                      flags.audit_memory, exact_size(Audit::kLeastBytes)));
  }
  if (!flags.audit_ghosts.empty()) {
    request.audit_ghosts = parse_count("--audit-ghosts", flags.audit_ghosts);
    if (request.audit_ghosts > kMostGhosts)
      throw BadParameters(
          fmt::format("--audit-ghosts {} would take minutes: give at most 1G", flags.audit_ghosts));
  }
  request.audit = audit;
}

// The part of --memory that the filter cannot have.
std::uint64_t beside_filter(std::uint64_t memory, std::uint64_t beside, DedupRequest& request) {
  if (!request.audit) return beside;
  Audit::Params& audit = *request.audit;
  if (!request.audit_memory_given)
    audit.most_bytes = std::clamp(memory / kAuditShare, Audit::kLeastBytes, audit.most_bytes);
  const std::uint64_t least = beside + kLeastFilterBytes;
  const std::uint64_t share =
      request.audit_memory_given ? audit.most_bytes : least / (kAuditShare - 1) + 1;
  if (memory < audit.most_bytes || memory - audit.most_bytes < least)
    throw BadParameters(
        fmt::format("--memory {} leaves no room for {}: give {} or more, or drop one of them",
                    exact_size(memory), request.audit_memory_given ? "--audit-memory" : "--audit",
                    planning::size_of_at_least(least + share)));
  return beside + audit.most_bytes;
}

PlanRequest plan_request_of(DedupRequest& request) {
  PlanRequest wanted{.rate = request.rate,
                     .expect = request.wish.keys,
                     .slack = request.slack,
                     .npws = request.npws,
                     .memory = request.memory};
  if (request.fpr_given) wanted.fpr = request.wish.fpr;
  if (request.window) {
    wanted.window = request.window->spec;
    wanted.anchor = request.window->anchor;
  }
  if (request.memory)
    wanted.beside = beside_filter(*request.memory, kProcessBytes + request.room, request);
  return wanted;
}

// A filter that is named gets the size that the planner would give it.
void make_as_named(DedupRequest& request) {
  const Plan named = plan_named(request.filter, plan_request_of(request));
  request.fpr_given |= request.filter.find(",fpr=") != std::string::npos;
  request.filter = named.filter_text();
  request.wish = named.wish();
  if (!request.window) return;
  request.window->filter = named.filter;
  request.window->fpr = named.target_fpr;
  request.window->keys = named.keys;
  request.window->generations = named.generations;
}

// Without --filter the planner chooses: `sluice plan` gives the same answer for the same flags.
void understand_plan(const DedupFlags& flags, std::optional<std::uint64_t> room,
                     DedupRequest& request) {
  if (!flags.memory.empty()) {
    request.memory = parse_size("--memory", flags.memory);
    make_room(flags, room, request);
  }
  if (request.filter_named) {
    if (request.memory)
      throw BadParameters(
          "--memory chooses what to remember, and so does --filter: give one of them");
    make_as_named(request);
    return;
  }
  Planning planning = plan(plan_request_of(request), PlanScope::choice);
  if (!planning.chosen) throw BadParameters(planning.reason);
  const Plan& choice = planning.choice();
  request.filter = choice.filter_text();
  request.wish = choice.wish();
  if (choice.window) {
    if (!request.window) request.window = choice.window_params();
    request.window->filter = choice.filter;
    request.window->fpr = choice.target_fpr;
    request.window->keys = choice.keys;
    // There is one window per process: a table for this many keys is small, and starting with fewer
    // would cost a fast stream several stages.
    if (choice.window->by_time() && !choice.keys) request.window->keys = Window::kFirstKeys;
    request.window->generations = choice.generations;
    // A filter that was named starts with its table.
    request.window->listed = true;
    if (request.memory) request.window->memory = *request.memory - planning.request.beside;
  }
  if (!request.memory) return;
  share_room(request.window ? request.room
                            : *request.memory - (planning.request.beside - request.room) -
                                  std::min(choice.bytes, *request.memory - planning.request.beside),
             request);
  request.filter_given = request.filter_named = true;
  request.filter_asked = request.filter;
  request.plan = std::move(planning);
}

// Two streams in one pipe could not be told apart again.
void check_standard_output(const DedupRequest& request) {
  std::string first = is_standard_output(request.output) ? "the output" : "";
  for (const auto& [file, flag] : {std::pair(&request.duplicates, "--duplicates -"),
                                   std::pair(&request.late_output, "--late-output -")}) {
    if (*file != "-") continue;
    if (!first.empty())
      throw BadParameters(
          fmt::format("{} and {} are both standard output: name a file for one of them{}", flag,
                      first, first == "the output" ? ", such as --output FILE" : ""));
    first = flag;
  }
}

void understand_hash(const DedupFlags& flags, DedupRequest& request) {
  if (!flags.seed.empty()) request.seed = parse_count("--seed", flags.seed);
  request.untrusted_keys = flags.untrusted_keys;
  if (request.seed && request.untrusted_keys)
    throw BadParameters(
        "--seed makes a secret that can be guessed, and --untrusted-keys needs one that cannot: "
        "give one of them");
}

}  // namespace

bool writes_standard_output(const DedupRequest& request) {
  return is_standard_output(request.output) || request.duplicates == "-" ||
         request.late_output == "-";
}

void understand_input(DedupFlags& flags, LogTimes times, DedupRequest& request) {
  if (flags.binary) request.archives = Archives::read;
  if (auto means = apply_log(flags, flags.files, times, request.archives))
    request.notes.push_back(std::move(*means));
  request.files = flags.files;
  if (request.files.empty()) request.files.push_back("-");
  understand_records(flags, request.options);
  request.options.strict = flags.strict;
  request.options.most_record_bytes = parse_size("--max-record", flags.max_record);
  if (request.options.most_record_bytes == 0)
    throw BadParameters("--max-record 0 refuses every record: give 1 or more");
  request.options.threads = threads_of(flags.threads);
  request.unpack.own_thread = request.options.threads > 1;
}

DedupRequest understand(const DedupFlags& given, std::optional<std::uint64_t> room) {
  DedupRequest request;
  DedupFlags flags = given;
  request.shared = open_filter(flags);
  const bool by_time = !flags.window.empty() && !flags.arrival_time &&
                       parse_window("--window", flags.window).by_time();
  understand_input(flags, by_time ? LogTimes::needed : LogTimes::no, request);
  request.options.invert = flags.invert;
  request.follow = flags.follow;
  request.filter = request.filter_asked = flags.filter;
  if (!flags.expect.empty()) {
    request.wish.keys = parse_count("--expect", flags.expect);
    if (*request.wish.keys == 0)
      throw BadParameters("--expect 0 leaves nothing to do: give 1 or more");
  }
  if (!flags.fpr.empty()) request.wish.fpr = parse_probability("--fpr", flags.fpr);
  request.filter_given = !(flags.filter.empty() && flags.expect.empty() && flags.fpr.empty());
  request.filter_named = !flags.filter.empty();
  request.fpr_given = !flags.fpr.empty();
  understand_hash(flags, request);
  request.output = flags.output;
  request.duplicates = flags.duplicates;
  request.forget = flags.forget;
  if (flags.forget == "-" && std::ranges::count(request.files, "-") > 0)
    throw BadParameters(
        "--forget - and the input are both standard input: name a file for one of them");
  request.state = flags.state;
  request.state_previous = flags.state_previous;
  request.abandon = flags.abandon;
  request.shape = shape_of(flags);
  request.stats = stats_of(flags.stats);
  understand_window(flags, request);
  if (!flags.log.empty() && by_time && !flags.follow)
    if (auto order = order_by_time(request.files, request.options, request.archives))
      request.notes.push_back(std::move(*order));
  check_standard_output(request);
  understand_audit(flags, request);
  if (!request.shared) understand_plan(flags, room, request);
  understand_state(flags, request);
  understand_infer(flags, request);
  return request;
}

Labels labels_of(const DedupOptions& options) {
  static constexpr const char* kKinds[] = {"lines", "nul", "csv", "tsv", "json"};
  const Format& format = options.format;
  Labels labels = {{"records", kKinds[static_cast<std::size_t>(format.kind)]}};
  if (!format.header) labels.emplace_back("header", "no");
  if (format.delimiter != 0) labels.emplace_back("delimiter", std::string(1, format.delimiter));
  const char* const key_label = key_flag(options.key_style) + 2;  // without its dashes
  for (const std::string& key : options.keys) labels.emplace_back(key_label, key);
  if (options.key_style.ignore_case) labels.emplace_back("ignore-case", "yes");
  if (options.key_style.trim) labels.emplace_back("trim", "yes");
  if (!options.key_style.unless_empty && !options.keys.empty())
    labels.emplace_back("empty-keys", "yes");
  // An expression with a group `time` says all.
  if (options.event_time && options.time_by != KeyStyle::By::time_group)
    labels.emplace_back(options.time_by == KeyStyle::By::bytes ? "time-bytes" : "event-time",
                        *options.event_time);
  return labels;
}

}  // namespace sluice::cli
