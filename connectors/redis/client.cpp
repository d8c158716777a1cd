#include "connectors/redis/client.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>

#include "sluice/base/error.hpp"

namespace sluice::redis {
namespace {

using Clock = std::chrono::steady_clock;

// Tickets that are no request's.
constexpr Client::Ticket kIgnored = 0, kMap = 1, kFirst = 2;
// A slot that moves on while a command follows it is met once or twice; more is a circle.
constexpr unsigned kMostRedirections = 8;
// Twice the nodes that a cluster can have.
constexpr std::size_t kMostConnections = 2000;
// Between two questions that a server was not ready for.
constexpr Milliseconds kAgain{20};
// Between two maps. Until it has the new one, a client goes where MOVED says, or fails for a node
// that is gone; the servers are not to be asked for it by every batch of every producer.
constexpr Milliseconds kMapAgain{200};

std::uint64_t seed() {
  std::uint64_t value;
  system_entropy(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace

Client::Client(Address address, Settings settings)
    : address_(std::move(address)), settings_(std::move(settings)), random_(seed()), last_(kFirst) {
  if (address_.endpoints.empty()) throw BadParameters("redis: no server's address; give one");
  if (settings_.user.empty()) settings_.user = address_.user;
  if (!settings_.user.empty() && settings_.password.empty())
    throw BadParameters(fmt::format(
        "redis: a user '{}' without a password; give it in a file or in the environment",
        settings_.user));
  if (!address_.cluster) map_ = SlotMap::even(address_.endpoints);
}

Client::~Client() = default;

Client::Ticket Client::send(std::uint16_t slot, Commands commands) {
  const TimePoint now = Clock::now();
  const Ticket ticket = ++last_;
  Request& request = requests_[ticket];
  request.slot = slot;
  request.deadline = now + settings_.timeout;
  request.commands = std::move(commands);
  request.open = request.commands.size();
  request.progress.resize(request.open);
  request.replies.resize(request.open);
  for (std::uint32_t i = 0; i < request.progress.size(); ++i) dispatch(ticket, request, i, now);
  return ticket;
}

Outcome Client::receive(Ticket ticket, std::vector<Reply>& replies) {
  const auto found = requests_.find(ticket);
  assert(found != requests_.end() && "a ticket is received once");
  Request& request = found->second;
  TimePoint now = Clock::now();
  // Also when this one has failed already: others, and the map, go on.
  if (request.open > 0 || map_wanted_) work(now, now);
  while (request.open > 0) {
    now = Clock::now();
    if (now >= request.deadline) {
      give_up(request, now);
      break;
    }
    work(now, request.deadline);
  }
  const auto ended = [&](Progress how) {
    return std::ranges::count(request.progress, how, &Command::progress);
  };
  const auto all = static_cast<std::ptrdiff_t>(request.progress.size());
  const Outcome outcome = ended(Progress::done) == all     ? Outcome::answered
                          : ended(Progress::failed) == all ? Outcome::failed
                                                           : Outcome::late;
  replies.swap(request.replies);
  requests_.erase(found);
  return outcome;
}

Connection* Client::connection(const Endpoint& endpoint) {
  const auto found = connections_.find(endpoint);
  if (found != connections_.end()) return found->second.get();
  if (connections_.size() >= kMostConnections) return nullptr;
  Listener& listener = *this;
  auto made = std::make_unique<Connection>(endpoint, settings_, listener, random_.next());
  return connections_.emplace(endpoint, std::move(made)).first->second.get();
}

void Client::dispatch(Ticket ticket, Request& request, std::uint32_t command, TimePoint now) {
  const Advice advice = std::exchange(request.progress[command].advice, {});
  if (advice.kind == Advice::Kind::moved || advice.kind == Advice::Kind::ask) {
    Connection* to = connection(advice.to);
    if (advice.kind == Advice::Kind::ask && to != nullptr && to->ready(now)) {
      Commands asking;
      asking.add({"ASKING"});
      to->write(asking[0], {.request = kIgnored, .deadline = request.deadline});
    }
    return send_to(advice.to, ticket, request, command, now);
  }
  if (const Endpoint* endpoint = map_.at(request.slot); endpoint != nullptr)
    return send_to(*endpoint, ticket, request, command, now);
  map_wanted_ = true;
  if (map_.empty()) return wait(ticket, request, command, now);
  problem_ = fmt::format("no server of the cluster serves slot {}", request.slot);
  end(request, command, Progress::failed);
}

void Client::send_to(const Endpoint& endpoint, Ticket ticket, Request& request,
                     std::uint32_t command, TimePoint now) {
  Connection* to = connection(endpoint);
  if (to == nullptr || !to->ready(now)) {
    problem_ = to == nullptr ? "the servers name too many others" : to->problem();
    map_wanted_ = address_.cluster;
    return end(request, command, Progress::failed);
  }
  request.progress[command].progress = Progress::sent;
  request.progress[command].at = to;
  to->write(request.commands[command],
            {.request = ticket, .command = command, .deadline = request.deadline});
}

void Client::wait(Ticket ticket, Request& request, std::uint32_t command, TimePoint until) {
  request.progress[command].progress = Progress::waiting;
  request.progress[command].again = until;
  waiting_.emplace_back(ticket, command);
}

void Client::end(Request& request, std::uint32_t command, Progress progress) {
  request.progress[command].progress = progress;
  --request.open;
}

void Client::replied(const Pending& whose, Reply& reply, const Endpoint& from) {
  if (whose.request == kMap) return take_map(reply, from);
  const auto found = requests_.find(whose.request);
  if (found == requests_.end()) return;
  Request& request = found->second;
  if (!reply.is(Reply::Kind::error)) {
    request.replies[whose.command] = std::move(reply);
    return end(request, whose.command, Progress::done);
  }
  problem_ = fmt::format("{}: {}", text_of(from), reply.text);
  Advice advice = read_advice(reply, from);
  if (advice.kind == Advice::Kind::none) request.replies[whose.command] = std::move(reply);
  follow(std::move(advice), whose.request, request, whose.command);
}

// Not at once: the connection that the reply came from is in the middle of reading.
void Client::follow(Advice advice, Ticket ticket, Request& request, std::uint32_t command) {
  if (advice.kind == Advice::Kind::none) return end(request, command, Progress::failed);
  const TimePoint now = Clock::now();
  if (advice.kind == Advice::Kind::wait) {
    map_wanted_ = address_.cluster;
    return wait(ticket, request, command, now + kAgain);
  }
  if (!address_.cluster) {
    problem_ += ": this server is one of a cluster; give its address as redis+cluster://";
    return end(request, command, Progress::failed);
  }
  Command& progress = request.progress[command];
  if (++progress.redirections > kMostRedirections) return end(request, command, Progress::failed);
  map_wanted_ = map_wanted_ || advice.kind == Advice::Kind::moved;
  progress.advice = std::move(advice);
  wait(ticket, request, command, now);
}

void Client::lost(const Pending& whose, bool sent) {
  map_wanted_ = map_wanted_ || address_.cluster;
  if (whose.request == kMap) map_asked_ = false;
  const auto found = requests_.find(whose.request);
  if (found == requests_.end()) return;
  const Connection* at = found->second.progress[whose.command].at;
  problem_ = at->problem();
  end(found->second, whose.command, sent ? Progress::late : Progress::failed);
}

// At its deadline. What is on its way ends its connection; what waits was not carried out.
void Client::give_up(Request& request, TimePoint now) {
  for (std::uint32_t i = 0; i < request.progress.size(); ++i) {
    const Command& command = request.progress[i];
    if (command.progress == Progress::waiting) end(request, i, Progress::failed);
    if (command.progress == Progress::sent)
      connections_.at(command.at->endpoint())->fail(now, "no answer in time");
  }
}

// Waits for servers, but no longer than until then, and does what there is to do.
void Client::work(TimePoint now, TimePoint until) {
  load_map(now);
  send_again(now);
  if (!waiting_.empty() || (map_wanted_ && !map_asked_)) until = std::min(until, now + kAgain);
  std::vector<Connection*> busy;
  std::vector<pollfd> files;
  for (const auto& [endpoint, connection] : connections_) {
    if (!connection->busy()) continue;
    busy.push_back(connection.get());
    files.push_back({connection->file(), connection->events(), 0});
    until = std::min(until, connection->due());
  }
  const auto wait_ms =
      std::chrono::ceil<Milliseconds>(std::max(until - now, TimePoint::duration{0}));
  // An interruption is as good as nothing to do: the caller comes again.
  if (::poll(files.data(), files.size(), static_cast<int>(wait_ms.count())) < 0) return;
  now = Clock::now();
  for (std::size_t i = 0; i < busy.size(); ++i) {
    if (files[i].revents != 0) busy[i]->work(now);
    busy[i]->expire(now);
  }
}

void Client::send_again(TimePoint now) {
  std::vector<std::pair<Ticket, std::uint32_t>> waiting;
  waiting.swap(waiting_);
  for (const auto& [ticket, command] : waiting) {
    const auto found = requests_.find(ticket);
    if (found == requests_.end()) continue;
    Command& progress = found->second.progress[command];
    if (progress.progress != Progress::waiting) continue;
    if (progress.again > now || map_.empty())
      waiting_.emplace_back(ticket, command);
    else
      dispatch(ticket, found->second, command, now);
  }
}

// Asks the next node that can be reached. If there is none, and no map yet, whoever waits for it
// has failed.
void Client::load_map(TimePoint now) {
  if (!map_wanted_ || map_asked_ || now < map_next_ || !address_.cluster) return;
  forget_strangers();
  std::vector<Endpoint> sources(map_.endpoints().begin(), map_.endpoints().end());
  sources.insert(sources.end(), address_.endpoints.begin(), address_.endpoints.end());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Connection* from = connection(sources[map_source_++ % sources.size()]);
    if (from == nullptr || !from->ready(now)) {
      if (from != nullptr) problem_ = from->problem();
      continue;
    }
    Commands ask;
    ask.add({"CLUSTER", "SLOTS"});
    // In a third of the time, so that there is enough for another node.
    from->write(ask[0], {.request = kMap, .deadline = now + settings_.timeout / 3});
    map_asked_ = true;
    return;
  }
  if (!map_.empty()) return;
  for (const auto& [ticket, command] : std::exchange(waiting_, {}))
    if (const auto found = requests_.find(ticket); found != requests_.end())
      if (found->second.progress[command].progress == Progress::waiting)
        end(found->second, command, Progress::failed);
}

void Client::take_map(const Reply& reply, const Endpoint& from) {
  map_asked_ = false;
  map_next_ = Clock::now() + kAgain;
  std::string problem;
  SlotMap map = SlotMap::read(reply, from, problem);
  if (map.empty()) {
    // What it said as an error is in there.
    problem_ = problem;
    return;
  }
  map_ = std::move(map);
  map_wanted_ = false;
  map_next_ = Clock::now() + kMapAgain;
}

// Closes connections to nodes that are gone.
void Client::forget_strangers() {
  std::erase_if(connections_, [&](const auto& entry) {
    const auto is = [&](std::span<const Endpoint> all) {
      return std::ranges::find(all, entry.first) != all.end();
    };
    return !entry.second->busy() && !is(map_.endpoints()) && !is(address_.endpoints);
  });
}

}  // namespace sluice::redis
