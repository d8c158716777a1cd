// An open-addressed table of entries under uniform digests, which is moved into a larger or smaller
// one step by step.
//
// Linear probing; a key's home is given by the top bits of its digest, so slots follow the order of
// the keys. A second table is filled run by run, front to back, some slots with every insertion. The
// home of a key alone tells in which of the two tables it is, so a search looks in one.
//
// Why a run is the unit: behind a free slot no key is searched for from before it. The move starts
// behind a free slot too. Keys of the last homes may spill over that start while the move goes on;
// every insertion adds one such key at most, and moves kStep slots before, so that they never reach
// what is still to be moved. The end of the move takes them along.
//
// An Entry has a Digest `key` and says whether it is free(); one of zeros is free.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "sluice/base/checked.hpp"
#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/memory.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

template <class Entry>
class DigestTable {
 public:
  // Slots that an insertion moves. A table that was three quarters full when the move began is then
  // at most 13/16 full at its end.
  static constexpr std::uint64_t kStep = 16;
  // At 13/16 full, the farthest key of a billion lies some 1030 slots from home. A file whose keys
  // all share a home would make every search of its loading as long as the table.
  static constexpr std::uint64_t kMostDisplaced = 2048;

  // `slots` is a power of two. Throws NoMemory.
  DigestTable(std::uint64_t slots, const char* what, MemoryResource& memory)
      : what_(what), now_(slots, what, memory) {}

  // The entry of the key, or the free one where it would go. There is always a free one.
  Entry* find(const Digest& key) const noexcept {
    if (moving()) [[unlikely]]
      return part_of(key).find(key);
    return now_.find(key);
  }
  // Where the search for a key begins.
  const Entry* home(const Digest& key) const noexcept {
    const Part& part = part_of(key);
    return part.entries() + part.home_of(key);
  }
  // Into the free slot that find() returned.
  void fill(Entry* slot, const Entry& entry) noexcept {
    *slot = entry;
    ++used_;
  }
  // Frees a slot that find() returned.
  void take_out(Entry* slot) noexcept {
    (now_.holds(slot) ? now_ : old_).take_out(slot);
    --used_;
  }

  // Begins to move into a table of so many slots; not while moving(). Throws NoMemory, and is then
  // as it was. Slots must be enough for what step() keeps and the insertions on the way.
  void begin(std::uint64_t slots) {
    Part next(slots, what_, memory());
    old_ = std::exchange(now_, std::move(next));
    start_ = 0;
    while (!old_.entries()[start_].free()) ++start_;
    start_ = (start_ + 1) & (old_.slots - 1);
    moved_ = 0;
  }
  bool moving() const noexcept { return old_.slots != 0; }
  // Moves the next runs, and drops what `keep` does not hold for. Before every insertion while
  // moving().
  template <class Keep>
  void step(Keep keep) noexcept {
    const std::uint64_t until = std::min(moved_ + kStep, old_.slots);
    for (bool was_free = false; moved_ < until || !was_free; ++moved_) {
      Entry& entry = old_.entries()[(start_ + moved_) & (old_.slots - 1)];
      was_free = entry.free();
      if (was_free) continue;
      if (keep(entry))
        *now_.find(entry.key) = entry;
      else
        --used_;
      entry = {};
    }
    if (moved_ >= old_.slots) {
      old_ = {};
      start_ = moved_ = 0;
    }
  }

  // All entries, in a table of so many slots. Throws NoMemory, and is then as it was.
  void rebuild(std::uint64_t slots) {
    DigestTable other(slots, what_, memory());
    each([&](const Entry& entry) { other.fill(other.find(entry.key), entry); });
    *this = std::move(other);
  }
  void clear() noexcept {
    old_ = {};
    now_.memory.clear();
    start_ = moved_ = used_ = 0;
  }

  // Calls act(entry) for each that is not free.
  template <class Act>
  void each(Act act) const {
    for (const Part* part : {&now_, &old_})
      for (const Entry& entry : part->all())
        if (!entry.free()) act(entry);
  }

  std::uint64_t slots() const noexcept { return now_.slots; }
  std::uint64_t used() const noexcept { return used_; }
  std::uint64_t bytes() const noexcept { return now_.memory.size() + old_.memory.size(); }
  // What it holds of its resource.
  std::uint64_t taken() const noexcept { return now_.memory.taken() + old_.memory.taken(); }
  MemoryResource& memory() const noexcept { return now_.memory.resource(); }
  Entry* entries() noexcept { return now_.entries(); }

  void encode_header(Encoder& to) const {
    to.u64(now_.slots);
    to.u64(old_.slots);
    to.u64(start_);
    to.u64(moved_);
  }
  void encode_payload(Encoder& to) const {
    to.bytes(now_.memory.bytes());
    to.bytes(old_.memory.bytes());
  }
  // Of at least `fewest` slots. Throws CorruptSnapshot. `keep` as in step().
  template <class Keep>
  static DigestTable decode(Decoder& header, Decoder& payload, const char* what,
                            std::uint64_t fewest, Keep keep, MemoryResource& memory);

