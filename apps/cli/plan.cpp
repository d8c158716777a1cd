// `sluice plan`: say what you want, and see which filters do it, which one is chosen and why.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "json_writer.hpp"
#include "plan_sites.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/plan/slack_cost.hpp"
#include "words.hpp"

namespace sluice::cli {
namespace {

struct PlanFlags {
  std::string window, rate, expect, fpr, fnr, memory, slack, npws, lines, repeat_every;
  SitesFlags sites;
  bool refresh = false, json = false;
};

double parse_lines(const std::string& text) {
  const std::optional<double> lines = read_number(text);
  if (!lines || !(*lines >= 1) || !(*lines < 1e6))
    throw BadParameters(
        fmt::format("--lines '{}' is not a number of cache lines: give 1 or more", text));
  return *lines;
}

PlanRequest request_of(const PlanFlags& flags) {
  PlanRequest request{.anchor = flags.refresh ? Anchor::refreshed : Anchor::delivered};
  const auto share = [](const char* flag, const std::string& text, std::optional<double>& to) {
    if (!text.empty()) to = parse_probability(flag, text);
  };
  if (!flags.window.empty()) request.window = parse_window("--window", flags.window);
  if (flags.refresh && !request.window) throw BadParameters("--refresh needs --window");
  if (!flags.rate.empty()) request.rate = parse_rate("--rate", flags.rate);
  if (!flags.expect.empty()) request.expect = parse_count("--expect", flags.expect);
  share("--fpr", flags.fpr, request.fpr);
  share("--fnr", flags.fnr, request.fnr);
  share("--slack", flags.slack, request.slack);
  share("--npws", flags.npws, request.npws);
  if (!flags.lines.empty()) request.lines = parse_lines(flags.lines);
  if (!flags.memory.empty()) request.memory = parse_size("--memory", flags.memory);
  request.beside = kProcessBytes;
  return request;
}

// Of the plans with a window that slides, if asked for.
std::optional<SlackCost> slack_cost_of(const PlanFlags& flags, const Plan& plan) {
  if (flags.repeat_every.empty() || !plan.window) return std::nullopt;
  return slack_cost(plan, parse_window("--repeat-every", flags.repeat_every));
}

void check_repeat_every(const PlanFlags& flags, const PlanRequest& request) {
  if (flags.repeat_every.empty()) return;
  const WindowSpec interval = parse_window("--repeat-every", flags.repeat_every);
  if (!request.window || request.window->kind != interval.kind ||
      interval.kind == WindowSpec::Kind::landmark)
    throw BadParameters(
        "--repeat-every says how far apart the records of a key are: it needs a --window of the "
        "same "
        "kind, both a number of records (100k) or both a time (10m)");
}

// `apbf` and `apbbf` call them as their papers do.
const char* parameter_of_generations(std::string_view filter) {
  const auto parameters = filter_named(filter.substr(0, filter.find(','))).parameters;
  const bool has =
      std::ranges::find(parameters, "generations", &ParameterInfo::name) != parameters.end();
  return has ? "generations" : "l";
}

// The `dedup` command with the flags that were given: it makes the same plan. The filter is named
// if `dedup` has no flag for a wish, or would not choose it by default.
std::string command_of(const PlanFlags& flags, const Planning& planning) {
  const Plan& plan = planning.choice();
  std::string command = "sluice dedup";
  const auto add = [&](const char* flag, const std::string& text) {
    if (!text.empty()) command += fmt::format(" {} {}", flag, text);
  };
  const bool named = !flags.fnr.empty() || !flags.lines.empty();
  add("--window", flags.window);
  if (flags.refresh) command += " --refresh";
  if (!named) {
    add("--rate", flags.rate);
    add("--expect", flags.expect);
    add("--fpr", flags.fpr);
    add("--memory", flags.memory);
    add("--slack", flags.slack);
    add("--npws", flags.npws);
    return command;
  }
  // Filters that forget at random have no window; if memory alone decides, the plan says which
  // filter.
  if (!plan.window) command = "sluice dedup";
  if (plan.window && flags.window.empty()) add("--window", fmt::format("{}", plan.window->size));
  if (!plan.window && plan.keys) add("--expect", fmt::format("{}", *plan.keys));
  // The room for chance is added once more, but not where the size of the table is given.
  if (plan.window && plan.keys && !plan.table.empty()) {
    add("--expect", fmt::format("{}", *plan.keys));
  } else if (plan.window) {
    add("--rate", flags.rate);
    add("--expect", flags.expect);
  }
  add("--fpr", fmt::format("{:g}", plan.asked_fpr));
  std::string filter = plan.filter_text();
  if (plan.generations)
    filter += fmt::format(",{}={}", parameter_of_generations(filter), *plan.generations);
  add("--filter", filter);
  return command;
}

constexpr const char* kColumns =
    "keys      how many are remembered; for a filter that forgets at random, for how\n"
    "          many later keys on average\n"
    "bytes     of the filter; bits/key: the same for each of these keys\n"
    "fpr       chance that a new key is judged a duplicate, and so is lost\n"
    "fnr       chance that a duplicate is let through\n"
    "slack     how far past the window a key may still be remembered\n"
    "npws      peak share of expired keys among those remembered\n"
    "lines     cache lines that a new key touches, on average\n"
    "x bound   bits per key, as a multiple of the theoretical minimum\n";

using Row = std::vector<std::string>;

std::string share_text(double share) {
  return share == 0 ? "0" : fmt::format("{:.3g} %", 100 * share);
}

Row row_of(const PlanFlags& flags, const Plan& plan, bool chosen, bool windows) {
  Row row = {chosen ? "* " + plan.filter : "  " + plan.filter,
             format_count(plan.holds),
             format_size(plan.bytes),
             fmt::format("{:.1f}", plan.bits_per_key),
             plan.fpr == 0 ? "0" : format_probability(plan.fpr),
             plan.fnr == 0 ? "0" : format_probability(plan.fnr)};
  if (windows) {
    row.push_back(plan.window ? share_text(plan.slack) : "-");
    row.push_back(plan.window ? share_text(plan.npws) : "-");
  }
  if (!flags.repeat_every.empty()) {
    const auto cost = slack_cost_of(flags, plan);
    row.push_back(cost ? share_text(cost->lost) : "-");
  }
  row.push_back(fmt::format("{:.3g}", plan.lines));
  row.push_back(plan.over_bound ? fmt::format("{:.2f}", *plan.over_bound) : "-");
  return row;
}

void print_table(const PlanFlags& flags, const Planning& planning) {
  const bool windows = std::ranges::any_of(
      planning.candidates, [](const Plan& plan) { return plan.window.has_value(); });
  std::vector<Row> rows = {{"  filter", "keys", "bytes", "bits/key", "fpr", "fnr"}};
  if (windows) rows[0].insert(rows[0].end(), {"slack", "npws"});
  if (!flags.repeat_every.empty()) rows[0].push_back("slack lost");
  rows[0].insert(rows[0].end(), {"lines", "x bound"});
  for (std::size_t i = 0; i < planning.candidates.size(); ++i)
    if (planning.candidates[i].feasible())
      rows.push_back(row_of(flags, planning.candidates[i], planning.chosen == i, windows));
  std::vector<std::size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
    fmt::print("{}\n", line);
  }
}

// In words, of the chosen filter.
void print_slack_cost(const PlanFlags& flags, const Planning& planning) {
  const auto cost = slack_cost_of(flags, planning.choice());
  if (!cost) return;
  constexpr double kHour = 3600;
  const std::string per_hour =
      planning.request.rate
          ? fmt::format(", {} per hour", format_count(static_cast<std::uint64_t>(std::min(
                                             1e18, cost->lost * *planning.request.rate * kHour))))
          : "";
  fmt::print(
      "\nslack: for every 1,000 records let through, {:.3g} are held back past the window{}\n",
      1000 * cost->lost, per_hour);
  if (cost->periodic)
    fmt::print(
        "slack: keys that come exactly every {} are let through only every second time or less: "
        "give "
        "a --window that is shorter than that by more than its slack\n",
        flags.repeat_every);
}

void print_text(const PlanFlags& flags, const Planning& planning) {
  print_table(flags, planning);
  if (isatty(STDOUT_FILENO) == 1) fmt::print("\n{}", kColumns);
  std::string left_out;
  for (const Plan& plan : planning.candidates)
    if (!plan.feasible())
      left_out += fmt::format("{}{} ({})", left_out.empty() ? "" : "; ", plan.filter,
                              in_flags(plan.why_not));
  if (!left_out.empty()) fmt::print("\nnot feasible: {}\n", left_out);
  if (!planning.assumed.empty()) fmt::print("\nassumed: {}\n", in_flags(planning.assumed));
  print_slack_cost(flags, planning);
  fmt::print("\nchosen: {}\n{}\n", in_flags(planning.reason), command_of(flags, planning));
}

void add_plan_fields(JsonWriter& json, const PlanFlags& flags, const Plan& plan,
                     std::uint64_t beside, bool chosen) {
  json.begin()
      .field("filter", plan.filter)
      .field("feasible", plan.feasible())
      .field("chosen", chosen);
  if (!plan.feasible()) json.field("why_not", in_flags(plan.why_not));
  if (plan.settings.empty()) {
    json.end();
    return;
  }
  json.field("settings", plan.settings)
      .field("keys", plan.holds)
      .field("bytes", plan.bytes)
      .field("memory", plan.bytes + beside)
      .field("bits_per_key", plan.bits_per_key)
      .field("fpr", plan.fpr)
      .field("fnr", plan.fnr);
  if (plan.window) json.field("slack", plan.slack).field("npws", plan.npws);
  if (const auto cost = slack_cost_of(flags, plan))
    json.field("slack_lost", cost->lost).field("slack_periodic", cost->periodic);
  json.field("lines", plan.lines);
  if (plan.over_bound) json.field("over_bound", *plan.over_bound);
  json.field("target_fpr", plan.target_fpr);
  if (plan.window && plan.window->kind == WindowSpec::Kind::count)
    json.field("window", plan.window->size);
  if (plan.generations) json.field("generations", *plan.generations);
  json.end();
}

void print_json(const PlanFlags& flags, const Planning& planning) {
  JsonWriter json;
  json.begin().field("feasible", planning.chosen.has_value());
  if (planning.chosen)
    json.field("chosen", planning.choice().filter).field("command", command_of(flags, planning));
  json.field("reason", in_flags(planning.reason));
  if (!planning.assumed.empty()) json.field("assumed", in_flags(planning.assumed));
  json.begin_list("filters");
  for (std::size_t i = 0; i < planning.candidates.size(); ++i)
    add_plan_fields(json, flags, planning.candidates[i], planning.request.beside,
                    planning.chosen == i);
  json.end_list();
  if (!planning.chosen) {
    json.begin_list("nearest");
    for (const NearRequest& near : planning.nearest) {
      json.begin().field("flag", in_flags("`" + near.field + "`")).field("value", near.value);
      if (!near.also.empty()) json.field("also", in_flags(near.also));
      json.end();
    }
    json.end_list();
  }
  json.end();
  fmt::print("{}\n", json.text());
}

int run(const PlanFlags& flags) {
  const PlanRequest request = request_of(flags);
  if (flags.sites.given()) {
    if (!flags.repeat_every.empty())
      throw BadParameters(
          "--repeat-every is about one filter: leave it out, or plan without sites");
    return plan_sites(flags.sites, request, flags.json);
  }
  check_repeat_every(flags, request);
  const Planning planning = plan(request);
  if (flags.json)
    print_json(flags, planning);
  else if (planning.chosen)
    print_text(flags, planning);
  // In both forms, the sentence is on standard error.
  if (!planning.chosen) throw RunFailed(planning.reason);
  return kDone;
}

constexpr const char* kNotes =
    "Give what you know, in any combination. --memory alone asks for as many keys as fit; --memory "
    "with --window or --expect and without --fpr asks for the lowest error that fits, up to 1 %.\n"
    "\n"
    "Examples:\n"
    "  sluice plan --window 10m --rate 50k/s --fpr 1e-6\n"
    "  sluice plan --window 1M --memory 32MiB\n"
    "  sluice plan --expect 100M --lines 1\n"
    "  sluice plan --memory 64MiB\n"
    "  sluice plan --window 10m --rate 10M/s --tolerate 1 --fpr 2%\n"
    "  sluice plan --sites 40 --slicing vertical --failed 8\n"
    "\n"
    "Exit codes: 0 there is a plan, 1 there is none (the nearest requests are named), 2 wrong "
    "usage.\n";

}  // namespace

