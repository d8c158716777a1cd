// In place of servers/: the static command cannot look up names of servers, which takes shared
// libraries of the machine it runs on, and so it has no client of servers.
#include "apps/cli/arguments.hpp"
#include "apps/cli/command.hpp"
#include "apps/cli/commands.hpp"
#include "apps/cli/shared.hpp"

namespace sluice::cli {
namespace {

constexpr const char* kWithout =
    "this is the static command, which has no client of servers: use the command of the Debian "
    "package, or build it";

}  // namespace

std::shared_ptr<SharedFilter> open_shared(const SharedFlags&) {
  throw BadParameters(kWithout);
}

void add_cluster(Command& app) {
  app.subcommand("cluster", "Filters that many producers share, on servers (not in this command)")
      .run_with_rest([](const std::vector<std::string>&) -> int { throw BadParameters(kWithout); });
}

}  // namespace sluice::cli
