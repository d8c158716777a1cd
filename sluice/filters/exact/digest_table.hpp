// An open-addressed table of entries by uniform digests. It moves into a larger or smaller table
// step by step.
//
// Linear probing; the top bits of its digest give a key's home, so slots are in the order of the
// keys. A second table is filled run by run, front to back, some slots with every insertion. A
// key's home tells in which of the two tables it is, so a search looks in only one.
//
// The unit is a run (slots in use up to the next free one), because no search crosses a free slot.
// The move also starts after a free slot. While it goes on, keys of the last homes may spill over
// that start. Every insertion adds at most one such key and first moves kStep slots, so that these
// keys never reach the part still to be moved. The end of the move moves them, too.
//
// An Entry has a Digest `key` and says whether it is free(); one of zeros is free.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/exact/digest_part.hpp"

namespace sluice {

template <class Entry>
class DigestTable {
 public:
  // Slots moved per insertion. A table that was three quarters full when the move began is then at
  // most 13/16 full at the end.
  static constexpr std::uint64_t kStep = 16;
  // At 13/16 full, the farthest key of a billion lies some 1030 slots from home. Without a limit, a
  // file whose keys all share a home would make every search during loading as long as the table.
  static constexpr std::uint64_t kMostDisplaced = 2048;

  // `slots` is a power of two. Throws NoMemory.
  DigestTable(std::uint64_t slots, const char* what, MemoryResource& memory)
      : what_(what), now_(slots, what, memory) {
    set_only();
  }

  // True if it is neither moving() nor in pages.
  bool in_one_block() const noexcept { return only_ != nullptr; }
  // The entry of the key, or a free one. There is always a free one.
  const Entry* find(const Digest& key) const noexcept {
    return in_one_block() ? find_in_block(key) : find_in_parts(key);
  }
  // The same for writing: a free slot is where the key would go.
  Entry* find_to_write(const Digest& key) noexcept {
    return in_one_block() ? find_in_block(key) : find_to_write_in_parts(key);
  }
  // Only if in_one_block().
  Entry* find_in_block(const Digest& key) const noexcept {
    Entry* const end = only_ + now_.slots;
    Entry* slot = only_ + now_.home_of(key);
    while (slot->key != key && !slot->free())
      if (++slot == end) slot = only_;
    return slot;
  }
  // Where the search for a key begins.
  const void* home(const Digest& key) const noexcept {
    return in_one_block() ? only_ + now_.home_of(key) : home_in_parts(key);
  }
  // Into the free slot that find_to_write() returned.
  void fill(Entry* slot, const Entry& entry) noexcept {
    *slot = entry;
    ++used_;
  }
  // Frees the slot of a key that is there.
  void take_out(const Digest& key) noexcept {
    const Part& part = part_of(key);
    part.take_out(part.slot_of(key));
    --used_;
  }
  // Slots of the present table; not while moving().
  const Entry& get(std::uint64_t slot) const noexcept {
    return now_.with([&](auto entries) -> const Entry& { return entries.get(slot); });
  }

  // Begins to move into a table of `slots` slots; not while moving(). Throws NoMemory; nothing has
  // changed then. There must be enough slots for what step() keeps and for the insertions during
  // the move.
  void begin(std::uint64_t slots) {
    Part next(slots, what_, memory());
    old_ = std::exchange(now_, std::move(next));
    start_ = 0;
    old_.with([&](auto entries) {
      while (!entries.get(start_).free()) ++start_;
    });
    start_ = (start_ + 1) & (old_.slots - 1);
    moved_ = 0;
    set_only();
  }
  bool moving() const noexcept { return old_.slots != 0; }
  // While moving(): whether the key is searched in the new table.
  bool moved(const Digest& key) const noexcept {
    return ((old_.home_of(key) - start_) & (old_.slots - 1)) < moved_;
  }
  // Moves the next runs, and drops entries for which `keep` is false. Must be called before every
  // insertion while moving().
  template <class Keep>
  void step(Keep keep) noexcept {
    const std::uint64_t until = std::min(moved_ + kStep, old_.slots);
    // What the loop needs stands in variables of its own: writing an entry might change any member.
    const std::uint64_t start = start_, mask = old_.slots - 1, new_mask = now_.slots - 1;
    const unsigned new_shift = now_.shift;
    std::uint64_t moved = moved_, dropped = 0;
    old_.with([&](auto entries) {
      now_.with([&](auto to) {
        for (bool was_free = false; moved < until || !was_free; ++moved) {
          const std::uint64_t slot = (start + moved) & mask;
          const Entry entry = entries.get(slot);
          was_free = entry.free();
          if (was_free) continue;
          entries.at(slot) = {};
          if (!keep(entry)) {
            ++dropped;
            continue;
          }
          // No key is in both: the first free slot is its own.
          std::uint64_t at = entry.key.lo >> new_shift;
          while (!to.get(at).free()) at = (at + 1) & new_mask;
          to.at(at) = entry;
        }
      });
    });
    moved_ = moved;
    used_ -= dropped;
    if (moved_ >= old_.slots) {
      old_ = {};
      start_ = moved_ = 0;
      set_only();
    }
  }

