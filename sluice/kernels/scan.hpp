// Finds every occurrence of one or two byte values in a range: used to cut a buffer into records.
//
// Cost     64 bytes per step: two compares, a mask, and one count-trailing-zeros for each hit; no
//          branch depends on a single byte. The instruction set is chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

// Hits are written in groups, so that no branch depends on their number: `positions` needs room for
// this many more entries than may be found. The extra entries have no meaning.
inline constexpr std::size_t kScanSlack = 64;

// Positions are 32 bits wide: one call scans no more than this.
inline constexpr std::size_t kScanMostBytes = std::size_t{1} << 31;

// The same byte twice when there is only one to look for.
struct Needles {
  char first;
  char second;
};

struct Scan {
  std::size_t found;    // how many positions were written
  std::size_t scanned;  // how many bytes were looked at: all, unless `most` was reached
};

// Writes the offsets of the needles in [data, data + size) in ascending order and stops right after
// the `most`th. Reads nothing outside of the range.
Scan find_all(const char* data, std::size_t size, Needles needles, std::size_t most,
              std::uint32_t* positions);

// The same, one byte at a time: used without vectors, and the reference in tests.
Scan find_all_portable(const char* data, std::size_t size, Needles needles, std::size_t most,
                       std::uint32_t* positions);

}  // namespace sluice
