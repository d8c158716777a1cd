// Which server has a key: slots of keys, which server has a slot, and what servers say about both.
// The packaged hiredis knows nothing of clusters.
//
// A key's slot is CRC16 of its hash tag, modulo 16384; the tag is what stands between the first '{'
// and the next '}', if anything does, and else the whole key.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "connectors/redis/address.hpp"
#include "connectors/redis/reply.hpp"

namespace sluice::redis {

inline constexpr unsigned kSlots = 16384;

std::uint16_t slot_of(std::string_view key) noexcept;

// A hash tag, without braces, of `part` of `parts` equal ranges of slots: the same for everybody.
// So the parts of a filter are spread evenly over servers that share the slots evenly, and
// neighbours stay together. Parts beyond the number of slots share their ranges.
std::string tag_of(std::string_view name, std::uint32_t part, std::uint32_t parts);
// A part has many tags, each in a slot of its own as chance has it: NAME:PART:TURN. tag_of() is the
// first of them in the part's range.
std::string tag_in_turn(std::string_view name, std::uint32_t part, std::uint32_t turn);
std::uint32_t turn_of(std::string_view name, std::uint32_t part, std::uint32_t parts);

class SlotMap {
 public:
  // Knows no server.
  SlotMap() { owner_.fill(kNobody); }
  // The slots in equal ranges over servers that know nothing of each other.
  static SlotMap even(std::span<const Endpoint> endpoints);
  // Of the answer to CLUSTER SLOTS that `from` gave, or why it is none. Servers that do not know
  // their own address leave it out.
  static SlotMap read(const Reply& reply, const Endpoint& from, std::string& problem);

  bool empty() const noexcept { return endpoints_.empty(); }
  // Null: nobody serves the slot.
  const Endpoint* at(std::uint16_t slot) const noexcept {
    return owner_[slot] == kNobody ? nullptr : &endpoints_[owner_[slot]];
  }
  std::span<const Endpoint> endpoints() const noexcept { return endpoints_; }

 private:
  static constexpr std::uint16_t kNobody = 0xffff;
  std::string take_range(const Reply& range, const Endpoint& from);
  std::uint16_t number_of(const Endpoint& endpoint);

  std::array<std::uint16_t, kSlots> owner_;
  std::vector<Endpoint> endpoints_;  // primaries
};

// What an error reply tells a client to do.
struct Advice {
  enum class Kind : std::uint8_t {
    none,   // it is final
    moved,  // the slot is served by another server from now on
    ask,    // this command only is for another server
    wait,   // try again later: keys move, or the server or the cluster is not ready
  };
  Kind kind = Kind::none;
  Endpoint to;  // of moved and ask
};
// `from` is the server that said it.
Advice read_advice(const Reply& error, const Endpoint& from);

}  // namespace sluice::redis
