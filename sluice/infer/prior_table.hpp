// Priors of known keys, by digest: 24 bytes per slot, at most three quarters of them full.
#pragma once

#include <cstddef>
#include <vector>

#include "sluice/base/bits.hpp"
#include "sluice/hash/digest.hpp"
#include "sluice/infer/prior.hpp"

namespace sluice {

class PriorTable {
 public:
  // `kind` is what all its chances are. Keys that are not in it have the prior `rest`.
  explicit PriorTable(Prior::Kind kind, const Prior& rest = {}) : kind_(kind), rest_(rest) {}

  // A key that is in the table already gets the new chance. Throws BadParameters when `chance` is
  // none between 0 and 1, both excluded.
  void add(const Digest& digest, double chance);
  Prior of(const Digest& digest) const noexcept;
  // Where of() begins to look, to be fetched early; null while the table is empty.
  const void* near(const Digest& digest) const noexcept {
    return slots_.empty() ? nullptr : &slots_[home(digest) & (slots_.size() - 1)];
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return slots_.size() * sizeof(Slot); }

 private:
  struct Slot {
    Digest digest;
    double chance = 0;  // 0: empty
  };
  static std::size_t home(const Digest& digest) noexcept {
    return static_cast<std::size_t>(fold_multiply(digest.lo, digest.hi | 1));
  }
  static std::size_t place(const std::vector<Slot>& slots, const Digest& digest) noexcept;
  void grow();

  Prior::Kind kind_;
  Prior rest_;
  std::vector<Slot> slots_;  // a power of two
  std::size_t size_ = 0;
};

// Where a digest is, or the empty slot where it would be.
inline std::size_t PriorTable::place(const std::vector<Slot>& slots,
                                     const Digest& digest) noexcept {
  const std::size_t mask = slots.size() - 1;
  std::size_t at = home(digest) & mask;
  while (slots[at].chance != 0 && slots[at].digest != digest) at = (at + 1) & mask;
  return at;
}

inline Prior PriorTable::of(const Digest& digest) const noexcept {
  if (slots_.empty()) return rest_;
  const double chance = slots_[place(slots_, digest)].chance;
  return chance == 0 ? rest_ : Prior{kind_, chance};
}

}  // namespace sluice
