#include "plan_sites.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "json_writer.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/window/spec.hpp"
#include "words.hpp"

namespace sluice::cli {
namespace {

using model::Slicing;

constexpr std::pair<const char*, Slicing> kSlicings[] = {
    {"horizontal", Slicing::horizontal},
    {"vertical", Slicing::vertical},
    {"hv-diced", Slicing::horizontal_vertical},
    {"vh-diced", Slicing::vertical_horizontal},
};

// Of the two flags that mean a number of sites, one is there.
SitesRequest request_of(const SitesFlags& flags, PlanRequest filter) {
  SitesRequest request;
  const auto number = [](const char* flag, const std::string& text) {
    return parse_count(flag, text);
  };
  if (flags.sites.empty() && flags.tolerate.empty())
    throw BadParameters(fmt::format(
        "{} is about a filter over several sites: give --sites, how many there are, or --tolerate, "
        "how many of them may fail",
        !flags.failed.empty()    ? "--failed"
        : !flags.slicing.empty() ? "--slicing"
        : !flags.inner.empty()   ? "--inner"
        : !flags.rule.empty()    ? "--rule"
                                 : "--alive-fpr"));
  if (!flags.sites.empty() && !flags.tolerate.empty())
    throw BadParameters(
        "--sites says how many sites there are, and --tolerate finds it: give one of them");
  if (!flags.slicing.empty()) request.slicing = parse_slicing(flags.slicing);
  if (!flags.sites.empty()) request.sites = number("--sites", flags.sites);
  if (!flags.tolerate.empty()) request.tolerate = number("--tolerate", flags.tolerate);
  if (!flags.failed.empty()) request.failed = number("--failed", flags.failed);
  if (!flags.inner.empty()) request.inner = number("--inner", flags.inner);
  if (!flags.rule.empty()) request.rule = parse_rule(flags.rule);
  if (request.tolerate && !flags.failed.empty())
    throw BadParameters("--tolerate says how many sites may fail: leave out --failed");
  if (request.tolerate) request.fpr = std::exchange(filter.fpr, {});
  request.fnr = std::exchange(filter.fnr, {});
  if (!flags.alive_fpr.empty()) {
    if (!request.tolerate)
      throw BadParameters("--alive-fpr needs --tolerate: with --sites, --fpr is that error");
    filter.fpr = parse_probability("--alive-fpr", flags.alive_fpr);
  }
  request.filter = filter;
  return request;
}

std::string share_text(double share) {
  return share == 0 ? "0" : fmt::format("{:.3g} %", 100 * share);
}

std::string sites_text(std::uint64_t count) {
  return counted(count, "site");
}

// "1 of 51 sites does not answer"
std::string failure_text(const SitesPlan& plan) {
  return fmt::format("{} of {} not answer", format_count(plan.failed),
                     sites_text(plan.sites) + (plan.failed == 1 ? " does" : " do"));
}

// "179,000 per second"
std::string per_second(double rate) {
  return fmt::format(
      "{} per second",
      rate >= 10 ? format_count(static_cast<std::uint64_t>(std::min(1e18, std::round(rate))))
                 : fmt::format("{:.2g}", rate));
}

// What a rule comes to.
std::string in_words(const SitesPlan& plan, const SitesPlan::RuleErrors& errors) {
  const std::optional<double>& rate = plan.request.filter.rate;
  const std::string lost_rate =
      rate && *rate * errors.fpr > 0 ? ", " + per_second(*rate * errors.fpr) : "";
  std::string text =
      fmt::format("{} of new events are lost{}; ", share_text(errors.fpr), lost_rate);
  text += errors.fnr == 0 ? "no repeat is let through"
                          : share_text(errors.fnr) + " of repeats are let through";
  return text;
}

void print_sizes(const SitesPlan& plan) {
  const Slicing slicing = plan.request.slicing;
  const bool horizontal = slicing == Slicing::horizontal;
  const std::optional<WindowSpec>& window = plan.request.filter.window;
  const bool anchored = plan.request.filter.anchor == Anchor::refreshed;
  std::string what =
      horizontal ? "each with a filter for its share of the keys"
                 : fmt::format("with the bits of one Bloom filter, {} per key", plan.probes);
  if (window) what = "each with a window for its share of the keys: " + describe(*window, anchored);
  fmt::print("sites      {} {}, {}\n", format_count(plan.sites), name_of_slicing(slicing), what);
  if (plan.slice)
    fmt::print("each site  {} for {}, {}\n", plan.slice->filter,
               counted(plan.slice->keys.value_or(plan.slice->holds), "key"),
               format_size(plan.site_bytes));
  else if (plan.bits)
    fmt::print("each site  {} ({})\n", format_size(plan.site_bytes), counted(*plan.bits, "bit"));
  if (plan.site_bytes > 0) fmt::print("all sites  {}\n", format_size(plan.site_bytes * plan.sites));
  fmt::print("an event   asks {} on average\n",
             plan.messages == 1 ? "1 site" : fmt::format("{:.3g} sites", plan.messages));
}

void print_why(const SitesPlan& plan) {
  if (!plan.request.tolerate) return;
  const auto for_errors = static_cast<std::uint64_t>(std::ceil(plan.needed * (1 - 1e-12)));
  if (plan.sites > std::max(for_errors, plan.failed + 1))
    fmt::print("\n{} would keep the errors; the memory of a site takes {}\n",
               sites_text(for_errors), format_count(plan.sites));
  else
    fmt::print("\n{:.6g} sites would keep the errors: rounded up\n", plan.needed);
}

void print_rules(const SitesPlan& plan) {
  fmt::print("\nwhile {}:\n", failure_text(plan));
  std::size_t widest = 0;
  for (const auto& each : plan.rules) widest = std::max(widest, each.rule.text().size());
  constexpr const char *kLost = "of new events lost", *kPassed = "of repeats let through";
  fmt::print("  {:<{}}  {}  {}\n", "rule", widest, kLost, kPassed);
  for (const auto& each : plan.rules)
    fmt::print("{} {:<{}}  {:>18}  {:>22}\n", each.chosen ? "*" : " ", each.rule.text(), widest,
               share_text(each.fpr), share_text(each.fnr));
  const auto chosen = std::ranges::find(plan.rules, true, &SitesPlan::RuleErrors::chosen);
  if (chosen != plan.rules.end())
    fmt::print("\n{}: {}\n", chosen->rule.text(), in_words(plan, *chosen));
}

void print_json(const SitesPlan& plan) {
  JsonWriter json;
  const std::optional<double>& rate = plan.request.filter.rate;
  json.begin()
      .field("feasible", plan.feasible())
      .field("slicing", name_of_slicing(plan.request.slicing))
      .field("sites", plan.sites)
      .field("inner", plan.request.inner)
      .field("failed", plan.failed);
  if (plan.request.tolerate) json.field("needed", plan.needed);
  json.field("alive_fpr", plan.fpr);
  if (plan.probes > 0) json.field("probes", plan.probes).field("density", plan.density);
  json.field("messages", plan.messages);
  if (plan.slice)
    json.field("filter", plan.slice->filter)
        .field("settings", plan.slice->settings)
        .field("site_keys", plan.slice->keys.value_or(plan.slice->holds));
  if (plan.bits) json.field("site_bits", *plan.bits);
  if (plan.site_bytes > 0)
    json.field("site_bytes", plan.site_bytes).field("bytes", plan.site_bytes * plan.sites);
  json.begin_list("rules");
  for (const auto& each : plan.rules) {
    json.begin()
        .field("rule", each.rule.text())
        .field("chosen", each.chosen)
        .field("fpr", each.fpr)
        .field("fnr", each.fnr);
    if (rate) json.field("lost_per_second", each.fpr * *rate);
    json.end();
  }
  json.end_list();
  if (!plan.feasible()) {
    json.field("why_not", in_flags(plan.why_not)).begin_list("nearest");
    for (const NearSites& near : plan.nearest) {
      json.begin().field("flag", in_flags("`" + near.field + "`")).field("value", near.value);
      if (!near.also.empty()) json.field("also", in_flags(near.also));
      json.end();
    }
    json.end_list();
  }
  fmt::print("{}\n", json.end().text());
}

}  // namespace

bool SitesFlags::given() const {
  for (const std::string* text : {&sites, &failed, &tolerate, &slicing, &inner, &rule, &alive_fpr})
    if (!text->empty()) return true;
  return false;
}

Slicing parse_slicing(const std::string& text) {
  const auto found =
      std::ranges::find(kSlicings, text, [](const auto& each) { return std::string(each.first); });
  if (found == std::end(kSlicings))
    throw BadParameters(
        fmt::format("--slicing '{}' is not horizontal, vertical, hv-diced or vh-diced", text));
  return found->second;
}

std::string name_of_slicing(Slicing slicing) {
  const auto found =
      std::ranges::find(kSlicings, slicing, [](const auto& each) { return each.second; });
  return found == std::end(kSlicings) ? "general" : found->first;
}

RuleWish parse_rule(const std::string& text) {
  using Kind = RuleWish::Kind;
  constexpr std::string_view kHybrid = "hybrid=";
  if (text == "duplicate") return {Kind::duplicate};
  if (text == "distinct") return {Kind::distinct};
  if (!text.starts_with(kHybrid))
    throw BadParameters(
        fmt::format("--rule '{}' is not duplicate, distinct or hybrid=X, such as hybrid=3", text));
  const std::uint64_t bits = parse_count("--rule hybrid", text.substr(kHybrid.size()));
  constexpr std::uint64_t kMost = 64;
  if (bits == 0 || bits > kMost)
    throw BadParameters(
        fmt::format("--rule '{}': give 1 to {} bits that must be reached, such as "
                    "hybrid=3",
                    text, kMost));
  return {Kind::hybrid, static_cast<unsigned>(bits)};
}

int plan_sites(const SitesFlags& flags, PlanRequest filter, bool json) {
  filter.beside = 0;
  const SitesPlan plan = sluice::plan_sites(request_of(flags, filter));
  if (json) {
    print_json(plan);
  } else if (plan.feasible()) {
    print_sizes(plan);
    print_why(plan);
    print_rules(plan);
  }
  if (!plan.feasible()) throw RunFailed(plan.why_not);
  return kDone;
}

void add_sites_flags(Command& command, SitesFlags& flags) {
  command.group("One filter over many sites");
  command.option("--tolerate", flags.tolerate,
                 "Find the number of sites with which --fpr, or --fnr, holds while so many of them "
                 "do not answer",
                 "COUNT");
  command.option("--sites", flags.sites, "Number of sites", "COUNT");
  command.option("--failed", flags.failed,
                 "With --sites: show the errors while so many of them do not answer [1]", "COUNT");
  command.option(
      "--slicing", flags.slicing,
      "What a site has: a filter for its share of the keys (horizontal), or some bits of "
      "every key [horizontal]",
      "horizontal|vertical|hv-diced|vh-diced");
  command.option("--inner", flags.inner, "Diced: number of parts of each slice [1]", "COUNT");
  command.option("--rule", flags.rule,
                 "What an event counts as if its site does not answer; hybrid=X: a duplicate if at "
                 "least X of its bits can be read, all of them set [duplicate; with --fnr alone, "
                 "distinct]",
                 "duplicate|distinct|hybrid=X");
  command.option("--alive-fpr", flags.alive_fpr,
                 "With --tolerate: the error while all sites answer [1e-6, at most a hundredth of "
                 "--fpr]",
                 "P");
}

}  // namespace sluice::cli
