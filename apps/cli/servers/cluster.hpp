// `sluice cluster`: one part per subcommand.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/cli/arguments.hpp"
#include "connectors/redis/client.hpp"
#include "sluice/cluster/layout.hpp"

namespace sluice::cli {

// What every subcommand takes.
struct ClusterFlags {
  std::string url, password_file;
  bool json = false;
};
void add_cluster_flags(Command& command, ClusterFlags& flags);

// Throws BadParameters.
std::shared_ptr<redis::Client> client_of(const ClusterFlags& flags);
// The layout of the filter. Throws RunFailed if there is none, or servers fail.
cluster::Layout layout_of(const ClusterFlags& flags, const std::shared_ptr<redis::Client>& client);

// Runs the body of a subcommand, and turns what servers fail with into RunFailed.
int with_servers(const std::function<int()>& body);

void add_cluster_create(Command& cluster);
void add_cluster_status(Command& cluster);
void add_cluster_drop(Command& cluster);

}  // namespace sluice::cli
