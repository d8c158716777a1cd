// The prior of a key (what is known before the filter is asked), tables of priors, the costs of
// errors, and the verdict of least cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/base/bits.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

// What is known about a key before the filter is asked.
struct Prior {
  enum class Kind : std::uint8_t {
    unknown,
    arrival,   // the chance that the next arrival has this key
    in_window  // the chance that this arrival's key is in the window
  };

  Kind kind = Kind::unknown;
  double chance = 0;

  // A value outside (0, 1) counts as unknown.
  static Prior arrival(double chance) noexcept { return make(Kind::arrival, chance); }
  static Prior in_window(double chance) noexcept { return make(Kind::in_window, chance); }

  bool known() const noexcept { return kind != Kind::unknown; }
  friend bool operator==(const Prior&, const Prior&) = default;

 private:
  static Prior make(Kind kind, double chance) noexcept {
    return chance > 0 && chance < 1 ? Prior{kind, chance} : Prior{};
  }
};

// Priors of known keys, by digest: 24 bytes per slot, at most three quarters of them full.
class PriorTable {
 public:
  // `kind` is what all its chances are. Keys that are not in it have the prior `rest`.
  explicit PriorTable(Prior::Kind kind, const Prior& rest = {}) : kind_(kind), rest_(rest) {}

  // A key that is in the table already gets the new chance. Throws BadParameters unless 0 <
  // `chance` < 1.
  void add(const Digest& digest, double chance);
  Prior of(const Digest& digest) const noexcept;
  // Where of() begins to search, for prefetching; null while the table is empty.
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
    return fold_multiply(digest.lo, digest.hi | 1);
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

// Least-cost verdicts (Dautrich & Ravishankar 2013, §2.6).

// So that sums of costs stay finite.
inline constexpr double kMostCost = 1e12;

// The cost of each error, both in the same unit: from 0 to kMostCost.
struct Costs {
  double lost = 1;       // a distinct event held back
  double duplicate = 1;  // a duplicate let through

  // Throws BadParameters.
  void check() const;
};

// Holding back is wrong with chance 1 − posterior, letting through with chance posterior. Returns
// the cheaper verdict; `duplicate` if they cost the same.
inline Verdict least_cost(double posterior, const Costs& costs) noexcept {
  return costs.lost * (1 - posterior) <= costs.duplicate * posterior ? Verdict::duplicate
                                                                     : Verdict::distinct;
}

struct Judgement {
  Verdict verdict = Verdict::distinct;
  // The chance that the key is in the window; empty if the filter has a trace of it and no prior
  // was given.
  std::optional<double> posterior = {};
};

}  // namespace sluice