void add_plan(Command& app) {
  Command command = app.subcommand(
      "plan", "Choose a filter: list those that meet your needs, with size and errors");
  const auto flags = std::make_shared<PlanFlags>();
  command.option(
      "-w,--window", flags->window,
      "What to remember: the last N records let through (1M), a span of time (10m), or the current "
      "hour or day in UTC",
      "1M|10m|hour|day");
  command.flag("--refresh", flags->refresh, "A repeat restarts its key's window");
  command.option("--rate", flags->rate, "Expected rate of distinct keys, for a time window",
                 "50k/s");
  command.option("-n,--expect", flags->expect,
                 "Number of distinct keys; with a time window, per window", "COUNT");
  command.option(
      "--fpr", flags->fpr,
      "Share of distinct records that may be judged duplicates, and so be lost [1e-6; with "
      "--memory, the lowest that fits, up to 1 %]",
      "P");
  command.option(
      "--fnr", flags->fnr,
      "Share of duplicates that may be let through; above 0 allows filters that forget at random "
      "[0]",
      "P");
  command.option("-m,--memory", flags->memory,
                 "The most memory that the whole process may take; alone, as many keys as fit",
                 "SIZE");
  command.option("--slack", flags->slack,
                 "How far past the window a key may still be remembered, as a share of it",
                 "SHARE");
  command.option("--npws", flags->npws, "Peak share of expired keys that are still remembered",
                 "SHARE");
  command.option("--lines", flags->lines, "Most cache lines that a new key may touch, on average",
                 "COUNT");
  command.option("--repeat-every", flags->repeat_every,
                 "How far apart the records of a key are, on average: shows what slack will cost",
                 "10m|100k");
  command.flag("--json", flags->json, "Print one JSON object, with the infeasible filters and why");
  add_sites_flags(command, flags->sites);
  command.footer(kNotes);
  command.run([flags] { return run(*flags); });
}

}  // namespace sluice::cli
