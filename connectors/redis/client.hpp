// A client of servers that are a cluster, or that know nothing of each other: requests go to the
// server that has their slot, many at a time, and none waits for another.
//
//   const auto first = client.send(slot, commands), second = client.send(other_slot, more);
//   client.receive(first, replies);   // all that was sent is on its way to all servers by now
//   client.receive(second, replies);
//
// A cluster's map is loaded from any of its nodes, and again after MOVED and when a node cannot be
// reached; ASK is followed; TRYAGAIN, CLUSTERDOWN and LOADING are tried again. A request ends by
// its deadline, whatever happens. Nothing throws for servers that cannot be reached.
//
// It is used by one thread. Replies are bounded, and so is what a server can make it do:
// connections, redirections, repeats.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "connectors/redis/commands.hpp"
#include "connectors/redis/connection.hpp"
#include "connectors/redis/slot_map.hpp"
#include "sluice/cluster/site.hpp"

namespace sluice::redis {

using cluster::Outcome;

class Client final : private Connection::Listener {
 public:
  using Ticket = std::uint64_t;

  // Connects when it is used.
  Client(Address address, Settings settings);
  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Address& address() const noexcept { return address_; }

  // Commands on keys of one slot, and does not wait. Each is carried out once or not at all, and in
  // their order unless the slot moves meanwhile. Every ticket is to be received.
  Ticket send(std::uint16_t slot, Commands commands);
  // Waits for the replies: one per command, if the outcome is `answered`. `failed`: none was
  // carried out. `late`: some may have been, or may be yet. An error reply counts as not carried
  // out, and is there to read, whatever the outcome; a command without a reply has nil.
  Outcome receive(Ticket ticket, std::vector<Reply>& replies);

  // Why a request was not answered last: for people.
  const std::string& problem() const noexcept { return problem_; }
  // On the wire so far, to and from all servers.
  std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }
  std::uint64_t bytes_received() const noexcept { return bytes_received_; }
  // What it knows of the servers now.
  const SlotMap& map() const noexcept { return map_; }

 private:
  enum class Progress : std::uint8_t { waiting, sent, done, failed, late };
  struct Command {
    Progress progress = Progress::waiting;
    std::uint8_t redirections = 0;
    const Connection* at = nullptr;  // of `sent`
    // Of `waiting`: until when, and for which server if not the slot's.
    TimePoint again{};
    Advice advice;
  };
  struct Request {
    std::uint16_t slot = 0;
    TimePoint deadline{};
    Commands commands;
    std::vector<Command> progress;
    std::vector<Reply> replies;
    std::size_t open = 0;  // commands without an end
  };

  void replied(const Pending& whose, Reply& reply, const Endpoint& from) override;
  void lost(const Pending& whose, bool sent) override;
  void moved(std::size_t sent, std::size_t received) override {
    bytes_sent_ += sent;
    bytes_received_ += received;
  }

  Connection* connection(const Endpoint& endpoint);
  void dispatch(Ticket ticket, Request& request, std::uint32_t command, TimePoint now);
  void send_to(const Endpoint& endpoint, Ticket ticket, Request& request, std::uint32_t command,
               TimePoint now);
  void wait(Ticket ticket, Request& request, std::uint32_t command, TimePoint until);
  void end(Request& request, std::uint32_t command, Progress progress);
  void follow(Advice advice, Ticket ticket, Request& request, std::uint32_t command);
  void work(TimePoint now, TimePoint until);
  void send_again(TimePoint now);
  void give_up(Request& request, TimePoint now);
  void load_map(TimePoint now);
  void take_map(const Reply& reply, const Endpoint& from);
  void forget_strangers();

  Address address_;
  Settings settings_;
  SplitMix64 random_;
  SlotMap map_;
  bool map_wanted_ = false, map_asked_ = false;
  TimePoint map_next_{};
  std::size_t map_source_ = 0;
  std::map<Endpoint, std::unique_ptr<Connection>> connections_;
  std::unordered_map<Ticket, Request> requests_;
  Ticket last_;
  std::vector<std::pair<Ticket, std::uint32_t>> waiting_;
  std::string problem_;
  std::uint64_t bytes_sent_ = 0, bytes_received_ = 0;
};

}  // namespace sluice::redis
