// `sluice cluster`: filters that many producers share, on servers.
#include "cluster.hpp"

#include <fmt/format.h>

#include "apps/cli/command.hpp"
#include "apps/cli/commands.hpp"
#include "connecting.hpp"
#include "connectors/redis/layout.hpp"

namespace sluice::cli {

void add_cluster_flags(Command& command, ClusterFlags& flags) {
  command.positional("url", flags.url,
                     "redis://[user@]host:port[,host:port...]/name, or redis+cluster:// with some "
                     "nodes of a cluster",
                     "URL");
  command.option("--password-file", flags.password_file,
                 "Password of the servers: the first line of this file [the environment variable "
                 "SLUICE_REDIS_PASSWORD, if it is set]",
                 "FILE");
}

std::shared_ptr<redis::Client> client_of(const ClusterFlags& flags) {
  redis::Settings settings = settings_of(flags.password_file);
  // A person waits, and slices of gigabytes take their time.
  settings.timeout = std::chrono::seconds(10);
  settings.connect_timeout = std::chrono::seconds(3);
  return std::make_shared<redis::Client>(redis::parse_address(flags.url), std::move(settings));
}

cluster::Layout layout_of(const ClusterFlags& flags, const std::shared_ptr<redis::Client>& client) {
  const auto found = redis::LayoutStore(client).read();
  const std::string& name = client->address().name;
  if (!found || found->dropped)
    throw RunFailed(fmt::format("{} '{}'{}: make it first, for instance with: {} --window 10m",
                                found ? "the filter" : "there is no filter", name,
                                found ? " was dropped" : "",
                                command_line("create", flags.url, flags.password_file)));
  const unsigned given =
      client->address().cluster ? 0 : static_cast<unsigned>(client->address().endpoints.size());
  if (found->servers != given)
    throw RunFailed(fmt::format(
        "the filter '{}' was made on {}: give {}", name,
        found->servers == 0 ? std::string("a cluster") : fmt::format("{} servers", found->servers),
        found->servers == 0 ? "redis+cluster:// and some of its nodes"
                            : "redis:// and all of them, in the same order"));
  return *found;
}

int with_servers(const std::function<int()>& body) {
  try {
    return body();
  } catch (const redis::ServersFailed& error) {
    throw RunFailed(error.what());
  } catch (const cluster::CorruptLayout& error) {
    throw RunFailed(error.what());
  }
}

void add_cluster(Command& app) {
  Command command = app.subcommand(
      "cluster", "Make, watch and drop a filter on Redis or Valkey that many producers share");
  command.need_subcommand("a command of sluice cluster: choose from create, status and drop");
  command.footer(
      "Examples:\n"
      "  sluice cluster create redis+cluster://10.0.0.1:6379/clicks --window 10m --rate 50k/s\n"
      "  sluice dedup --json -k /id --event-time /time --filter "
      "redis+cluster://10.0.0.1:6379/clicks\n"
      "  sluice cluster status redis+cluster://10.0.0.1:6379/clicks\n"
      "  sluice cluster drop redis+cluster://10.0.0.1:6379/clicks --yes\n"
      "\n"
      "Exit codes: 0 done, 1 a server failed or there is no such filter, 2 wrong usage.\n");
  add_cluster_create(command);
  add_cluster_status(command);
  add_cluster_drop(command);
}

}  // namespace sluice::cli
