// The true duplicates of a stream: when each key was last delivered, for any number of keys.
//
// 24 bytes per slot, at most half of them in use: 48 to 96 bytes per key.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sluice/hash/digest.hpp"
#include "sluice/window/spec.hpp"

namespace sluice {

// Which deliveries count. Times are nanoseconds, or, for a window of records, the number of
// deliveries before.
class WindowRule {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  // None: every delivery counts forever.
  explicit WindowRule(std::optional<WindowSpec> spec) noexcept;

  // Whether it must be remembered.
  bool inside(std::int64_t last, std::int64_t now) const noexcept;
  // Whether it may be remembered, with a slack given as a share of the window. Never true for a key
  // that was never delivered.
  bool perhaps(std::int64_t last, std::int64_t now, double slack) const noexcept;
  // Whether a record of `time` belongs to an hour or day that has already ended.
  bool over(std::int64_t time, std::int64_t now) const noexcept;

 private:
  std::optional<WindowSpec> spec_;
  std::int64_t size_ = 0;
};

class StreamTruth {
 public:
  explicit StreamTruth(std::optional<WindowSpec> window);

  // Whether a record that comes `now`, with a time of its own, is distinct; if so it is delivered.
  bool observe(const Digest& digest, std::int64_t time, std::int64_t now);
  // The same in two steps, if the caller decides about the delivery.
  std::int64_t last_of(const Digest& digest) const noexcept;
  void deliver(const Digest& digest, std::int64_t time);
  const WindowRule& rule() const noexcept { return rule_; }

  // Deliveries so far: what `now` and `time` are in a window of records.
  std::int64_t deliveries() const noexcept { return deliveries_; }
  // The window's first time was replaced: what was delivered at it is forgotten.
  void forget() noexcept;
  std::uint64_t bytes() const noexcept { return slots_.size() * sizeof(Slot); }

 private:
  struct Slot {
    Digest digest;
    std::int64_t last = WindowRule::kNever;  // empty
  };
  std::size_t place(const Digest& digest) const noexcept;
  void grow();

  WindowRule rule_;
  std::int64_t deliveries_ = 0;
  std::uint64_t keys_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace sluice
