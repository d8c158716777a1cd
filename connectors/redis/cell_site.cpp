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

// Whoever finds no incarnation gives one, in one step: 8 bytes at the start of the key. A page also
// gets its time.
constexpr std::string_view kName =
    "local have = redis.call('GETRANGE', KEYS[1], 0, 7)\n"
    "if have == '' or have == string.rep('\\0', 8) then\n"
    "  redis.call('SETRANGE', KEYS[1], 0, ARGV[1])\n"
    "  have = ARGV[1]\n"
    "end\n"
    "if ARGV[2] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end\n"
    "return have";

// A claim that has ended may be another producer's by now.
constexpr std::string_view kRelease =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end\n"
    "return 0";

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

std::string word(std::string_view text) {
  return fmt::format("${}\r\n{}\r\n", text.size(), text);
}

void check(const CellSite::Place& place) {
  if (place.cell_bits != 1 && place.cell_bits != 16 && place.cell_bits != 32)
    throw BadParameters(fmt::format("cells: {} bits each; give 1, 16 or 32", place.cell_bits));
  if (place.cells == 0 || place.cells > CellSite::kMostBits / place.cell_bits)
    throw BadParameters(fmt::format(
        "cells: a slice of {} cells of {} bits; a key that servers can move has up to {} of them: "
        "cut the filter into more",
        place.cells, place.cell_bits, CellSite::kMostBits / place.cell_bits));
  if (place.lease.count() < 1) throw BadParameters("cells: a `lease` of 0 ms; give at least 1 ms");
}

}  // namespace

std::string CellSite::make_token() {
  return random_bytes() + random_bytes();
}

CellSite::CellSite(std::shared_ptr<Client> client, const Place& place)
    : client_((check(place), std::move(client))),
      cells_(place.cells),
      width_(place.cell_bits),
      page_(place.page.has_value()),
      lease_ms_(std::to_string(place.lease.count())),
      token_(place.token.empty() ? make_token() : place.token) {
  const std::string tag = tag_of(place.name, place.site, place.sites);
  key_ = page_ ? fmt::format("{{{}}}:page:1:{}:{}", tag, width_, *place.page)
               : fmt::format("{{{}}}:cells:1", tag);
  claim_prefix_ = fmt::format("{{{}}}:claim:1:", tag);
  slot_ = slot_of(key_);
  const std::string type = word(fmt::format("u{}", width_));
  get_ = word("GET") + type;
  set_ = word("SET") + type;
}

bool CellSite::asks_for_claims() const noexcept {
  return request_.verb == Verb::claim || request_.verb == Verb::release;
}

// The incarnation, then the cells.
void CellSite::add_cells(Commands& commands, std::size_t begin, std::size_t count) const {
  const bool reads = request_.verb == Verb::test;
  commands.begin(5 + count * (reads ? 3 : 4));
  commands.word(reads ? "BITFIELD_RO" : "BITFIELD");
  commands.word(key_);
  for (const char* each : {"GET", "i64", "0"}) commands.word(each);
  for (std::size_t i = begin; i < begin + count; ++i) {
    assert(request_.positions[i] < cells_ && "position off the site");
    commands.raw(reads ? get_ : set_);
    commands.word(fmt::format_int(kHeaderBits + request_.positions[i] * width_).c_str());
    if (reads) continue;
    if (request_.values.empty())
      commands.raw(kOne);
    else
      commands.word(fmt::format_int(request_.values[i]).c_str());
  }
}

void CellSite::add_claims(Commands& commands) const {
  for (const std::uint64_t name : request_.positions) {
    const std::string key = claim_prefix_ + fmt::format("{:016x}", name);
    if (request_.verb == Verb::claim)
      commands.add({"SET", key, token_, "NX", "PX", lease_ms_});
    else
      commands.add({"EVAL", kRelease, "1", key, token_});
  }
}

void CellSite::add_name(Commands& commands) const {
  commands.add({"EVAL", kName, "1", key_, random_bytes(), std::to_string(keep_ms_)});
}

void CellSite::send(const cluster::Request& request) {
  request_ = request;
  if (page_ && request.keep.count() > 0) keep_ms_ = request.keep.count();
  // Most pages are new when a producer meets them.
  named_ = page_ && incarnation_ == 0;
  Commands commands;
  if (named_) add_name(commands);
  if (asks_for_claims()) {
    // A request says which incarnation it met, claims included.
    commands.add({"BITFIELD_RO", key_, "GET", "i64", "0"});
    add_claims(commands);
  } else {
    std::size_t at = 0;
    do {
      const std::size_t count = std::min(request.positions.size() - at, kMostCells);
      add_cells(commands, at, count);
      at += count;
    } while (at < request.positions.size());
  }
  if (page_ && !named_ && request.keep.count() > 0)
    commands.add({"PEXPIRE", key_, std::to_string(keep_ms_)});
  ticket_ = client_->send(slot_, std::move(commands));
}

