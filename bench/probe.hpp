// What the machine allows: random cache lines of a table, touched as fast as it can.
//
// This is the measure of every filter: one that touches a line a key cannot be faster than the
// probe over a table of the same bytes on the same kind of pages.
#pragma once

#include <cstdint>

#include "sluice/base/memory.hpp"

namespace sluice::bench {

enum class Pages { as_filters_get, small };

class Probe {
 public:
  // Every line is touched once before anything is timed: the first touch brings the page.
  explicit Probe(std::uint64_t bytes, Pages pages = Pages::as_filters_get);

  // Nanoseconds a line, over `lines` random ones: read one word, or set a bit in it. Each line is
  // prefetched `ahead` lines before it is needed; 0 prefetches nothing.
  double read_ns(std::uint64_t lines, unsigned ahead);
  double update_ns(std::uint64_t lines, unsigned ahead);

  // Nanoseconds a key that touches one or two random lines and sets a bit in each.
  double updates_ns(std::uint64_t keys, unsigned lines_a_key);

  // With what is fastest for the table: no prefetch in cache, a long way ahead out of it.
  double read_ns(std::uint64_t lines) { return read_ns(lines, ahead_); }
  double update_ns(std::uint64_t lines) { return update_ns(lines, ahead_); }

 private:
  std::uint64_t* word_of(std::uint64_t number);
  double pair_update_ns(std::uint64_t keys);

  Memory memory_;
  std::uint64_t lines_;
  unsigned ahead_;
  std::uint64_t next_ = 0;  // each run goes on where the last one ended
};

}  // namespace sluice::bench
