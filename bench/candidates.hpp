// Candidates for the layout of a blocked Bloom filter, all written the same way, so that only the
// layout differs. The two that the filter uses are included; `filters` measures their library form.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/base/verdict.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice::bench {

enum class Layout {
  lanes_8x64,   // a cache line, one bit in each of 8 lanes of 64 bits
  lanes_16x32,  // a cache line, one bit in each of 16 lanes of 32 bits
  half_8x32,    // half a line, one bit in each of 8 lanes of 32 bits: the usual split block
  anywhere,     // a cache line, `probes` bits anywhere in its 512
};

struct Candidate {
  Layout layout;
  unsigned probes;
  std::uint64_t* words;
  std::uint64_t blocks;  // of 512 bits, for half_8x32 of 256
};

inline std::uint64_t block_bits(Layout layout) {
  return layout == Layout::half_8x32 ? 256 : 512;
}

// Asks and remembers, as the filter's observe. Returns how many were distinct. `distance` and
// `from_bytes` are those of kernels::with_prefetch.
std::size_t candidate_observe(const Candidate& table, const Digest* digests, std::size_t count,
                              Verdict* verdicts, std::size_t distance, std::size_t from_bytes);
std::size_t candidate_may_contain(const Candidate& table, const Digest* digests, std::size_t count,
                                  Verdict* verdicts, std::size_t distance, std::size_t from_bytes);

}  // namespace sluice::bench
