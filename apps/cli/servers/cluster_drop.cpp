// `sluice cluster drop`: deletes a filter, its slices and its layout.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command.hpp"
#include "apps/cli/json_writer.hpp"
#include "cluster.hpp"
#include "connectors/redis/shared_admin.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cli {
namespace {

struct DropFlags : ClusterFlags {
  bool yes = false;
};

int run(const DropFlags& flags) {
  const auto client = client_of(flags);
  return with_servers([&] {
    const cluster::Layout layout = layout_of(flags, client);
    std::uint64_t keys = 0;
    for (const auto& slice : redis::look_at_slices(*client, layout)) keys += slice.items;
    if (!flags.yes)
      throw BadParameters(fmt::format(
          "this forgets {} in {}, and their repeats pass once more: add --yes if that is meant",
          counted(keys, "key"), counted(layout.sites(), "slice")));
    const std::vector<std::string> left = redis::drop_shared_filter(client, layout);
    if (flags.json) {
      JsonWriter json;
      json.begin().field("filter", flags.url).field("keys", keys).field("left", left.size()).end();
      fmt::print("{}\n", json.text());
    } else {
      fmt::print("dropped {}: {} in {}\n", flags.url, counted(keys, "key"),
                 counted(layout.sites(), "slice"));
    }
    if (left.empty()) return kDone;
    std::string names;
    for (const std::string& key : left) names += "\n  " + key;
    throw RunFailed(fmt::format(
        "the filter is dropped, but these keys could not be deleted, because their servers did not "
        "answer ({}); delete them later:{}",
        client->problem(), names));
  });
}

}  // namespace

void add_cluster_drop(Command& cluster) {
  Command command = cluster.subcommand("drop", "Delete a filter: its slices and its layout");
  const auto flags = std::make_shared<DropFlags>();
  add_cluster_flags(command, *flags);
  command.flag("--yes", flags->yes, "Without this, only what would be deleted is shown");
  command.flag("--json", flags->json, "Print one JSON object");
  command.run([flags] { return run(*flags); });
}

}  // namespace sluice::cli
