// An exact table of keys, when each was last written and what was counted of it: an audit's truth.
// Its memory comes from a resource. Only making one and grow() ask for more.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include "sluice/audit/key_sums.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/memory_resource.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

class Shadow {
 public:
  // The lowest bit of the word that decides on the sample (kernels/sample.hpp).
  static constexpr std::uint64_t kLost = std::uint64_t{1} << 32;

  struct Entry {
    Digest key;  // except one bit of hi: whether its event was lost
    std::int64_t last = kEmpty;
    KeyCounts counts;

    bool lost() const noexcept { return (key.hi & kLost) != 0; }
    bool is(const Digest& other) const noexcept {
      return key.lo == other.lo && ((key.hi ^ other.hi) & ~kLost) == 0;
    }
    void set(std::int64_t when, bool was_lost) noexcept {
      last = when;
      key.hi = was_lost ? key.hi | kLost : key.hi & ~kLost;
    }
  };
  // Special values; no time is one of these.
  static constexpr std::int64_t kEmpty = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kUnknown = kEmpty + 1;    // perhaps in the filter, time unknown
  static constexpr std::int64_t kForgotten = kEmpty + 2;  // taken back: surely not in the filter
  static constexpr std::size_t kFirstSlots = 32;

  // `slots`: a power of two. Throws NoMemory.
  explicit Shadow(MemoryResource& memory, std::size_t slots = kFirstSlots)
      : slots_(slots, Entry{}, memory) {}

  // When it was last written, or null. Valid until the next call that writes.
  Entry* find(const Digest& key) noexcept {
    Entry& slot = slots_[place(key)];
    return slot.last == kEmpty ? nullptr : &slot;
  }
  // Adds a key that is not there; must not be full().
  Entry& add(const Digest& key, std::int64_t last, bool lost) noexcept {
    Entry& slot = slots_[place(key)];
    slot.key = key;
    slot.set(last, lost);
    ++size_;
    return slot;
  }
  // How far an entry is from the slot of its hash.
  std::size_t displacement(const Entry& entry) const noexcept {
    return (static_cast<std::size_t>(&entry - slots_.data()) - entry.key.lo) & (slots_.size() - 1);
  }
  // A quarter stays free, so that searches are short.
  bool full() const noexcept { return size_ >= slots_.size() / 4 * 3; }

  template <class Visit>
  void each(Visit visit) const {
    for (const Entry& entry : slots_)
      if (entry.last != kEmpty) visit(entry);
  }
  template <class Visit>
  void each(Visit visit) {
    for (Entry& entry : slots_)
      if (entry.last != kEmpty) visit(entry);
  }
  template <class Keep>
  std::size_t count(Keep keep) const {
    std::size_t kept = 0;
    for (const Entry& entry : slots_) kept += entry.last != kEmpty && keep(entry);
    return kept;
  }
  // Twice the slots. False: there is no memory for both tables, and nothing has changed.
  bool grow() noexcept {
    return while_memory_lasts([&] {
      Shadow larger(memory(), 2 * slots());
      each([&](const Entry& entry) { larger.slots_[larger.place(entry.key)] = entry; });
      larger.size_ = size_;
      slots_ = std::move(larger.slots_);
    });
  }
  // Keeps the keys for which `keep` holds; it may be asked twice about one of them. In place: an
  // entry that is removed makes room for those behind it. One that was looked at moves at most from
  // the beginning of the table to its end, so that none is left out.
  template <class Keep>
  void keep_only(Keep keep) noexcept {
    for (std::size_t at = 0; at < slots_.size(); ++at)
      while (slots_[at].last != kEmpty && !keep(std::as_const(slots_[at]))) erase(at);
  }
  // Without keys, and with kFirstSlots slots. Its memory is kept until it grows.
  void clear() noexcept {
    size_ = 0;
    slots_.assign(kFirstSlots, Entry{});
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t slots() const noexcept { return slots_.size(); }
  MemoryResource& memory() const noexcept { return slots_.get_allocator().resource(); }
  // As asked for, and as taken from the resource.
  std::uint64_t table_bytes() const noexcept { return slots_.size() * sizeof(Entry); }
  std::uint64_t bytes() const noexcept { return taken_by(slots_); }

 private:
  // Entries behind it move up, unless that would be before the slot of their hash.
  void erase(std::size_t at) noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t hole = at;
    for (std::size_t i = (at + 1) & mask; slots_[i].last != kEmpty; i = (i + 1) & mask) {
      if (((i - slots_[i].key.lo) & mask) < ((i - hole) & mask)) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = Entry{};
    --size_;
  }
  // The slot where the key is or would be.
  std::size_t place(const Digest& key) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = key.lo & mask;
    while (slots_[at].last != kEmpty && !slots_[at].is(key)) at = (at + 1) & mask;
    return at;
  }

  Vector<Entry> slots_;
  std::size_t size_ = 0;
};

}  // namespace sluice
