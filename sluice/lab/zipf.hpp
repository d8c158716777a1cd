// Ranks drawn by a power law, from integers and square roots only.
//
// Rank r of 1 to n comes up in proportion to 1 / r^skew. The sampler keeps a table of octaves and
// one of the power within an octave, and rejects; it needs about two draws per rank, and its memory
// does not grow with n. Within an octave the power is approximated by 64 steps: exact up to rank
// 127, within skew / 64 of the law beyond. That is enough for skewed test streams, though not for a
// statistics library.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/random.hpp"

namespace sluice {

class ZipfSampler {
 public:
  static constexpr double kSkewMost = 4.0;
  static constexpr std::uint64_t kRanksMost = std::uint64_t{1} << 40;

  // 1 <= ranks <= kRanksMost, 0 <= skew <= kSkewMost; the caller has checked.
  ZipfSampler(std::uint64_t ranks, double skew);

  // A rank from 1 to `ranks`.
  std::uint64_t draw(SplitMix64& random) const noexcept;

 private:
  static constexpr unsigned kStepBits = 6;

  std::uint64_t ranks_;
  unsigned octaves_ = 0;
  // Cumulative chance of the octaves, scaled to 2^64 - 1; octave j holds ranks 2^j to 2^(j+1) - 1.
  std::array<std::uint64_t, 41> until_{};
  // The chance to keep a rank in step i of its octave: (1 + i / 64)^-skew, scaled to 2^32.
  std::array<std::uint64_t, 1U << kStepBits> keep_{};
};

}  // namespace sluice
