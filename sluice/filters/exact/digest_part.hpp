// One table of a DigestTable: entries in one block or in pages (base/line_table.hpp). Loops are
// templates on that.
#pragma once

#include <bit>
#include <cstdint>

#include "sluice/base/checked.hpp"
#include "sluice/base/line_table.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

template <class Entry>
struct FlatEntries {
  Entry* begin;

  const Entry& get(std::uint64_t slot) const noexcept { return begin[slot]; }
  Entry& at(std::uint64_t slot) const noexcept { return begin[slot]; }
  Entry* address(std::uint64_t slot) const noexcept { return begin + slot; }
};

// No entry crosses a page, but one may cross a cache line: it was written if both lines are
// cleared.
template <class Entry>
struct PagedEntries {
  static_assert(LinePages::kPageLines * kCacheLineBytes % sizeof(Entry) == 0);
  static constexpr Entry kFree{};
  LinePages pages;

  static std::uint64_t first_line(std::uint64_t slot) noexcept {
    return slot * sizeof(Entry) / kCacheLineBytes;
  }
  static std::uint64_t last_line(std::uint64_t slot) noexcept {
    return ((slot + 1) * sizeof(Entry) - 1) / kCacheLineBytes;
  }
  Entry* address(std::uint64_t slot) const noexcept {
    return reinterpret_cast<Entry*>(pages.at(first_line(slot)) +
                                    slot * sizeof(Entry) % kCacheLineBytes);
  }
  const Entry& get(std::uint64_t slot) const noexcept {
    return pages.is_clear(first_line(slot)) && pages.is_clear(last_line(slot)) ? *address(slot)
                                                                               : kFree;
  }
  Entry& at(std::uint64_t slot) const noexcept {
    pages.to_write(first_line(slot));
    pages.to_write(last_line(slot));
    return *address(slot);
  }
};

// One of the tables, with its searches.
template <class Entry>
struct DigestPart {
  std::uint64_t slots = 0;
  unsigned shift = 0;
  LineTable memory;

  DigestPart() noexcept = default;
  DigestPart(std::uint64_t count, const char* what, MemoryResource& resource)
      : memory(checked_multiply(count, sizeof(Entry), what), resource) {
    set_slots(count);
  }
  // At most as many slots as there is memory for; all must be free.
  void set_slots(std::uint64_t count) noexcept {
    slots = count;
    shift = 64 - static_cast<unsigned>(std::countr_zero(count));
  }
  std::uint64_t bytes() const noexcept { return slots * sizeof(Entry); }

  Entry* flat() const noexcept { return reinterpret_cast<Entry*>(memory.data()); }
  // Calls act(entries). The entries can be written even if the part is const here.
  template <class Act>
  [[gnu::always_inline]] decltype(auto) with(Act act) const {
    if (const LinePages pages = memory.pages()) [[unlikely]]
      return act(PagedEntries<Entry>{pages});
    return act(FlatEntries<Entry>{flat()});
  }
  // Calls act(slot, entry) for each that is not free.
  template <class Act>
  void each(Act act) const {
    with([&](auto entries) {
      for (std::uint64_t slot = 0; slot < slots; ++slot)
        if (const Entry& entry = entries.get(slot); !entry.free()) act(slot, entry);
    });
  }
  std::uint64_t home_of(const Digest& key) const noexcept { return key.lo >> shift; }

  template <class Entries>
  std::uint64_t search(Entries entries, const Digest& key) const noexcept {
    std::uint64_t slot = home_of(key);
    for (;; slot = (slot + 1) & (slots - 1))
      if (const Entry& entry = entries.get(slot); entry.key == key || entry.free()) return slot;
  }
  std::uint64_t slot_of(const Digest& key) const noexcept {
    return with([&](auto entries) { return search(entries, key); });
  }
  // No tombstone: entries that a search would no longer reach past the hole move back into it.
  void take_out(std::uint64_t hole) const noexcept {
    const std::uint64_t mask = slots - 1;
    with([&](auto entries) {
      for (std::uint64_t slot = (hole + 1) & mask; !entries.get(slot).free();
           slot = (slot + 1) & mask) {
        const std::uint64_t displaced = (slot - home_of(entries.get(slot).key)) & mask;
        if (displaced < ((slot - hole) & mask)) continue;  // its search does not pass the hole
        entries.at(hole) = entries.get(slot);
        hole = slot;
      }
      entries.at(hole) = {};
    });
  }
};

}  // namespace sluice
