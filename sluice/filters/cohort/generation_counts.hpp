// How many keys were written in each live generation: a ring of counters.
//
// Filters without a list of their keys use it to know how many they hold, and when they are full.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sluice/base/codec.hpp"
#include "sluice/base/memory_resource.hpp"

namespace sluice {

class GenerationCounts {
 public:
  // Ages 0 to `generations` are live.
  GenerationCounts(unsigned generations, MemoryResource& memory)
      : counts_(std::size_t{generations} + 1, memory) {}

  // Keys written in all live generations.
  std::uint64_t live() const noexcept { return live_; }
  std::uint64_t at(unsigned age) const noexcept { return counts_[slot(age)]; }

  void add(unsigned age, std::uint64_t keys = 1) noexcept {
    counts_[slot(age)] += keys;
    live_ += keys;
  }

  // A key of this age was taken back, if such a key is counted.
  void remove(unsigned age) noexcept {
    if (counts_[slot(age)] == 0) return;
    --counts_[slot(age)];
    --live_;
  }

  // A key of age `from` was written again at age `to`. If no key of age `from` is counted, it
  // counts as a new one.
  void move(unsigned from, unsigned to) noexcept {
    remove(from);
    add(to);
  }

  // Everything is one generation older; keys that are then too old are dropped.
  void rotate() noexcept {
    present_ = present_ + 1 == counts_.size() ? 0 : present_ + 1;
    live_ -= counts_[present_];
    counts_[present_] = 0;
  }

  void clear() noexcept {
    std::ranges::fill(counts_, 0);
    live_ = present_ = 0;
  }

  std::uint64_t taken() const noexcept { return taken_by(counts_); }
  static std::size_t bytes_for(unsigned generations) noexcept {
    return (std::size_t{generations} + 1) * sizeof(std::uint64_t);
  }

  // By age, the present one first: as many numbers as there are live generations.
  void encode(Encoder& to) const;
  // Throws CorruptSnapshot when there are more than `most` keys in all.
  void decode(Decoder& from, std::uint64_t most);

 private:
  std::size_t slot(unsigned age) const noexcept {
    return present_ >= age ? present_ - age : present_ + counts_.size() - age;
  }

  Vector<std::uint64_t> counts_;
  std::size_t present_ = 0;
  std::uint64_t live_ = 0;
};

}  // namespace sluice
