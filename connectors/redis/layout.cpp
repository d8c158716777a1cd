#include "connectors/redis/layout.hpp"

#include <fmt/format.h>

#include <thread>
#include <vector>

namespace sluice::redis {
namespace {

using cluster::Layout;

// 1: replaced. 0: there is another one, or none.
constexpr std::string_view kReplace =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\n"
    "redis.call('SET', KEYS[1], ARGV[2])\n"
    "if ARGV[3] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end\n"
    "return 1";

}  // namespace

std::string layout_key(std::string_view name) {
  return fmt::format("{{{}}}:layout:1", name);
}

std::string slice_key(std::string_view name, const Layout& layout, std::uint32_t site) {
  const Layout::Slice& slice = layout.slices[site];
  // Half of the identity: the name is sent with each command.
  return fmt::format("{{{}}}:{}:1:{:08x}.{}", tag_in_turn(name, site, slice.turn),
                     layout.kind == Layout::Kind::filters ? "filter" : "cells",
                     layout.identity >> 32, slice.placed);
}

std::string moving_key(const std::string& key) {
  return key + ":moving";
}

LayoutStore::LayoutStore(std::shared_ptr<Client> client)
    : client_(std::move(client)), key_(layout_key(client_->address().name)), slot_(slot_of(key_)) {}

std::string LayoutStore::where() const {
  const Endpoint* const at = client_->map().at(slot_);
  return at == nullptr ? std::string("the servers") : text_of(*at);
}

// Nothing: there was no answer, and the command may have been carried out.
std::optional<Reply> LayoutStore::ask(Commands commands) {
  std::vector<Reply> replies;
  const Outcome outcome = client_->receive(client_->send(slot_, std::move(commands)), replies);
  if (outcome == Outcome::late) return std::nullopt;
  if (outcome == Outcome::answered) return std::move(replies[0]);
  if (replies[0].is(Reply::Kind::error))
    throw ServersFailed(fmt::format("{}: {}: {}", where(), key_, replies[0].text));
  throw ServersFailed(client_->problem());
}

std::optional<Layout> LayoutStore::read() {
  Commands commands;
  commands.add({"GET", key_});
  const std::optional<Reply> reply = ask(std::move(commands));
  if (!reply) throw ServersFailed(client_->problem());
  if (reply->is(Reply::Kind::nil)) return std::nullopt;
  if (!reply->is(Reply::Kind::text))
    throw ServersFailed(fmt::format("{}: {}: no answer to GET", where(), key_));
  try {
    return cluster::decode_layout(reply->text);
  } catch (const cluster::CorruptLayout& error) {
    throw cluster::CorruptLayout(fmt::format("{}: {}: {}", where(), key_, error.what()));
  }
}

// After an answer that was lost: until there is one, or for as long as a server needs to come back.
bool LayoutStore::has_become(const Layout& layout) {
  constexpr std::chrono::milliseconds kPause{50};
  constexpr unsigned kTurns = 100;
  for (unsigned turn = 1;; ++turn) {
    std::this_thread::sleep_for(kPause);
    try {
      return read() == layout;
    } catch (const ServersFailed&) {
      if (turn == kTurns) throw;
    }
  }
}

bool LayoutStore::create(const Layout& layout) {
  Commands commands;
  commands.add({"SET", key_, encode(layout), "NX"});
  const std::optional<Reply> reply = ask(std::move(commands));
  return reply ? !reply->is(Reply::Kind::nil) : has_become(layout);
}

bool LayoutStore::replace(const Layout& from, const Layout& to) {
  constexpr std::chrono::milliseconds kFor = kDroppedFor;
  const std::string expiry = to.dropped ? std::to_string(kFor.count()) : "0";
  Commands commands;
  commands.add({"EVAL", kReplace, "1", key_, encode(from), encode(to), expiry});
  const std::optional<Reply> reply = ask(std::move(commands));
  return reply ? reply->is(Reply::Kind::integer) && reply->integer == 1 : has_become(to);
}

}  // namespace sluice::redis
