// `sluice cluster status`: where the slices of a filter are, how full, and how often they err.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command.hpp"
#include "apps/cli/json_writer.hpp"
#include "apps/cli/printable.hpp"
#include "cluster.hpp"
#include "connectors/redis/shared_admin.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/stream/event_time.hpp"

namespace sluice::cli {
namespace {

using redis::ServerState;
using redis::SliceState;

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::string fill_of(const SliceState& slice) {
  if (slice.capacity == 0) return "-";
  return fmt::format(
      "{:.1f} %", 100.0 * static_cast<double>(slice.items) / static_cast<double>(slice.capacity));
}

std::string since(std::int64_t then_ms) {
  const std::int64_t age_s = std::max<std::int64_t>(0, now_ms() - then_ms) / 1000;
  return fmt::format("{} ago", format_duration(std::chrono::seconds(age_s)));
}

const ServerState* server_of(const std::vector<ServerState>& servers, const SliceState& slice) {
  const auto found = std::ranges::find(servers, slice.server, &ServerState::server);
  return found == servers.end() ? nullptr : &*found;
}

std::string remark_of(const SliceState& slice) {
  if (slice.moving) return "moving";
  if (!slice.problem.empty()) return slice.problem;
  std::string remark = since(slice.last_write_ms);
  if (slice.made_anew) remark += fmt::format("; lost its contents {}", since(slice.made_ms));
  return remark;
}

void print_text(const ClusterFlags& flags, const cluster::Layout& layout,
                const std::vector<SliceState>& slices, const std::vector<ServerState>& servers) {
  fmt::print("{}: {}, {} on {}, version {} of the layout\n\n", flags.url, window_text(layout),
             counted(layout.sites(), "slice"), counted(servers.size(), "server"), layout.version);
  using Row = std::vector<std::string>;
  std::vector<Row> rows = {
      {"slice", "server", "keys", "fill", "bytes", "fpr", "commands/s", "last write"}};
  std::uint64_t keys = 0, bytes = 0;
  double fpr = 0;
  for (const SliceState& slice : slices) {
    const bool here = slice.problem.empty() && !slice.moving;
    const ServerState* const server = server_of(servers, slice);
    rows.push_back(
        {std::to_string(slice.site), slice.server, here ? format_count(slice.items) : "-",
         here ? fill_of(slice) : "-", here ? format_size(slice.bytes) : "-",
         here ? format_probability(slice.predicted_fpr) : "-",
         server == nullptr || !server->problem.empty() ? "-"
                                                       : format_count(server->commands_per_second),
         printable(remark_of(slice))});
    if (!here) continue;
    keys += slice.items;
    bytes += slice.bytes;
    // A key is asked for at one slice.
    fpr += slice.predicted_fpr / static_cast<double>(slices.size());
  }
  rows.push_back(
      {"all", "", format_count(keys), "", format_size(bytes), format_probability(fpr), "", ""});
  std::vector<std::size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (std::size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    std::string line = fmt::format("{:>{}}  {:<{}}", row[0], widths[0], row[1], widths[1]);
    for (std::size_t i = 2; i + 1 < row.size(); ++i)
      line += fmt::format("  {:>{}}", row[i], widths[i]);
    line += "  " + row.back();
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

void print_json(const ClusterFlags& flags, const cluster::Layout& layout,
                const std::vector<SliceState>& slices, const std::vector<ServerState>& servers) {
  JsonWriter json;
  json.begin()
      .field("filter", flags.url)
      .field("kind", name_of(layout.kind))
      .field("window", window_text(layout))
      .field("version", layout.version)
      .field("made_ms", layout.made_ms)
      .field("changed_ms", layout.changed_ms)
      .field("hash", name_of(layout.hash));
  json.begin_list("slices");
  for (const SliceState& slice : slices) {
    json.begin()
        .field("slice", slice.site)
        .field("server", slice.server)
        .field("key", slice.key)
        .field("answers", slice.problem.empty())
        .field("problem", slice.problem)
        .field("moving", slice.moving);
    if (slice.problem.empty())
      json.field("filter", slice.filter)
          .field("window", slice.window)
          .field("keys", slice.items)
          .field("capacity", slice.capacity)
          .field("bytes", slice.bytes)
          .field("target_fpr", slice.target_fpr)
          .field("predicted_fpr", slice.predicted_fpr)
          .field("over_target", slice.over_target)
          .field("pending", slice.pending)
          .field("made_ms", slice.made_ms)
          .field("last_write_ms", slice.last_write_ms)
          .field("lost_contents", slice.made_anew);
    json.end();
  }
  json.end_list();
  json.begin_list("servers");
  for (const ServerState& server : servers)
    json.begin()
        .field("server", server.server)
        .field("answers", server.problem.empty())
        .field("commands_per_second", server.commands_per_second)
        .end();
  json.end_list().end();
  fmt::print("{}\n", json.text());
}

int run(const ClusterFlags& flags) {
  const auto client = client_of(flags);
  return with_servers([&] {
    const cluster::Layout layout = layout_of(flags, client);
    const std::vector<SliceState> slices = redis::look_at_slices(*client, layout);
    const std::vector<ServerState> servers = redis::look_at_servers(*client, layout);
    if (flags.json)
      print_json(flags, layout, slices, servers);
    else
      print_text(flags, layout, slices, servers);
    const bool all = std::ranges::all_of(
        slices, [](const SliceState& slice) { return slice.problem.empty() || slice.moving; });
    return all ? kDone : kFailed;
  });
}

}  // namespace

void add_cluster_status(Command& cluster) {
  Command command = cluster.subcommand(
      "status", "Show the slices of a filter: where they are, how full, their predicted error");
  const auto flags = std::make_shared<ClusterFlags>();
  add_cluster_flags(command, *flags);
  command.flag("--json", flags->json, "Print one JSON object");
  command.footer("Exit codes: 0 all slices answer, 1 one does not, or there is no filter.\n");
  command.run([flags] { return run(*flags); });
}

}  // namespace sluice::cli
