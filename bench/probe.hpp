// The limit of the machine: accesses to random cache lines of a table, as fast as possible.
//
// Every filter is compared with it: a filter that touches one line per key cannot be faster than
// this probe over a table of the same size on the same kind of pages.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/memory.hpp"

namespace sluice::bench {

// Random lines of a piece of memory, for one thread. Each run continues where the last one ended.
class Lines {
 public:
  Lines(std::uint64_t* words, std::uint64_t lines, unsigned ahead)
      : words_(words), lines_(lines), ahead_(ahead) {}

  // Nanoseconds per line, over `lines` random ones: read one word, or set a bit in it. Each line is
  // prefetched `ahead` lines before it is needed; 0 prefetches nothing.
  double read_ns(std::uint64_t lines, unsigned ahead);
  double update_ns(std::uint64_t lines, unsigned ahead);

  // With the fastest distance for the table: no prefetch in cache, far ahead out of cache.
  double read_ns(std::uint64_t lines) { return read_ns(lines, ahead_); }
  double update_ns(std::uint64_t lines) { return update_ns(lines, ahead_); }

  // Nanoseconds per key that touches two random lines and sets a bit in each.
  double pair_update_ns(std::uint64_t keys);

 private:
  std::uint64_t* word_of(std::uint64_t number);

  std::uint64_t* words_;
  std::uint64_t lines_;
  unsigned ahead_;
  std::uint64_t next_ = 0;
};

enum class Pages { as_filters_get, small };

class Probe {
 public:
  // Every line is touched once before anything is timed: the first access allocates the page.
  explicit Probe(std::uint64_t bytes, Pages pages = Pages::as_filters_get);

  Lines& lines() { return all_; }
  double read_ns(std::uint64_t lines) { return all_.read_ns(lines); }
  double update_ns(std::uint64_t lines) { return all_.update_ns(lines); }
  // Nanoseconds per key that touches one or two random lines and sets a bit in each.
  double updates_ns(std::uint64_t keys, unsigned lines_per_key) {
    return lines_per_key == 2 ? all_.pair_update_ns(keys) : all_.update_ns(keys);
  }

  // Two threads at once, each over its own half: nanoseconds per line that both together take.
  double two_threads_read_ns(std::uint64_t lines);
  double two_threads_update_ns(std::uint64_t lines);

 private:
  std::uint64_t* words() { return memory_.as<std::uint64_t>(); }

  Memory memory_;
  Lines all_;
  std::array<Lines, 2> halves_;
};

}  // namespace sluice::bench
