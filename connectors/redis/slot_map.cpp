#include "connectors/redis/slot_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace sluice::redis {
namespace {

// Nodes of a cluster: its own limit is about a thousand.
constexpr std::size_t kMostEndpoints = 10000;

// CRC16 of XMODEM: polynomial 0x1021, most significant bit first, from 0.
constexpr std::array<std::uint16_t, 256> kCrc = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021u : 0u);
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

std::string_view tag_within(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const std::size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

bool is_number(const Reply& reply, std::int64_t least, std::int64_t most) {
  return reply.is(Reply::Kind::integer) && reply.integer >= least && reply.integer <= most;
}

}  // namespace

std::uint16_t slot_of(std::string_view key) noexcept {
  unsigned crc = 0;
  for (const char c : tag_within(key))
    crc = (crc << 8 & 0xffff) ^ kCrc[(crc >> 8) ^ static_cast<unsigned char>(c)];
  return static_cast<std::uint16_t>(crc % kSlots);
}

std::string tag_in_turn(std::string_view name, std::uint32_t part, std::uint32_t turn) {
  return fmt::format("{}:{}:{}", name, part, turn);
}

std::uint32_t turn_of(std::string_view name, std::uint32_t part, std::uint32_t parts) {
  const std::uint32_t ranges = std::min<std::uint32_t>(parts, kSlots);
  for (std::uint32_t turn = 0;; ++turn)
    if (std::uint64_t{slot_of(tag_in_turn(name, part, turn))} * ranges / kSlots == part % ranges)
      return turn;
}

std::string tag_of(std::string_view name, std::uint32_t part, std::uint32_t parts) {
  return tag_in_turn(name, part, turn_of(name, part, parts));
}

SlotMap SlotMap::even(std::span<const Endpoint> endpoints) {
  SlotMap map;
  map.endpoints_.assign(endpoints.begin(), endpoints.end());
  for (std::size_t slot = 0; slot < kSlots && !endpoints.empty(); ++slot)
    map.owner_[slot] = static_cast<std::uint16_t>(slot * endpoints.size() / kSlots);
  return map;
}

std::uint16_t SlotMap::number_of(const Endpoint& endpoint) {
  const auto known = std::ranges::find(endpoints_, endpoint);
  const auto number = static_cast<std::uint16_t>(known - endpoints_.begin());
  if (known == endpoints_.end()) endpoints_.push_back(endpoint);
  return number;
}

// [first slot, last slot, [host, port, ...] of the primary, replicas...]. What is wrong with it, or
// nothing.
std::string SlotMap::take_range(const Reply& range, const Endpoint& from) {
  if (range.elements.size() < 3 || !is_number(range.elements[0], 0, kSlots - 1) ||
      !is_number(range.elements[1], range.elements[0].integer, kSlots - 1))
    return "a range that is not of slots";
  const Reply& primary = range.elements[2];
  if (primary.elements.size() < 2 || !is_number(primary.elements[1], 1, 65535))
    return "a server without a port";
  const Reply& host = primary.elements[0];
  // Null and "" say: the one you asked. "?" says that it does not know.
  if (!host.is(Reply::Kind::nil) && !host.is(Reply::Kind::text)) return "a server without a host";
  const bool same = host.text.empty();
  if (host.text == "?") return {};
  if (!same && !is_host(host.text)) return "a server whose host is none";
  if (endpoints_.size() >= kMostEndpoints) return "more servers than a cluster can have";
  const std::uint16_t owner = number_of(
      {same ? from.host : host.text, static_cast<std::uint16_t>(primary.elements[1].integer)});
  for (auto slot = static_cast<std::size_t>(range.elements[0].integer);
       slot <= static_cast<std::size_t>(range.elements[1].integer); ++slot) {
    if (owner_[slot] != kNobody) return fmt::format("slot {} twice", slot);
    owner_[slot] = owner;
  }
  return {};
}

SlotMap SlotMap::read(const Reply& reply, const Endpoint& from, std::string& problem) {
  SlotMap map;
  problem.clear();
  if (!reply.is(Reply::Kind::array)) problem = reply.text.empty() ? "no list" : reply.text;
  for (const Reply& range : reply.elements)
    if (problem.empty()) problem = map.take_range(range, from);
  if (problem.empty() && map.empty()) problem = "no server that serves slots";
  if (problem.empty()) return map;
  problem = fmt::format("CLUSTER SLOTS of {}: {}", text_of(from), problem);
  return {};
}

Advice read_advice(const Reply& error, const Endpoint& from) {
  const std::string_view text = error.text;
  const std::string_view word = text.substr(0, text.find(' '));
  for (const std::string_view wait : {"TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "BUSY"})
    if (word == wait) return {Advice::Kind::wait, {}};
  if (word != "MOVED" && word != "ASK") return {};
  // MOVED slot host:port, where the host may be left out: the one that said it.
  const std::size_t space = text.rfind(' ');
  std::string_view where = text.substr(space + 1);
  Advice advice{word == "ASK" ? Advice::Kind::ask : Advice::Kind::moved, {}};
  if (where.starts_with(':')) {
    const auto port = parse_port(where.substr(1));
    if (!port) return {};
    advice.to = {from.host, *port};
  } else if (const auto to = parse_endpoint(where)) {
    advice.to = *to;
  } else {
    return {};
  }
  return advice;
}

}  // namespace sluice::redis
