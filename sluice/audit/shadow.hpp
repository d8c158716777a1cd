// A table of keys and when each was last written: what an audit knows for sure.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sluice/hash/digest.hpp"

namespace sluice {

class Shadow {
 public:
  struct Entry {
    Digest key;
    std::int64_t last = kEmpty;
  };
  // No time is one of these.
  static constexpr std::int64_t kEmpty = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kUnknown = kEmpty + 1;    // perhaps there, nobody knows when
  static constexpr std::int64_t kForgotten = kEmpty + 2;  // taken back: surely not there
  static constexpr std::size_t kFirstSlots = 64;

  Shadow() : slots_(kFirstSlots) {}

  // When it was last written, or null. Valid until the next call that writes.
  std::int64_t* find(const Digest& key) noexcept {
    Entry& slot = slots_[place(key)];
    return slot.last == kEmpty ? nullptr : &slot.last;
  }
  // A key that is not there. Only where not full().
  void add(const Digest& key, std::int64_t last) noexcept {
    slots_[place(key)] = {key, last};
    ++size_;
  }
  // A quarter stays free, so that searches are short.
  bool full() const noexcept { return size_ >= slots_.size() / 4 * 3; }

  template <class Keep>
  std::size_t count(Keep keep) const {
    std::size_t kept = 0;
    for (const Entry& entry : slots_) kept += entry.last != kEmpty && keep(entry);
    return kept;
  }
  // Those that `keep` holds for, in a table of so many slots, a power of two.
  template <class Keep>
  void rebuild(std::size_t slots, Keep keep) {
    std::vector<Entry> old(slots);
    old.swap(slots_);
    size_ = 0;
    for (const Entry& entry : old)
      if (entry.last != kEmpty && keep(entry)) add(entry.key, entry.last);
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t slots() const noexcept { return slots_.size(); }
  std::uint64_t bytes() const noexcept { return slots_.size() * sizeof(Entry); }

 private:
  // Where it is or would be.
  std::size_t place(const Digest& key) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = key.lo & mask;
    while (slots_[at].last != kEmpty && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  std::vector<Entry> slots_;
  std::size_t size_ = 0;
};

}  // namespace sluice