 private:
  struct Part {
    std::uint64_t slots = 0;
    unsigned shift = 0;
    Memory memory;

    Part() noexcept = default;
    Part(std::uint64_t count, const char* what, MemoryResource& resource)
        : slots(count),
          shift(64 - static_cast<unsigned>(std::countr_zero(count))),
          memory(checked_multiply(count, sizeof(Entry), what), resource) {}

    Entry* entries() const noexcept { return const_cast<Entry*>(memory.template as<Entry>()); }
    std::span<const Entry> all() const noexcept { return {entries(), slots}; }
    bool holds(const Entry* slot) const noexcept {
      return slot >= entries() && slot < entries() + slots;
    }
    std::uint64_t home_of(const Digest& key) const noexcept { return key.lo >> shift; }

    Entry* find(const Digest& key) const noexcept {
      Entry* const begin = entries();
      Entry* const end = begin + slots;
      Entry* slot = begin + home_of(key);
      while (slot->key != key && !slot->free())
        if (++slot == end) slot = begin;
      return slot;
    }
    // No tombstone: whatever would no longer be reached past the hole moves back into it.
    void take_out(Entry* found) noexcept {
      Entry* const begin = entries();
      const std::uint64_t mask = slots - 1;
      auto hole = static_cast<std::uint64_t>(found - begin);
      for (std::uint64_t slot = (hole + 1) & mask; !begin[slot].free(); slot = (slot + 1) & mask) {
        const std::uint64_t displaced = (slot - home_of(begin[slot].key)) & mask;
        if (displaced < ((slot - hole) & mask)) continue;  // its way does not pass the hole
        begin[hole] = begin[slot];
        hole = slot;
      }
      begin[hole] = {};
    }
  };

  bool moved(const Digest& key) const noexcept {
    return ((old_.home_of(key) - start_) & (old_.slots - 1)) < moved_;
  }
  const Part& part_of(const Digest& key) const noexcept {
    return moving() && !moved(key) ? old_ : now_;
  }
  // Throws CorruptSnapshot unless searches find every key of the part, and soon.
  void check(const Part& part) const {
    for (const Entry& entry : part.all()) {
      if (entry.free()) continue;
      const auto slot = static_cast<std::uint64_t>(&entry - part.entries());
      if (((slot - part.home_of(entry.key)) & (part.slots - 1)) > kMostDisplaced ||
          find(entry.key) != &entry)
        throw CorruptSnapshot(std::string(what_) + " holds a key out of its place");
    }
  }

  const char* what_;
  Part now_;
  Part old_;                 // what is left of it while moving; no slots else
  std::uint64_t start_ = 0;  // where the move began in old_
  std::uint64_t moved_ = 0;  // slots from there on that are in now_
  std::uint64_t used_ = 0;   // slots that are not free, in both
};

template <class Entry>
template <class Keep>
DigestTable<Entry> DigestTable<Entry>::decode(Decoder& header, Decoder& payload, const char* what,
                                              std::uint64_t fewest, Keep keep,
                                              MemoryResource& memory) {
  constexpr std::uint64_t kMostSlots = std::uint64_t{1} << 42;
  const auto refuse = [what](bool wrong) {
    if (wrong) throw CorruptSnapshot(std::string(what) + " cannot have been written like this");
  };
  const std::uint64_t slots = header.u64(), old_slots = header.u64();
  const std::uint64_t start = header.u64(), moved = header.u64();
  const auto fits = [&](std::uint64_t count) {
    return std::has_single_bit(count) && count >= fewest && count <= kMostSlots;
  };
  refuse(!fits(slots) || (old_slots != 0 && !fits(old_slots)));
  refuse(old_slots == 0 ? start != 0 || moved != 0
                        : start >= old_slots || moved == 0 || moved >= old_slots);
  payload.expect_remaining((slots + old_slots) * sizeof(Entry), what);
  DigestTable table(slots, what, memory);
  payload.bytes(table.now_.memory.bytes());
  if (old_slots != 0) table.old_ = Part(old_slots, what, memory);
  payload.bytes(table.old_.memory.bytes());
  table.start_ = start;
  table.moved_ = moved;
  const auto held = [&](const Part& part) {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(part.all(), [](const Entry& entry) { return !entry.free(); }));
  };
  const std::uint64_t now = held(table.now_), old = held(table.old_);
  table.used_ = now + old;
  // A slot is free in each, now and until the move has ended: else a search would run for ever.
  refuse(now > slots / 8 * 7);
  if (old_slots != 0) {
    const std::uint64_t to_come = (old_slots - moved) / kStep + 1;
    const auto kept = static_cast<std::uint64_t>(std::ranges::count_if(
        table.old_.all(), [&](const Entry& entry) { return !entry.free() && keep(entry); }));
    refuse(old + to_come > old_slots / 16 * 15 || now + kept + to_come > slots / 4 * 3);
    refuse(!table.old_.entries()[(start + moved - 1) & (old_slots - 1)].free());
  }
  // A key that a search does not reach would be let through again, and one that is there twice
  // would spoil the count.
  table.check(table.now_);
  table.check(table.old_);
  return table;
}

}  // namespace sluice
