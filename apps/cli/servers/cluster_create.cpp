// `sluice cluster create`: from what is wanted to slices and their layout.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command.hpp"
#include "apps/cli/json_writer.hpp"
#include "cluster.hpp"
#include "connecting.hpp"
#include "connectors/redis/shared_admin.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/settings.hpp"

namespace sluice::cli {
namespace {

struct CreateFlags : ClusterFlags {
  std::string window, expect, fpr, rate, memory, slack, filter, sites;
  bool refresh = false, plan_only = false;
};

// Of `keys` for all slices, the most that one gets: their number is binomial, and more than five
// standard deviations above the mean come once in millions.
std::uint64_t share_of(std::uint64_t keys, std::uint32_t sites) {
  if (sites == 1) return keys;
  const double mean = static_cast<double>(keys) / sites;
  return static_cast<std::uint64_t>(std::ceil(mean + 5 * std::sqrt(mean)));
}

// NAME[,PARAMETER=VALUE] as words.
void add_filter(const std::string& filter, std::vector<std::string>& words) {
  const std::size_t comma = std::min(filter.find(','), filter.size());
  words.insert(words.end(), {"FILTER", filter.substr(0, comma)});
  const Settings settings = Settings::parse(filter.substr(std::min(comma + 1, filter.size())));
  for (const auto& [name, value] : settings.pairs()) words.insert(words.end(), {name, value});
}

std::uint32_t sites_of(const CreateFlags& flags, const redis::Client& client) {
  if (flags.sites.empty())
    return static_cast<std::uint32_t>(std::max<std::size_t>(1, client.map().endpoints().size()));
  const std::uint64_t sites = parse_count("--sites", flags.sites);
  if (sites == 0 || sites > cluster::SliceMap::kMostSites)
    throw BadParameters(
        fmt::format("--sites {}: give 1 to {}", flags.sites, cluster::SliceMap::kMostSites));
  return static_cast<std::uint32_t>(sites);
}

// What is wanted, in all and as words of SLUICE.RESERVE for each slice. Everything that can be
// checked without servers is.
cluster::Layout layout_of(const CreateFlags& flags) {
  cluster::Layout layout;
  if (!flags.window.empty()) layout.window = parse_window("--window", flags.window);
  if (flags.refresh && !layout.window) throw BadParameters("--refresh needs --window");
  if (flags.refresh) layout.anchor = Anchor::refreshed;
  if (!flags.fpr.empty()) layout.fpr = parse_probability("--fpr", flags.fpr);
  if (!flags.rate.empty()) layout.rate = parse_rate("--rate", flags.rate);
  if (!flags.expect.empty()) layout.expect = parse_count("--expect", flags.expect);
  const bool by_time = layout.window && layout.window->by_time();
  for (const auto& [given, flag] :
       {std::pair(!flags.rate.empty(), "--rate"), std::pair(!flags.slack.empty(), "--slack")})
    if (given && !by_time && !(layout.window && std::string_view(flag) == "--slack"))
      throw BadParameters(fmt::format("{} needs a window of time: give --window 10m", flag));
  if (layout.rate > 0 && layout.expect > 0)
    throw BadParameters("--rate and --expect say the same thing: give only one of them");
  return layout;
}

void share_out(const CreateFlags& flags, std::uint32_t sites, cluster::Layout& layout) {
  layout.slicing.slices = sites;
  layout.slices.assign(sites, {});
  std::vector<std::string>& words = layout.words;
  const auto add = [&](const char* name, const std::string& value) {
    words.insert(words.end(), {name, value});
  };
  if (!flags.window.empty()) add("WINDOW", flags.window);
  if (!flags.fpr.empty()) add("FPR", fmt::format("{:g}", layout.fpr));
  if (layout.rate > 0) add("RATE", fmt::format("{:.9g}/s", layout.rate / sites));
  if (layout.expect > 0) add("EXPECT", fmt::format("{}", share_of(layout.expect, sites)));
  if (!flags.memory.empty())
    add("MEMORY", fmt::format("{}", parse_size("--memory", flags.memory) / sites));
  if (!flags.slack.empty())
    add("SLACK", fmt::format("{:g}", parse_probability("--slack", flags.slack)));
  if (!flags.filter.empty()) add_filter(flags.filter, words);
  if (flags.refresh) words.push_back("REFRESH");
}

void check_size(const redis::SlicePlan& plan, std::uint32_t sites) {
  if (plan.bytes <= redis::kMostSliceBytes) return;
  throw BadParameters(fmt::format(
      "{} of {} each: a key that servers can move has at most {}: cut the filter into --sites {} "
      "or more",
      counted(sites, "slice"), format_size(plan.bytes), format_size(redis::kMostSliceBytes),
      (plan.bytes * sites + redis::kMostSliceBytes - 1) / redis::kMostSliceBytes));
}

void print_text(const CreateFlags& flags, const redis::SlicePlan& plan, std::uint32_t sites) {
  fmt::print("{:<12} {:>15} {:>12} {:>10} {:>8}\n", "", "keys", "bytes", "fpr", "slack");
  const auto row = [&](const char* what, std::uint64_t factor) {
    fmt::print("{:<12} {:>15} {:>12} {:>10} {:>8}\n", what, format_count(plan.items * factor),
               format_size(plan.bytes * factor), plan.fpr == 0 ? "0" : format_probability(plan.fpr),
               plan.slack == 0 ? "0" : fmt::format("{:.3g} %", 100 * plan.slack));
  };
  row("per slice", 1);
  row("in all", sites);
  fmt::print("\n{} of {}, {}: {}\n", counted(sites, "slice"), plan.window, plan.filter,
             plan.reason);
  if (flags.plan_only) return;
  fmt::print("sluice dedup --filter {}{}\n", flags.url,
             flags.password_file.empty() ? "" : " --password-file " + flags.password_file);
}

void print_json(const CreateFlags& flags, const redis::SlicePlan& plan,
                const cluster::Layout& layout) {
  JsonWriter json;
  json.begin()
      .field("filter", flags.url)
      .field("made", !flags.plan_only)
      .field("version", layout.version)
      .field("slices", layout.sites())
      .field("window", plan.window);
  json.begin("slice")
      .field("filter", plan.filter)
      .field("parameters", plan.parameters)
      .field("keys", plan.items)
      .field("bytes", plan.bytes)
      .field("fpr", plan.fpr)
      .field("slack", plan.slack)
      .field("reason", plan.reason)
      .end();
  json.end();
  fmt::print("{}\n", json.text());
}

int run(const CreateFlags& flags) {
  cluster::Layout layout = layout_of(flags);
  const auto client = client_of(flags);
  return with_servers([&] {
    // Also loads the map of a cluster, which says how many sites there are.
    const auto found = redis::LayoutStore(client).read();
    if (found && !found->dropped && !flags.plan_only)
      throw RunFailed(fmt::format(
          "there is a filter '{}' already: {}, in {}; give the new one another name, or drop this "
          "one: {}",
          client->address().name, window_text(*found), counted(found->sites(), "slice"),
          command_line("drop", flags.url, flags.password_file)));
    share_out(flags, sites_of(flags, *client), layout);
    // So that what is wrong is said before anything is made.
    layout.check();
    const redis::SlicePlan plan = redis::plan_slice(*client, layout.words);
    check_size(plan, layout.sites());
    layout.slack = plan.slack;
    if (layout.fpr == 0) layout.fpr = plan.fpr;
    if (!flags.plan_only) layout = redis::make_shared_filter(client, std::move(layout));
    if (flags.json)
      print_json(flags, plan, layout);
    else
      print_text(flags, plan, layout.sites());
    return kDone;
  });
}

}  // namespace

void add_cluster_create(Command& cluster) {
  Command command = cluster.subcommand("create", "Make a filter: its slices and its layout");
  const auto flags = std::make_shared<CreateFlags>();
  add_cluster_flags(command, *flags);
  command.option("-w,--window", flags->window,
                 "Remember only the last span of time (10m, 24h, 7d), the current hour or day in "
                 "UTC, or, with one slice, the last N records let through (1M) [everything]",
                 "10m|hour|day|1M");
  command.flag("--refresh", flags->refresh,
               "A repeat restarts its key's window [it runs from the last record let through]");
  command.option("-n,--expect", flags->expect,
                 "Number of distinct keys in all slices; with a window of time, per window",
                 "COUNT");
  command.option("--rate", flags->rate, "Expected rate of distinct keys, of all producers together",
                 "50k/s");
  command.option("--fpr", flags->fpr,
                 "Share of distinct records that may be judged duplicates, and so be lost [that of "
                 "the servers, 1e-6]",
                 "P");
  command.option("-m,--memory", flags->memory, "The most memory of all slices together", "SIZE");
  command.option("--slack", flags->slack,
                 "How far past the window a key may still be remembered, as a share of it [4.2%]",
                 "SHARE");
  command.option("-f,--filter", flags->filter,
                 "The filter of each slice and its parameters [the planner's choice]",
                 "NAME[,PARAMETER=VALUE]");
  command.option("--sites", flags->sites, "Number of slices [one per server]", "COUNT");
  command.flag("--plan", flags->plan_only, "Only show what would be made");
  command.flag("--json", flags->json, "Print one JSON object");
  command.run([flags] { return run(*flags); });
}

}  // namespace sluice::cli
