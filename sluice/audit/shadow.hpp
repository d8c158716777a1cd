// An exact table of keys, when each was last written and what was counted of it: an audit's truth.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sluice/audit/key_sums.hpp"
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

  // `slots`: a power of two.
  explicit Shadow(std::size_t slots = kFirstSlots) : slots_(slots) {}

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
  // Keeps the keys for which `keep` holds, in a table of `slots` slots, a power of two.
  template <class Keep>
  void rebuild(std::size_t slots, Keep keep) {
    std::vector<Entry> old(slots);
    old.swap(slots_);
    size_ = 0;
    for (const Entry& entry : old)
      if (entry.last != kEmpty && keep(entry))
        add(entry.key, entry.last, entry.lost()).counts = entry.counts;
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t slots() const noexcept { return slots_.size(); }
  std::uint64_t bytes() const noexcept { return slots_.size() * sizeof(Entry); }

 private:
  // The slot where the key is or would be.
  std::size_t place(const Digest& key) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = key.lo & mask;
    while (slots_[at].last != kEmpty && !slots_[at].is(key)) at = (at + 1) & mask;
    return at;
  }

  std::vector<Entry> slots_;
  std::size_t size_ = 0;
};

}  // namespace sluice
