// Which decisions of a call went wrong for lack of memory, so that a replica does what its primary did, whatever
// memory it has itself: a claim is left, a delivered key kept, or a sample halved where it was there. The
// primary's call writes it down; the replica's is given it.
//
// Writing takes no memory: decisions are written down in a few stretches. When there is no room for another one,
// every further decision of the call goes wrong, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/base/codec.hpp"

namespace sluice {

class Fates {
 public:
  Fates() = default;

  // Before each decision: false if it is to go wrong.
  bool may_take() noexcept;
  // How often the window forgets its oldest keys for the decision that has just gone wrong, as its primary did.
  std::uint64_t forgets_in_vain() const noexcept;
  // After each that was not: how it went, and how often the window has forgotten its oldest keys for it. Throws
  // NoMemory if a replica has no memory where its primary had.
  void took(bool done, std::uint64_t forgets = 0);
  // The same for what can do without: a replica without memory goes on.
  void could_take(bool done) noexcept;

  // Before each item of a call; whether its last decision went wrong.
  void begin_item() noexcept { last_refused_ = false; }
  bool last_refused() const noexcept { return last_refused_; }
  // How often memory was refused to what can do without it.
  std::uint64_t spared() const noexcept { return spared_; }

  void encode(Encoder& to) const;  // at most kMostEncoded bytes
  // For a replica. Throws CorruptSnapshot.
  static Fates decode(Decoder& from);
  static constexpr std::size_t kMostEncoded = 512;

 private:
  // Decisions by number. A count of 0: all from the first on. The window forgot its oldest keys for the first one.
  struct Stretch {
    std::uint64_t first = 0, count = 0, forgets = 0;

    bool holds(std::uint64_t decision) const noexcept {
      return decision >= first && (count == 0 || decision - first < count);
    }
  };
  static constexpr std::size_t kMostStretches = 16;

  std::span<const Stretch> refused() const noexcept { return std::span(stretches_).first(size_); }
  void write(std::uint64_t forgets) noexcept;

  std::array<Stretch, kMostStretches> stretches_;  // in ascending order
  std::size_t size_ = 0;
  std::size_t used_ = 0;  // of a replica's: those that are over
  std::uint64_t decisions_ = 0, spared_ = 0;
  bool told_ = false, last_refused_ = false;
};

}  // namespace sluice
