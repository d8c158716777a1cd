// Cell sites: a slice of a filter as bits or numbers in a server's own strings, read and written with
// BITFIELD, so that it runs on servers that load no module.
//
// Cost     One command per request; 0.25 µs per bit that is tested, measured with one producer on
//          loopback. 3 words per cell that is tested and 4 per cell that is set on the wire. Claims:
//          SET NX PX for each key, and a script that deletes it if it is still this producer's.
// Errors   A server that comes back empty has another incarnation: see Site. A replica that takes
//          over, and a server that loads an old snapshot, have the incarnation, but not the writes
//          since: their keys are let through once more, unnoticed.
// Use it   for vertical and diced slicings, and on managed servers.
// Avoid    a server that evicts keys: a slice that is evicted is noticed, and doubted from then on.
//          Set maxmemory-policy noeviction. `volatile-*`, which some managed servers begin with,
//          evicts pages.
// Format   The key `{tag}:cells:1`, tag_of(name, site, sites): 8 random bytes, the incarnation, set
//          by whoever comes first; then the bits. The incarnation stands in the same key as the
//          bits so that one command reads both, and one cannot be lost without the other.
//          Page N of cells of W bits is `{tag}:page:1:W:N`, of the same contents, with an expiry
//          (PEXPIRE) from its first command on. Cells are as BITFIELD uW reads them at 64 + W · i.
//          `{tag}:claim:1:NAME` holds the token of the producer that claimed NAME, until its lease
//          ends.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connectors/redis/client.hpp"
#include "sluice/cluster/site.hpp"
#include "sluice/cluster/slice_map.hpp"

namespace sluice::redis {

class CellSite final : public cluster::Site {
 public:
  // A value has at most 512 MiB, and so has a command: RESTORE, which moves a key to another
  // server, holds all of it and some bytes more.
  static constexpr std::uint64_t kMostBits = (std::uint64_t{511} << 20) * 8;
  // Of one BITFIELD: 1.6 ms of the server's time. A longer request is cut.
  static constexpr std::size_t kMostCells = kAtomicPositions;

  struct Place {
    std::string name;  // of the filter
    std::uint32_t site = 0, sites = 1;
    std::uint64_t cells = 0;
    unsigned cell_bits = 1;
    // For how long a producer that does not come back holds its claims.
    std::chrono::milliseconds lease = std::chrono::seconds(10);
    // None: a site that stays.
    std::optional<std::int64_t> page = {};
    // What claims are held with; empty: made up. The pages of a producer share it.
    std::string token = {};
  };

  // Throws BadParameters. Connects when it is used; the producer's sites share its client.
  CellSite(std::shared_ptr<Client> client, const Place& place);

  std::uint64_t cells() const override { return cells_; }
  unsigned cell_bits() const override { return width_; }
  void send(const cluster::Request& request) override;
  cluster::Reply receive(std::span<std::uint32_t> answers) override;

  const std::string& key() const noexcept { return key_; }

  // A number that nobody else has.
  static std::string make_token();

 private:
  void add_cells(Commands& commands, std::size_t begin, std::size_t count) const;
  void add_claims(Commands& commands) const;
  void add_name(Commands& commands) const;
  bool take_cells(std::span<const Reply> replies, std::span<std::uint32_t> answers);
  bool take_claims(std::span<const Reply> replies, std::span<std::uint32_t> answers);
  bool asks_for_claims() const noexcept;
  void name_incarnation();

  std::shared_ptr<Client> client_;
  std::uint64_t cells_;
  unsigned width_;
  bool page_;
  std::string lease_ms_;
  std::string key_, claim_prefix_, token_;
  std::string get_, set_;  // words of BITFIELD for one cell, as Commands would make them
  std::uint16_t slot_;

  cluster::Request request_;
  Client::Ticket ticket_ = 0;
  std::vector<Reply> replies_;
  std::uint64_t incarnation_ = 0;  // of the last reply
  bool named_ = false;             // whether the present request names the page first
  std::int64_t keep_ms_ = 0;       // what was asked for last
};

// A producer's connections to all slices of a filter. Throws BadParameters, and for a slice that is
// larger than a key can be it says how many it takes.
std::vector<std::unique_ptr<cluster::Site>> cell_sites(
    const std::shared_ptr<Client>& client, const cluster::SliceMap& map,
    std::chrono::milliseconds lease = std::chrono::seconds(10));

// The same of a filter with a window: of each slice the pages, with cells of that many bits.
std::vector<std::unique_ptr<cluster::Pages>> cell_pages(
    const std::shared_ptr<Client>& client, const cluster::SliceMap& map, unsigned cell_bits,
    std::chrono::milliseconds lease = std::chrono::seconds(10));

}  // namespace sluice::redis
