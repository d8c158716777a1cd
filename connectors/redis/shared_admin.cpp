#include "connectors/redis/shared_admin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <functional>
#include <set>
#include <span>

#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"

namespace sluice::redis {
namespace {

using cluster::Layout;

// Nobody makes slices for longer. Then they go by themselves, if nobody has said that they are
// complete.
constexpr std::string_view kUnfinishedForS = "3600";
// In place of a slice that is gone, so that a producer that has not noticed yet does not make it
// again. It has noticed by then.
constexpr std::string_view kMarkForMs = "3600000";

constexpr std::string_view kDrop =
    "for _, key in ipairs(KEYS) do redis.call('UNLINK', key) end\n"
    "redis.call('RPUSH', KEYS[1], 'dropped')\n"
    "redis.call('PEXPIRE', KEYS[1], ARGV[1])\n"
    "return 1";

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0) system_entropy(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

// The value of a field of a map, as RESP2 has it: name, value, name, value.
const Reply* field(const Reply& map, std::string_view name) {
  for (std::size_t i = 0; i + 1 < map.elements.size(); i += 2)
    if (map.elements[i].text == name) return &map.elements[i + 1];
  return nullptr;
}

std::uint64_t whole(const Reply& map, std::string_view name) {
  const Reply* const value = field(map, name);
  return value == nullptr || value->integer < 0 ? 0 : static_cast<std::uint64_t>(value->integer);
}

double real(const Reply& map, std::string_view name) {
  const Reply* const value = field(map, name);
  double number = 0;
  if (value != nullptr)
    std::from_chars(value->text.data(), value->text.data() + value->text.size(), number);
  return number;
}

std::string text(const Reply& map, std::string_view name) {
  const Reply* const value = field(map, name);
  return value == nullptr ? std::string() : value->text;
}

std::string sentence_of(const std::string& server, const std::string& error) {
  if (error.starts_with("ERR unknown command"))
    return fmt::format(
        "{}: this server has no filters: load the module, sluice.so, in its configuration", server);
  return fmt::format("{}: {}", server, error);
}

// What one slice's commands are answered.
struct Answered {
  std::string problem;  // or empty
  std::vector<Reply> replies;
};

// The same commands for all slices, sent before any is waited for.
std::vector<Answered> ask_all(Client& client, std::span<const std::string> keys,
                              const std::function<Commands(const std::string& key)>& commands) {
  std::vector<Client::Ticket> tickets;
  for (const std::string& key : keys) tickets.push_back(client.send(slot_of(key), commands(key)));
  std::vector<Answered> all(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Outcome outcome = client.receive(tickets[i], all[i].replies);
    if (outcome == Outcome::answered) continue;
    all[i].problem = client.problem();
    const auto error = std::ranges::find_if(
        all[i].replies, [](const Reply& reply) { return reply.is(Reply::Kind::error); });
    if (error != all[i].replies.end())
      all[i].problem = sentence_of(server_of(client, keys[i]), error->text);
  }
  return all;
}

std::vector<std::string> keys_of(const Client& client, const Layout& layout) {
  std::vector<std::string> keys;
  for (std::uint32_t site = 0; site < layout.sites(); ++site)
    keys.push_back(slice_key(client.address().name, layout, site));
  return keys;
}

void remove(Client& client, std::span<const std::string> keys) {
  ask_all(client, keys, [](const std::string& key) {
    Commands commands;
    commands.add({"UNLINK", key});
    return commands;
  });
}

// Throws for the first that cannot be made, when the others are removed.
void make_slices(Client& client, Layout& layout) {
  const std::vector<std::string> keys = keys_of(client, layout);
  const auto made = ask_all(client, keys, [&](const std::string& key) {
    Commands commands;
    commands.begin(2 + layout.words.size());
    commands.word("SLUICE.RESERVE");
    commands.word(key);
    for (const std::string& word : layout.words) commands.word(word);
    commands.add({"EXPIRE", key, kUnfinishedForS});
    commands.add({"SLUICE.INFO", key, "made_ms"});
    return commands;
  });
  const auto failed =
      std::ranges::find_if(made, [](const Answered& slice) { return !slice.problem.empty(); });
  if (failed != made.end()) {
    remove(client, keys);
    throw ServersFailed(
        fmt::format("slice {} cannot be made: {}", failed - made.begin(), failed->problem));
  }
  for (std::uint32_t site = 0; site < layout.sites(); ++site)
    layout.slices[site].incarnation = static_cast<std::uint64_t>(made[site].replies.back().integer);
}

void keep_slices(Client& client, const Layout& layout) {
  const std::vector<std::string> keys = keys_of(client, layout);
  ask_all(client, keys, [](const std::string& key) {
    Commands commands;
    commands.add({"PERSIST", key});
    return commands;
  });
}

[[noreturn]] void refuse_existing(const std::string& name) {
  throw ServersFailed(fmt::format(
      "there is a filter '{}' already: drop it first, or give the new one another name", name));
}

}  // namespace

std::string server_of(const Client& client, std::string_view key) {
  const Endpoint* const at = client.map().at(slot_of(key));
  return at == nullptr ? std::string("a server") : text_of(*at);
}

SlicePlan plan_slice(Client& client, const std::vector<std::string>& words) {
  const std::string key = layout_key(client.address().name);
  Commands commands;
  commands.begin(1 + words.size());
  commands.word("SLUICE.PLAN");
  for (const std::string& word : words) commands.word(word);
  std::vector<Reply> replies;
  const Outcome outcome = client.receive(client.send(slot_of(key), std::move(commands)), replies);
  const Reply& plan = replies[0];
  const std::string& error = plan.text;
  if (plan.is(Reply::Kind::error) && !error.starts_with("ERR unknown command") &&
      error.starts_with("ERR "))
    throw BadParameters(error.substr(4));
  if (plan.is(Reply::Kind::error)) throw ServersFailed(sentence_of(server_of(client, key), error));
  if (outcome != Outcome::answered) throw ServersFailed(client.problem());
  return {.filter = text(plan, "filter"),
          .parameters = text(plan, "parameters"),
          .window = text(plan, "window"),
          .reason = text(plan, "reason"),
          .items = whole(plan, "items"),
          .bytes = whole(plan, "bytes"),
          .fpr = real(plan, "fpr"),
          .slack = real(plan, "slack")};
}

Layout make_shared_filter(const std::shared_ptr<Client>& client, Layout wanted) {
  LayoutStore store(client);
  const std::string& name = client->address().name;
  const std::optional<Layout> before = store.read();
  if (before && !before->dropped) refuse_existing(name);
  Layout layout = std::move(wanted);
  layout.identity = random_number();
  layout.secret = Secret::random();
  layout.version = before ? before->version + 1 : 1;
  layout.made_ms = layout.changed_ms = now_ms();
  layout.servers =
      client->address().cluster ? 0 : static_cast<unsigned>(client->address().endpoints.size());
  for (std::uint32_t site = 0; site < layout.sites(); ++site)
    layout.slices[site] = {.turn = turn_of(name, site, layout.sites()), .placed = layout.version};
  layout.check();
  make_slices(*client, layout);
  // If it throws, the layout may be there all the same; slices that nobody needs go by themselves.
  if (!(before ? store.replace(*before, layout) : store.create(layout))) {
    remove(*client, keys_of(*client, layout));
    refuse_existing(name);
  }
  keep_slices(*client, layout);
  return layout;
}

std::vector<SliceState> look_at_slices(Client& client, const Layout& layout) {
  const std::vector<std::string> keys = keys_of(client, layout);
  const auto answered = ask_all(client, keys, [](const std::string& key) {
    Commands commands;
    commands.add({"SLUICE.INFO", key});
    return commands;
  });
  std::vector<SliceState> states;
  for (std::uint32_t site = 0; site < layout.sites(); ++site) {
    SliceState& state = states.emplace_back();
    state.site = site;
    state.key = keys[site];
    state.server = server_of(client, keys[site]);
    state.moving = layout.move && layout.move->site == site;
    state.problem = answered[site].problem;
    if (!state.problem.empty()) continue;
    const Reply& info = answered[site].replies[0];
    state.filter = text(info, "filter");
    state.window = text(info, "window");
    state.items = whole(info, "items");
    state.capacity = whole(info, "capacity");
    state.bytes = whole(info, "bytes");
    state.pending = whole(info, "pending");
    state.target_fpr = real(info, "target_fpr");
    state.predicted_fpr = real(info, "predicted_fpr");
    state.over_target = whole(info, "over_target") != 0;
    state.made_ms = static_cast<std::int64_t>(whole(info, "made_ms"));
    state.last_write_ms = static_cast<std::int64_t>(whole(info, "last_write_ms"));
    state.made_anew = layout.slices[site].incarnation != static_cast<std::uint64_t>(state.made_ms);
  }
  return states;
}

// Each server is asked by a key that it has.
std::vector<ServerState> look_at_servers(Client& client, const Layout& layout) {
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const std::string& key : keys_of(client, layout))
    if (seen.insert(server_of(client, key)).second) keys.push_back(key);
  const auto answered = ask_all(client, keys, [](const std::string&) {
    Commands commands;
    commands.add({"INFO", "stats"});
    return commands;
  });
  std::vector<ServerState> states;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ServerState& state = states.emplace_back();
    state.server = server_of(client, keys[i]);
    state.problem = answered[i].problem;
    if (!state.problem.empty()) continue;
    constexpr std::string_view kLine = "instantaneous_ops_per_sec:";
    const std::string& stats = answered[i].replies[0].text;
    const std::size_t at = stats.find(kLine);
    if (at == std::string::npos) continue;
    const char* const number = stats.data() + at + kLine.size();
    std::from_chars(number, stats.data() + stats.size(), state.commands_per_second);
  }
  return states;
}

std::vector<std::string> drop_shared_filter(const std::shared_ptr<Client>& client,
                                            const Layout& layout) {
  LayoutStore store(client);
  Layout dropped = layout.next(now_ms());
  dropped.dropped = true;
  dropped.move.reset();
  if (!store.replace(layout, dropped))
    throw ServersFailed(fmt::format(
        "the layout of '{}' has changed meanwhile: nothing was dropped, run the same again",
        client->address().name));
  const std::vector<std::string> keys = keys_of(*client, layout);
  const auto answered = ask_all(*client, keys, [](const std::string& key) {
    Commands commands;
    commands.add({"EVAL", kDrop, "2", key, moving_key(key), kMarkForMs});
    return commands;
  });
  std::vector<std::string> left;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (!answered[i].problem.empty()) left.push_back(keys[i]);
  return left;
}

}  // namespace sluice::redis
