// A connection to one server that never waits: commands are buffered, work() moves bytes as far as
// they go, and replies come in the order of the commands. It connects again by itself, not more
// often than its backoff allows. A command that is not answered in time ends the connection: its
// reply, should it come, would be taken for another's.
//
// It connects through hiredis; a host's name is looked up in a way that waits, so prefer addresses.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "connectors/redis/address.hpp"
#include "connectors/redis/backoff.hpp"
#include "connectors/redis/reply.hpp"
#include "sluice/base/random.hpp"

struct redisContext;

namespace sluice::redis {

struct Settings {
  std::string user = {};      // empty: the default user
  std::string password = {};  // empty: none is sent
  Milliseconds connect_timeout{500};
  Milliseconds timeout{1000};  // of a request, with connecting, redirections and repeats
  Milliseconds first_retry{50}, longest_retry{2000};
  ReplyLimits limits = {};
};

// Whose a reply is.
struct Pending {
  std::uint64_t request = 0;
  std::uint32_t command = 0;
  TimePoint deadline{};
  std::uint64_t end = 0;  // of the command, in bytes since the connection began: set by write()
};

class Connection {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void replied(const Pending& whose, Reply& reply, const Endpoint& from) = 0;
    // No reply will come. `sent`: the server may have carried it out, or may yet.
    virtual void lost(const Pending& whose, bool sent) = 0;
    // Bytes on the wire, in both directions.
    virtual void moved(std::size_t sent, std::size_t received) = 0;
  };

  // Both must outlive it.
  Connection(Endpoint endpoint, const Settings& settings, Listener& listener, std::uint64_t seed);
  ~Connection();

  const Endpoint& endpoint() const noexcept { return endpoint_; }
  // Whether commands can be written: it is open, or begins to connect now.
  bool ready(TimePoint now);
  // Only after ready().
  void write(std::string_view command, Pending whose);
  // Whether it waits for something.
  bool busy() const noexcept { return !pending_.empty(); }

  int file() const noexcept;
  // What poll is to wait for.
  short events() const noexcept;
  // When it has waited too long.
  TimePoint due() const noexcept;
  // Sends and receives what it can without waiting.
  void work(TimePoint now);
  void expire(TimePoint now) {
    if (busy() && now >= due())
      fail(now, state_ == State::connecting ? "no connection" : "no answer in time");
  }
  // Ends it, and all that waits for replies is lost.
  void fail(TimePoint now, std::string_view why);
  // Why it failed last.
  const std::string& problem() const noexcept { return problem_; }

 private:
  enum class State : std::uint8_t { closed, connecting, greeting, open };

  bool connect(TimePoint now);
  void close();
  bool is_stale() const;
  bool connected(TimePoint now);
  bool flush(TimePoint now);
  bool receive(TimePoint now);
  bool greeted(const Reply& reply, TimePoint now);

  Endpoint endpoint_;
  const Settings& settings_;
  Listener& listener_;
  SplitMix64 random_;
  Backoff backoff_;
  std::string problem_;

  State state_ = State::closed;
  std::unique_ptr<redisContext, void (*)(redisContext*)> context_;
  std::unique_ptr<ReplyReader> reader_;
  TimePoint began_{};
  bool answered_ = false;  // since it began
  std::string out_;
  std::size_t out_sent_ = 0;       // of out_
  std::size_t greeting_size_ = 0;  // no more of out_ may be sent before the greeting is answered
  std::uint64_t sent_ = 0, written_ = 0;
  std::deque<Pending> pending_;
};

}  // namespace sluice::redis
