// Counts the cache lines that code touches in the tables of filters, on any instruction set.
//
// The tables are taken away (PROT_NONE) while the code runs. Each access then faults; the handler
// notes the line, gives the page back for that one instruction and takes it away again behind it
// (the processor's trap flag). Prefetches do not fault and do not count. What is seen is what the
// optimized code does, with no counter in it; it runs a thousand times slower.
//
// Tables are what the library maps while it is watched: mmap and its kin are our own in this
// program and tell. What filters keep on the heap (small tables, counts of generations) is counted
// only from a page on, in filters made with a WatchedMemory. One instruction that touches several lines of
// one page counts as one.
#pragma once

#include <cstddef>
#include <functional>

#include "sluice/base/memory_resource.hpp"

namespace sluice::bench {

class LineCounter {
 public:
  // False where there is no trap flag, or where a sanitizer has the handlers.
  static bool works() noexcept;

  // What is mapped from here on is watched, as long as this lives. One at a time, one thread.
  LineCounter();
  LineCounter(const LineCounter&) = delete;
  LineCounter& operator=(const LineCounter&) = delete;
  ~LineCounter();

  // Different lines that `act` touches.
  std::size_t lines_of(const std::function<void()>& act);
};

// Maps every block from a page on, so that all tables of a filter are watched. There is room for 256.
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
