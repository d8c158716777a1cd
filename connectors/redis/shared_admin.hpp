// Makes filters on servers, looks at them, and drops them: what is done once, by hand, and not by
// every producer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connectors/redis/client.hpp"
#include "connectors/redis/layout.hpp"
#include "sluice/cluster/layout.hpp"

namespace sluice::redis {

// The server of a key, as the client knows it; "a server" if it does not.
std::string server_of(const Client& client, std::string_view key);

// What a server says that words of SLUICE.RESERVE make.
struct SlicePlan {
  std::string filter, parameters, window, reason;
  std::uint64_t items = 0, bytes = 0;
  double fpr = 0, slack = 0;
};
// By the server that has the name's layout. Throws ServersFailed, and BadParameters for words that
// it refuses.
SlicePlan plan_slice(Client& client, const std::vector<std::string>& words);

// A key has at most so many bytes, or servers cannot move it.
inline constexpr std::uint64_t kMostSliceBytes = std::uint64_t{511} << 20;

// Makes the slices, and then the layout, so that whoever finds the layout finds slices. `wanted`
// says what is to be made; identity, secret, version, places and times are filled in. Throws
// ServersFailed, also if there is a filter of that name; what was made is then removed again.
cluster::Layout make_shared_filter(const std::shared_ptr<Client>& client, cluster::Layout wanted);

// A slice as its server shows it.
struct SliceState {
  std::uint32_t site = 0;
  std::string key, server;
  // Empty: it has answered. Otherwise the rest means nothing.
  std::string problem = {};
  bool moving = false;     // it is on its way to another server
  bool made_anew = false;  // it has lost its contents since the filter was made
  std::string filter = {}, window = {};
  std::uint64_t items = 0, capacity = 0, bytes = 0, pending = 0;
  double target_fpr = 0, predicted_fpr = 0;
  bool over_target = false;
  std::int64_t made_ms = 0, last_write_ms = 0;
};
std::vector<SliceState> look_at_slices(Client& client, const cluster::Layout& layout);

// What is served by each server of the slices, per second, by its own count.
struct ServerState {
  std::string server, problem;
  std::uint64_t commands_per_second = 0;
};
std::vector<ServerState> look_at_servers(Client& client, const cluster::Layout& layout);

// Takes the layout away, and then the slices. Returns keys that could not be deleted, because their
// servers did not answer. Throws ServersFailed.
std::vector<std::string> drop_shared_filter(const std::shared_ptr<Client>& client,
                                            const cluster::Layout& layout);

}  // namespace sluice::redis
