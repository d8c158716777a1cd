// Counts the cache lines that code touches in the tables of filters, on any instruction set.
//
// The tables are taken away (PROT_NONE) while the code runs. Each access then faults; the handler
// notes the line, gives the page back for that one instruction and takes it away again behind it
// (the processor's trap flag). Prefetches do not fault and do not count. What is seen is what the
// optimized code does, with no counter in it; it runs a thousand times slower.
//
// Tables are what the library maps while it is watched: mmap and its kin are our own in this
// program and tell. What filters keep on the heap (counts of generations) is not counted. One
// instruction that touches several lines of one page counts as one.
#pragma once

#include <cstddef>
#include <functional>

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

}  // namespace sluice::bench
