// Claims: keys whose events are being delivered.
//
// A filter holds only keys whose events were delivered. Until then a key is *pending*: it is kept
// here, in a small exact table.
//
//   claim(key, token, lease)   claimed: it is yours to deliver. duplicate: it was delivered before.
//                              pending: somebody else is delivering it; wait for the outcome.
//   confirm(key, token)        it was delivered: the filter remembers it from now on.
//   release(key, token)        it was not delivered: the next caller to claim it gets it.
//
// A claim that is neither confirmed nor released ends with its lease. Then anybody may claim the
// key, and a later confirmation is refused. The same token may claim again, which extends the
// lease, so a retry is harmless. So is a second confirmation: the answer is `already` if the filter
// promises no false negatives.
//
// Bounded  At most `most` keys are pending. One more is an error (ClaimsFull), never an eviction.
//          Expired claims make room.
// Memory   claim allocates what confirm will need. If the filter has no memory for a key when it is
//          confirmed, the key stays here as delivered: it is a `duplicate` until the filter has
//          memory, and is then handed over. confirm and release allocate nothing.
// Time     Nothing here reads a clock. `now` is any nanosecond clock that does not go back. A key
//          is remembered at its event time if the claim names one, otherwise at that of its
//          confirmation, or at the time when it was confirmed if neither names one.
// Cost     A hash table into a heap ordered by lease: O(log n) per call, about 70 bytes per pending
//          key, none for keys that may still come. When it is nearly full, a table of twice the
//          size is made beside it, a page with each claim, and then keys move there, a few with
//          each claim.
//
// The same calls give the same encoded bytes. They hold who claims which key; the limit `most` is
// not encoded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/memory_resource.hpp"
#include "sluice/hash/digest.hpp"
#include "sluice/window/clock.hpp"

namespace sluice {

// The limit of pending keys is reached.
class ClaimsFull : public Error {
 public:
  using Error::Error;
};

// Remembers delivered keys: a filter or window with its clock.
class KeyMemory {
 public:
  // The event's own time (event_time), or the time when it came or was delivered, by the caller's
  // clock.
  struct When {
    Nanoseconds time = 0;
    bool event_time = false;
  };

  virtual ~KeyMemory() = default;
  // Whether an event of this key would be a duplicate. Writes nothing, but may forget keys that are
  // too old.
  virtual bool remembers(const Digest& key, const When& when) = 0;
  // Remembers a key that was delivered. False: there is no memory for it at present, and
  // nothing has changed.
  virtual bool remember(const Digest& key, const When& when) = 0;
  // Before and after memory for one more claim is taken. False: leave it, there is to be none.
  virtual bool may_take() { return true; }
  virtual void took(bool /*done*/) {}
};

// Servers send these numbers as answers.
enum class ClaimAnswer : std::uint8_t { duplicate = 0, claimed = 1, pending = 2 };
enum class ConfirmAnswer : std::uint8_t {
  refused = 0,  // not yours, or your lease has ended
  confirmed = 1,
  already = 2,  // it is remembered: by an earlier confirmation of yours, or somebody else's
};

class Claims {
 public:
  // Identifies a claimant: 128 bits, unique to it. Text is hashed to a token.
  using Token = Digest;
  static constexpr std::uint64_t kMostClaims = std::uint64_t{1} << 20;
  // A key that the filter had no memory for is offered to it again after this time.
  static constexpr Nanoseconds kRetryAfter = 1'000'000'000;

  struct Request {
    Digest key;
    Token token;
    // The clock of leases; 0 if it is left out in every call, and then no lease ends. A window over
    // time needs this or `event_time`.
    std::optional<Nanoseconds> now = {};
    Nanoseconds lease = 0;  // above 0; only claim() reads it
    std::optional<Nanoseconds> event_time = {};
  };

  // Throws BadParameters unless 1 <= most <= kMostClaims. `memory` must outlive this.
  explicit Claims(std::uint64_t most, MemoryResource& memory = default_memory());
  Claims(Claims&&) noexcept;
  Claims& operator=(Claims&&) = delete;
  ~Claims();

  // Throws ClaimsFull, BadParameters or NoMemory; then nothing has changed, except that expired
  // claims may be gone, and delivered keys handed over.
  ClaimAnswer claim(KeyMemory& memory, const Request& request);
  ConfirmAnswer confirm(KeyMemory& memory, const Request& request);
  // Returns whether the claim was yours.
  bool release(const Digest& key, const Token& token, Nanoseconds now) noexcept;

  // Takes a key back. True if it was delivered and the filter does not have it yet. A pending key
  // stays pending.
  bool forget(const Digest& key) noexcept;

  // What this table knows about a key. `delivered`: the filter does not have it yet.
  enum class State : std::uint8_t { unknown, pending, delivered };
  State state_of(const Digest& key, Nanoseconds now) const noexcept;
  // Whether this claimant's confirmation would count: the key is pending, and the claim is its.
  bool is_held_by(const Digest& key, const Token& token, Nanoseconds now) const noexcept;
  // When a key was delivered that the filter does not have yet; none for all other keys.
  std::optional<KeyMemory::When> delivered(const Digest& key) const noexcept;
  // How many keys are pending: whose leases have not ended. Looks at all of them.
  std::uint64_t pending(Nanoseconds now) const noexcept;
  // The event time that a key in this table was claimed with, and will be remembered at: what a
  // journal must hold, also if another event claims the key again. None: claimed without one.
  std::optional<Nanoseconds> event_time_of(const Digest& key) const noexcept;

