// A filter that stands on servers, as commands use it. The code that talks to servers is in servers/;
// the static command has none (servers/without/).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/cluster/layout.hpp"
#include "sluice/cluster/slices.hpp"
#include "sluice/judge/stream_judge.hpp"

namespace sluice::cli {

class StopSignals;

// As typed.
struct SharedFlags {
  std::string url;  // redis://… or redis+cluster://…
  std::string password_file;
  std::string when_unreachable = "wait";
};

struct SharedReport {
  std::string url;
  std::string rule;  // what --when-unreachable says
  cluster::Traffic traffic;
  std::uint64_t ruled = 0, unsure = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;
  std::uint64_t disbelieved = 0;  // times
  Nanoseconds latest = 0;
  std::string problem;
};

class SharedFilter {
 public:
  virtual ~SharedFilter() = default;
  virtual const cluster::Layout& layout() const = 0;
  // From here on waiting ends when a signal comes. They must outlive this.
  virtual void attach(const StopSignals& signals) = 0;
  // The judge of a stream; called once. It throws RunFailed when the filter is gone.
  virtual StreamJudge& start(std::optional<std::uint64_t> max_ahead) = 0;
  virtual SharedReport report() const = 0;
};

// What begins like an address of servers.
bool is_server_url(std::string_view text);

// Throws BadParameters for flags that are wrong, and RunFailed.
std::shared_ptr<SharedFilter> open_shared(const SharedFlags& flags);

}  // namespace sluice::cli
