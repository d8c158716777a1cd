// Counts the cache lines that code touches in the tables of filters, on any instruction set.
//
// The tables are protected (PROT_NONE) while the code runs, so each access faults. The handler
// notes the line, allows access to the page for that one instruction, and protects it again after
// it (with the processor's trap flag). Prefetches do not fault and do not count. So the optimized
// code itself is measured, without counters in it; it runs a thousand times slower.
//
// Tables are the blocks that the library maps while it is watched: this program replaces mmap and
// related calls to see them. Memory on the heap (small tables, counts of generations) is counted
// only in filters made with a WatchedMemory, and only blocks of a page or more. One instruction
// that touches several lines of one page counts as one.
#pragma once

#include <cstddef>
#include <functional>

#include "sluice/base/memory_resource.hpp"

namespace sluice::bench {

class LineCounter {
 public:
  // False if there is no trap flag, or if a sanitizer owns the handlers.
  static bool works() noexcept;

  // Blocks mapped while this object lives are watched. Only one at a time, in one thread.
  LineCounter();
  LineCounter(const LineCounter&) = delete;
  LineCounter& operator=(const LineCounter&) = delete;
  ~LineCounter();

  // Different lines that `act` touches.
  std::size_t lines_of(const std::function<void()>& act);
};

// Maps every block of a page or more, so that all tables of a filter are watched. At most 256
// blocks.
class WatchedMemory final : public MemoryResource {
 public:
  std::size_t usable(const void*, std::size_t bytes, std::size_t) const noexcept override {
    return bytes;
  }
  std::size_t largest_block() const noexcept override {
    return std::numeric_limits<std::size_t>::max();
  }
  const Mapping* mapping() const noexcept override { return &mapping_; }

 private:
  void* get(std::size_t bytes, std::size_t alignment) noexcept override;
  void put(void* block, std::size_t bytes, std::size_t alignment) noexcept override;

  Mapping mapping_{.huge_pages = false, .fetch_ahead = false};
};

}  // namespace sluice::bench
