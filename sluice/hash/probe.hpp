// Where a key's probes fall.
#pragma once

#include "sluice/base/bits.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

// Probe number `probe` of a digest, in [0, range): one fold-multiply of the whole digest each. Part
// of the snapshot format of every filter that uses it.
constexpr std::uint64_t probe_position(const Digest& digest, unsigned probe,
                                       std::uint64_t range) noexcept {
  return scale_to(
      fold_multiply(digest.lo + probe * 0x9E3779B97F4A7C15ULL, digest.hi ^ 0xD6E8FEB86659FD93ULL),
      range);
}

}  // namespace sluice
