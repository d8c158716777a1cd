#include "connectors/redis/cell_site.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"

namespace sluice::redis {
namespace {

using cluster::Verb;

constexpr std::uint64_t kHeaderBits = 64;

// Whoever finds no incarnation gives one, in one step: 8 bytes at the start of the key.
constexpr std::string_view kName =
    "local have = redis.call('GETRANGE', KEYS[1], 0, 7)\n"
    "if have ~= '' and have ~= string.rep('\\0', 8) then return have end\n"
    "redis.call('SETRANGE', KEYS[1], 0, ARGV[1])\n"
    "return ARGV[1]";

// A claim that has ended may be another producer's by now.
constexpr std::string_view kRelease =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end\n"
    "return 0";

// Words of BITFIELD as Commands would make them.
constexpr std::string_view kGetCell = "$3\r\nGET\r\n$2\r\nu1\r\n";
constexpr std::string_view kSetCell = "$3\r\nSET\r\n$2\r\nu1\r\n";
constexpr std::string_view kOne = "$1\r\n1\r\n";

std::string random_bytes() {
  std::string bytes(8, '\0');
  // Zero would be none.
  while (bytes == std::string(8, '\0')) system_entropy(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// Big-endian, as BITFIELD GET i64 reads them.
std::uint64_t number_of(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

bool is_integer(const Reply& reply) {
  return reply.is(Reply::Kind::integer);
}

}  // namespace

CellSite::CellSite(std::shared_ptr<Client> client, const Place& place)
    : client_(std::move(client)),
      bits_(place.bits),
      lease_ms_(std::to_string(place.lease.count())) {
  if (bits_ == 0 || bits_ > kMostBits)
    throw BadParameters(
        fmt::format("cells: a slice of {} bits; a key that servers can move has up to {}: cut the "
                    "filter into more",
                    bits_, kMostBits));
  if (place.lease.count() < 1) throw BadParameters("cells: a `lease` of 0 ms; give at least 1 ms");
  const std::string tag = tag_of(place.name, place.site, place.sites);
  key_ = fmt::format("{{{}}}:cells:1", tag);
  claim_prefix_ = fmt::format("{{{}}}:claim:1:", tag);
  slot_ = slot_of(key_);
  token_ = random_bytes() + random_bytes();
}

// The incarnation, then a bit per position.
void CellSite::add_cells(Commands& commands, std::span<const std::uint64_t> positions) const {
  const bool reads = verb_ == Verb::test;
  commands.begin(5 + positions.size() * (reads ? 3 : 4));
  commands.word(reads ? "BITFIELD_RO" : "BITFIELD");
  commands.word(key_);
  for (const char* word : {"GET", "i64", "0"}) commands.word(word);
  for (const std::uint64_t position : positions) {
    assert(position < bits_ && "position off the site");
    commands.raw(reads ? kGetCell : kSetCell);
    commands.word(fmt::format_int(kHeaderBits + position).c_str());
    if (!reads) commands.raw(kOne);
  }
}

void CellSite::add_claims(Commands& commands, std::span<const std::uint64_t> names) const {
  for (const std::uint64_t name : names) {
    const std::string key = claim_prefix_ + fmt::format("{:016x}", name);
    if (verb_ == Verb::claim)
      commands.add({"SET", key, token_, "NX", "PX", lease_ms_});
    else
      commands.add({"EVAL", kRelease, "1", key, token_});
  }
}

void CellSite::send(Verb verb, std::span<const std::uint64_t> positions) {
  verb_ = verb;
  positions_ = positions.size();
  Commands commands;
  if (verb == Verb::claim || verb == Verb::release) {
    // A request says which incarnation it met, claims included.
    commands.add({"BITFIELD_RO", key_, "GET", "i64", "0"});
    add_claims(commands, positions);
  } else {
    do {
      const std::size_t count = std::min(positions.size(), kMostCells);
      add_cells(commands, positions.first(count));
      positions = positions.subspan(count);
    } while (!positions.empty());
  }
  ticket_ = client_->send(slot_, std::move(commands));
}

// False: these are no answers to what was asked.
bool CellSite::take_cells(std::span<std::uint8_t> answers) {
  std::size_t at = 0;
  for (const Reply& reply : replies_) {
    const std::size_t count = std::min(positions_ - at, kMostCells);
    if (reply.elements.size() != count + 1 || !std::ranges::all_of(reply.elements, is_integer))
      return false;
    const auto met = std::bit_cast<std::uint64_t>(reply.elements[0].integer);
    // Of several commands, the one that met another: what was lost in between must not stay unseen.
    if (at == 0 || met != incarnation_) incarnation_ = met;
    for (std::size_t i = 0; i < count && verb_ != Verb::set; ++i)
      answers[at + i] = reply.elements[i + 1].integer != 0;
    at += count;
  }
  return true;
}

bool CellSite::take_claims(std::span<std::uint8_t> answers) {
  const Reply& first = replies_[0];
  if (first.elements.size() != 1 || !is_integer(first.elements[0])) return false;
  incarnation_ = std::bit_cast<std::uint64_t>(first.elements[0].integer);
  for (std::size_t i = 0; i < positions_ && verb_ == Verb::claim; ++i)
    answers[i] = replies_[i + 1].is(Reply::Kind::nil);
  return true;
}

cluster::Reply CellSite::receive(std::span<std::uint8_t> answers) {
  const Outcome outcome = client_->receive(ticket_, replies_);
  if (outcome != Outcome::answered) return {outcome, 0};
  const bool claims = verb_ == Verb::claim || verb_ == Verb::release;
  if (!(claims ? take_claims(answers) : take_cells(answers))) return {Outcome::late, 0};
  if (incarnation_ == 0) name_incarnation();
  return {Outcome::answered, incarnation_};
}

// The slice is new, or was lost. If there is no answer it has no incarnation yet, which is another
// than it had.
void CellSite::name_incarnation() {
  Commands commands;
  commands.add({"EVAL", kName, "1", key_, random_bytes()});
  std::vector<Reply> named;
  const Client::Ticket ticket = client_->send(slot_, std::move(commands));
  if (client_->receive(ticket, named) != Outcome::answered || named[0].text.size() != 8) return;
  incarnation_ = number_of(named[0].text);
}

std::vector<std::unique_ptr<cluster::Site>> cell_sites(const std::shared_ptr<Client>& client,
                                                       const cluster::SliceMap& map,
                                                       std::chrono::milliseconds lease) {
  if (map.site_bits() > CellSite::kMostBits) {
    const std::uint64_t bits = map.site_bits() * map.sites();
    throw BadParameters(
        fmt::format("cells: {} slices of {} bits; a key that servers can move has up to {} bits: "
                    "cut the filter into "
                    "{} slices or more",
                    map.sites(), map.site_bits(), CellSite::kMostBits,
                    (bits + CellSite::kMostBits - 1) / CellSite::kMostBits));
  }
  std::vector<std::unique_ptr<cluster::Site>> sites;
  for (std::uint32_t site = 0; site < map.sites(); ++site)
    sites.push_back(std::make_unique<CellSite>(
        client,
        CellSite::Place{client->address().name, site, map.sites(), map.site_bits(), lease}));
  return sites;
}

}  // namespace sluice::redis