// False: these are no answers to what was asked.
bool CellSite::take_cells(std::span<const Reply> replies, std::span<std::uint32_t> answers) {
  const std::size_t all = request_.positions.size();
  std::size_t at = 0;
  do {
    if (replies.empty()) return false;
    const std::vector<Reply>& elements = replies.front().elements;
    const std::size_t count = std::min(all - at, kMostCells);
    if (elements.size() != count + 1 || !std::ranges::all_of(elements, is_integer)) return false;
    const auto met = std::bit_cast<std::uint64_t>(elements[0].integer);
    // Of several commands, the one that met another: what was lost in between must not stay unseen.
    if (at == 0 || met != incarnation_) incarnation_ = met;
    const std::size_t wanted = std::min(count, answers.size() - std::min(at, answers.size()));
    for (std::size_t i = 0; i < wanted && request_.verb != Verb::set; ++i) {
      const std::int64_t answer = elements[i + 1].integer;
      if (answer < 0 || answer >> width_ != 0) return false;
      answers[at + i] = static_cast<std::uint32_t>(answer);
    }
    at += count;
    replies = replies.subspan(1);
  } while (at < all);
  return true;
}

bool CellSite::take_claims(std::span<const Reply> replies, std::span<std::uint32_t> answers) {
  const Reply& first = replies[0];
  if (first.elements.size() != 1 || !is_integer(first.elements[0])) return false;
  incarnation_ = std::bit_cast<std::uint64_t>(first.elements[0].integer);
  for (std::size_t i = 0; i < std::min(request_.positions.size(), answers.size()); ++i) {
    const Reply& reply = replies[i + 1];
    answers[i] = request_.verb == Verb::claim ? reply.is(Reply::Kind::nil) : reply.integer != 0;
  }
  return true;
}

cluster::Reply CellSite::receive(std::span<std::uint32_t> answers) {
  const Outcome outcome = client_->receive(ticket_, replies_);
  if (outcome != Outcome::answered) return {outcome, 0};
  const std::span replies = std::span(replies_).subspan(named_);
  if (!(asks_for_claims() ? take_claims(replies, answers) : take_cells(replies, answers))) {
    incarnation_ = 0;
    return {Outcome::late, 0};
  }
  if (incarnation_ == 0) name_incarnation();
  return {Outcome::answered, incarnation_};
}

// The slice is new, or was lost. If there is no answer it has no incarnation yet, which is another
// than it had.
void CellSite::name_incarnation() {
  Commands commands;
  add_name(commands);
  std::vector<Reply> named;
  const Client::Ticket ticket = client_->send(slot_, std::move(commands));
  if (client_->receive(ticket, named) != Outcome::answered || named[0].text.size() != 8) return;
  incarnation_ = number_of(named[0].text);
}

namespace {

class CellPages final : public cluster::Pages {
 public:
  CellPages(std::shared_ptr<Client> client, CellSite::Place place)
      : client_(std::move(client)), place_(std::move(place)) {}

  std::uint64_t cells() const override { return place_.cells; }
  unsigned cell_bits() const override { return place_.cell_bits; }
  std::unique_ptr<cluster::Site> open(std::int64_t number) override {
    place_.page = number;
    return std::make_unique<CellSite>(client_, place_);
  }

 private:
  std::shared_ptr<Client> client_;
  CellSite::Place place_;
};

// Where the slices are. Throws BadParameters.
std::vector<CellSite::Place> places_of(const Client& client, const cluster::SliceMap& map,
                                       unsigned cell_bits, std::chrono::milliseconds lease) {
  const std::uint64_t most = CellSite::kMostBits / std::max(1u, cell_bits);
  if (map.site_bits() > most) {
    const std::uint64_t cells = map.site_bits() * map.sites();
    throw BadParameters(
        fmt::format("cells: {} slices of {} cells of {} bits; a key that servers can move has up "
                    "to {}: cut the "
                    "filter into {} slices or more",
                    map.sites(), map.site_bits(), cell_bits, most, (cells + most - 1) / most));
  }
  std::vector<CellSite::Place> places;
  const std::string token = CellSite::make_token();
  for (std::uint32_t site = 0; site < map.sites(); ++site) {
    places.push_back({.name = client.address().name,
                      .site = site,
                      .sites = map.sites(),
                      .cells = map.site_bits(),
                      .cell_bits = cell_bits,
                      .lease = lease,
                      .token = token});
    check(places.back());
  }
  return places;
}

}  // namespace

std::vector<std::unique_ptr<cluster::Site>> cell_sites(const std::shared_ptr<Client>& client,
                                                       const cluster::SliceMap& map,
                                                       std::chrono::milliseconds lease) {
  std::vector<std::unique_ptr<cluster::Site>> sites;
  for (const CellSite::Place& place : places_of(*client, map, 1, lease))
    sites.push_back(std::make_unique<CellSite>(client, place));
  return sites;
}

std::vector<std::unique_ptr<cluster::Pages>> cell_pages(const std::shared_ptr<Client>& client,
                                                        const cluster::SliceMap& map,
                                                        unsigned cell_bits,
                                                        std::chrono::milliseconds lease) {
  std::vector<std::unique_ptr<cluster::Pages>> pages;
  for (CellSite::Place& place : places_of(*client, map, cell_bits, lease))
    pages.push_back(std::make_unique<CellPages>(client, std::move(place)));
  return pages;
}

}  // namespace sluice::redis