  // Moves all entries at once into a table of `slots` slots. Throws NoMemory; nothing has changed
  // then.
  void rebuild(std::uint64_t slots) {
    DigestTable other(slots, what_, memory());
    each([&](const Entry& entry) { other.fill(other.find_to_write(entry.key), entry); });
    *this = std::move(other);
  }
  // Empties it, with `slots` slots, at most slots(). If there is no memory for a smaller table, the
  // front of the large one is used, so that later behaviour is the same.
  void clear(std::uint64_t slots) noexcept {
    old_ = {};
    start_ = moved_ = used_ = 0;
    if (slots < now_.slots) {
      try {
        now_ = Part(slots, what_, memory());
        return set_only();
      } catch (const Error&) {
        now_.set_slots(slots);
      }
    }
    now_.memory.clear();
    set_only();
  }

  // Calls act(entry) for each that is not free.
  template <class Act>
  void each(Act act) const {
    now_.each([&](std::uint64_t, const Entry& entry) { act(entry); });
    old_.each([&](std::uint64_t, const Entry& entry) { act(entry); });
  }

  std::uint64_t slots() const noexcept { return now_.slots; }
  std::uint64_t used() const noexcept { return used_; }
  std::uint64_t bytes() const noexcept { return now_.memory.size() + old_.memory.size(); }
  // The memory that it has taken from its resource.
  std::uint64_t taken() const noexcept { return now_.memory.taken() + old_.memory.taken(); }
  MemoryResource& memory() const noexcept { return now_.memory.resource(); }

  void encode_header(Encoder& to) const {
    to.u64(now_.slots);
    to.u64(old_.slots);
    to.u64(start_);
    to.u64(moved_);
  }
  void encode_payload(Encoder& to) const {
    now_.memory.encode(to, now_.bytes());
    old_.memory.encode(to, old_.bytes());
  }
  // Requires at least `fewest` slots. Throws CorruptSnapshot. `keep` as in step().
  template <class Keep>
  static DigestTable decode(Decoder& header, Decoder& payload, const char* what,
                            std::uint64_t fewest, Keep keep, MemoryResource& memory);

 private:
  using Part = DigestPart<Entry>;

  // The usual search: one branch finds that there is one table in one block.
  void set_only() noexcept { only_ = moving() ? nullptr : now_.flat(); }
  const Part& part_of(const Digest& key) const noexcept {
    return moving() && !moved(key) ? old_ : now_;
  }
  // Searches while moving, and in pages. Kept out of the usual search, which they would slow down.
  [[gnu::noinline]] const Entry* find_in_parts(const Digest key) const noexcept {
    const Part& part = part_of(key);
    return part.with([&](auto entries) { return &entries.get(part.search(entries, key)); });
  }
  [[gnu::noinline]] Entry* find_to_write_in_parts(const Digest key) noexcept {
    const Part& part = part_of(key);
    return part.with([&](auto entries) { return &entries.at(part.search(entries, key)); });
  }
  [[gnu::noinline]] const void* home_in_parts(const Digest key) const noexcept {
    const Part& part = part_of(key);
    return part.with([&](auto entries) { return entries.address(part.home_of(key)); });
  }
  // Throws CorruptSnapshot unless a short search finds every key of the part.
  void check(const Part& part) const {
    part.each([&](std::uint64_t slot, const Entry& entry) {
      if (((slot - part.home_of(entry.key)) & (part.slots - 1)) > kMostDisplaced ||
          &part_of(entry.key) != &part || part.slot_of(entry.key) != slot)
        throw CorruptSnapshot(std::string(what_) + " holds a key out of its place");
    });
  }

  const char* what_;
  Part now_;
  Part old_;                 // the rest of the old table while moving; otherwise no slots
  Entry* only_ = nullptr;    // the entries, where all are in one block
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
  table.now_.memory.decode(payload);
  if (old_slots != 0) table.old_ = Part(old_slots, what, memory);
  table.old_.memory.decode(payload);
  table.start_ = start;
  table.moved_ = moved;
  table.set_only();
  std::uint64_t now = 0, old = 0, kept = 0;
  table.now_.each([&](std::uint64_t, const Entry&) { ++now; });
  table.old_.each([&](std::uint64_t, const Entry& entry) {
    ++old;
    kept += keep(entry);
  });
  table.used_ = now + old;
  // Each table must have a free slot until the move has ended, or a search would never end.
  refuse(now > slots / 8 * 7);
  if (old_slots != 0) {
    const std::uint64_t to_come = (old_slots - moved) / kStep + 1;
    refuse(old + to_come > old_slots / 16 * 15 || now + kept + to_come > slots / 4 * 3);
    const std::uint64_t before = (start + moved - 1) & (old_slots - 1);
    table.old_.with([&](auto entries) { refuse(!entries.get(before).free()); });
  }
  // A key that a search does not reach would be let through again, and one that is there twice
  // would spoil the count.
  table.check(table.now_);
  table.check(table.old_);
  return table;
}

}  // namespace sluice
