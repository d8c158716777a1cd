// What a stream's duplicates really are: when each key was last delivered, for as many keys as
// come.
//
// 24 bytes per slot, of which at most half are taken: 48 to 96 bytes per key.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sluice/hash/digest.hpp"
#include "sluice/window/spec.hpp"

namespace sluice {

// Which deliveries count. Moments are nanoseconds; of a window of records, how many were delivered
// before.
class WindowRule {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  // Nothing: every delivery counts for ever.
  explicit WindowRule(std::optional<WindowSpec> spec) noexcept;

  // It is to be remembered.
  bool inside(std::int64_t last, std::int64_t now) const noexcept;
  // It may be: with a slack, as a share of the window. Never true of what was never delivered.
  bool perhaps(std::int64_t last, std::int64_t now, double slack) const noexcept;
  // A record of `time` starts a stretch of its own that is over already.
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
  // The same in two steps, for deliveries that another decides about.
  std::int64_t last_of(const Digest& digest) const noexcept;
  void deliver(const Digest& digest, std::int64_t time);
  const WindowRule& rule() const noexcept { return rule_; }

  // Deliveries so far: what `now` and `time` are in a window of records.
  std::int64_t deliveries() const noexcept { return deliveries_; }
  // A clock was set back: what seems to lie ahead happened now.
  void set_back(std::int64_t now) noexcept;
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
