// Memory resources of tests: malloc as a host would give it, and one that fails when told to.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "sluice/base/error.hpp"
#include "sluice/base/memory_resource.hpp"

namespace sluice {

inline HostMemory::Calls malloc_calls() {
  return {.allocate = [](std::size_t bytes) { return std::malloc(bytes); },
          .free = [](void* block) { std::free(block); },
          .usable = [](void* block) { return malloc_usable_size(block); }};
}

// malloc, with a count of the bytes asked for: those held now, and the most that were at once.
struct CountedHost {
  static inline std::uint64_t held = 0, peak = 0;

  static HostMemory::Calls calls() {
    return {.allocate =
                [](std::size_t bytes) {
                  auto* const block = static_cast<std::uint64_t*>(std::malloc(bytes + kBefore));
                  *block = bytes;
                  peak = std::max(peak, held += bytes);
                  return static_cast<void*>(block + kBefore / sizeof *block);
                },
            .free =
                [](void* block) {
                  auto* const all = static_cast<std::uint64_t*>(block) - kBefore / sizeof held;
                  held -= *all;
                  std::free(all);
                }};
  }

 private:
  static constexpr std::size_t kBefore = 16;  // for the size of the block; keeps its alignment
};

// Of blocks that are larger than asked for, and of no more alignment than a host owes. Counts by
// itself, apart from the resource, and refuses the call that it is told to; 0: none.
class TestMemory final : public MemoryResource {
 public:
  // As a host: no mapping, blocks of at most `largest` bytes.
  explicit TestMemory(std::size_t largest = std::numeric_limits<std::size_t>::max())
      : largest_(largest) {}
  // As the default resource: tables are mapped.
  explicit TestMemory(const Mapping& mapping)
      : largest_(std::numeric_limits<std::size_t>::max()), mapping_(mapping), maps_(true) {}

  std::size_t usable(const void*, std::size_t bytes, std::size_t) const noexcept override {
    ++asked_;
    return (bytes + 15) / 16 * 16 + 16;
  }
  std::size_t largest_block() const noexcept override { return largest_; }
  const Mapping* mapping() const noexcept override { return maps_ ? &mapping_ : nullptr; }

  void charge(std::uint64_t bytes, std::uint64_t blocks) override {
    ++calls_;
    if (calls_ == fail_at_) throw NoMemory("this call was to be refused");
    MemoryResource::charge(bytes, blocks);
    most_ = std::max(most_, bytes);
    peak_ = std::max(peak_, taken());
  }

  // The n-th call from now on is refused, and only that.
  void fail_at(std::uint64_t call) noexcept {
    calls_ = 0;
    fail_at_ = call;
  }
  std::uint64_t calls() const noexcept { return calls_; }
  bool failed() const noexcept { return fail_at_ != 0 && calls_ >= fail_at_; }
  std::uint64_t asked() const noexcept { return asked_; }  // how often, what a block takes
  std::uint64_t most() const noexcept { return most_; }    // that one call asked for
  std::uint64_t peak() const noexcept { return peak_; }    // taken at once

 private:
  void* get(std::size_t bytes, std::size_t alignment) noexcept override {
    return ::operator new(usable(nullptr, bytes, alignment), std::align_val_t(alignment),
                          std::nothrow);
  }
  void put(void* block, std::size_t, std::size_t alignment) noexcept override {
    ::operator delete(block, std::align_val_t(alignment));
  }

  std::size_t largest_;
  Mapping mapping_ = {};
  bool maps_ = false;
  std::uint64_t calls_ = 0, fail_at_ = 0, most_ = 0, peak_ = 0;
  mutable std::uint64_t asked_ = 0;
};

}  // namespace sluice