  // Ends the claim on a key, whoever holds it: it was delivered, and the filter has it. Returns
  // whether there was one.
  bool settle(const Digest& key) noexcept;

  // Gives the filter a key that was delivered when it had no memory. False if it still has none, or if
  // there is no such key. claim() does this for its key.
  bool hand_over(KeyMemory& memory, const Digest& key);

  // Drops up to `most` expired claims, and hands over delivered keys that are due. claim() does
  // this when it needs room; a host calls this (Judge::tend) when it is idle.
  void tend(KeyMemory& memory, Nanoseconds now, std::size_t most);

  // Expired claims, and keys that the filter does not have yet, included.
  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t most() const noexcept { return most_; }
  std::uint64_t bytes() const noexcept;  // all that is allocated
  // How many slots the longest search for a pending key looks at: few, whatever the keys are.
  std::uint64_t longest_search() const noexcept;

  void encode(Encoder& to) const;
  // `from` must end with the claims. The limit is `most`, or the number of claims read if that is
  // more. Throws CorruptSnapshot.
  static Claims decode(Decoder& from, std::uint64_t most,
                       MemoryResource& memory = default_memory());

 private:
  struct Entry {
    Digest key;
    Token token;
    Nanoseconds until = 0;
    // Time of the event, if known; otherwise of its delivery, once it is delivered.
    KeyMemory::When when = {};
    std::uint32_t slot = 0;  // the slot that points here
    bool delivered = false;
    bool side = false;  // which table that slot is in: slots_, if this is side_

    // A total order, so that claims that end at the same moment are dropped in the same order
    // everywhere.
    bool ends_before(const Entry& other) const noexcept {
      return std::tie(until, key.lo, key.hi) < std::tie(other.until, other.key.lo, other.key.hi);
    }
  };
  struct Salt {
    Digest first, second;
  };
  static Salt random_salt();
  static constexpr std::size_t kEncodedEntry = 49;
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  // Blocks are small: hosts give no large ones.
  static constexpr std::size_t kPageEntries = 64;
  static constexpr std::size_t kPageSlots = 4096;

  Entry& at(std::size_t place) noexcept {
    return pages_[place / kPageEntries][place % kPageEntries];
  }
  const Entry& at(std::size_t place) const noexcept {
    return pages_[place / kPageEntries][place % kPageEntries];
  }
  // A table of open addressing; each slot holds a place in the heap, or kNone.
  struct Slots {
    explicit Slots(MemoryResource& memory) noexcept : pages(memory) {}
    std::size_t count() const noexcept { return mask + 1; }
    std::size_t per_page() const noexcept { return std::min(count(), kPageSlots); }
    std::size_t page_count() const noexcept { return count() / per_page(); }
    bool whole() const noexcept { return pages.size() == page_count(); }
    std::uint32_t& operator[](std::size_t i) noexcept {
      return pages[i / kPageSlots][i % kPageSlots];
    }
    std::uint32_t operator[](std::size_t i) const noexcept {
      return pages[i / kPageSlots][i % kPageSlots];
    }

    std::size_t mask = 0;  // at least twice as many slots as claims
    Vector<std::uint32_t*> pages;
  };
  Slots& slots_of(const Entry& entry) noexcept { return entry.side == side_ ? slots_ : old_slots_; }
  const Slots& slots_of(const Entry& entry) const noexcept {
    return entry.side == side_ ? slots_ : old_slots_;
  }

  std::uint64_t hash_of(const Digest& key) const noexcept;
  std::size_t distance_of(const Entry& entry) const noexcept {
    const std::size_t mask = slots_of(entry).mask;
    return (entry.slot - (hash_of(entry.key) & mask)) & mask;
  }
  std::size_t slot_of(const Slots& slots, const Digest& key, std::uint64_t hash) const noexcept;
  Entry* find(const Digest& key) noexcept;
  const Entry* find(const Digest& key) const noexcept {
    return const_cast<Claims*>(this)->find(key);
  }
  template <class T>
  T* add_page(std::size_t each, const T& with);
  void reserve_one();
  void add_page_of(Slots& slots);
  void free_slots(Slots& slots) noexcept;
  void start_next(std::size_t count) noexcept;
  void double_slots();
  void move_some() noexcept;
  void put_slot(std::size_t place) noexcept;
  void add(const Entry& entry) noexcept;
  void remove(Entry& entry) noexcept;
  void remove_slot(Slots& slots, std::size_t i) noexcept;
  void move_to(std::size_t place, const Entry& entry) noexcept;
  void sift(std::size_t place) noexcept;
  std::size_t place_of(const Entry& entry) const noexcept { return slots_of(entry)[entry.slot]; }
  bool retire_first(KeyMemory& memory, Nanoseconds now, bool& has_memory);
  void free_all() noexcept;

  MemoryResource* memory_;
  std::uint64_t most_;
  Salt salt_;  // of the slots only; no encoding depends on it
  std::size_t size_ = 0;
  std::uint64_t in_pages_ = 0;  // bytes
  Vector<Entry*> pages_;        // a heap: claims that expire first come first
  // Claims are in slots_, and in old_slots_ from cursor_ on if they have not moved yet. next_slots_ is
  // being made.
  Slots slots_, old_slots_, next_slots_;
  std::size_t cursor_ = 0;
  bool side_ = false;
};

}  // namespace sluice
