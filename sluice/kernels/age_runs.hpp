// Runs of matches in an age partition, from one bit per segment: answered at once, without a
// branch. For up to 32 segments.
#pragma once

#include <bit>

#include "sluice/kernels/age_partition.hpp"

namespace sluice::kernels {

inline constexpr unsigned kMostRunSegments = 32;

struct AgeRuns {
  std::uint64_t taken = 0;       // the segments that a key of this age is written in
  std::uint64_t starts = 0;      // where runs may begin, in the ring written out twice
  unsigned steps[5] = {};        // shifts that leave a bit where a run of k begins
  unsigned youngest = 0, k = 0;  // of the ring

  AgeRuns(const AgeRing& ring, unsigned age) noexcept : youngest(ring.youngest), k(ring.k) {
    for (unsigned i = age; i < age + ring.k; ++i) taken |= std::uint64_t{1} << ring.physical(i);
    // From ages 0 to l: a run does not go on from the oldest segment to the youngest.
    for (unsigned i = 0; i <= ring.l; ++i) starts |= std::uint64_t{1} << (ring.youngest + i);
    // Doubling: after a step of s, a bit means s more matches in a row.
    unsigned have = 1;
    for (unsigned& step : steps) {
      step = have < ring.k - have ? have : ring.k - have;
      have += step;
    }
  }

  // `matches`: one bit per segment, by physical number. Three steps are enough for k up to 8, five
  // for all.
  template <unsigned kSteps>
  [[gnu::always_inline]] bool has_run(std::uint64_t matches, unsigned segments) const noexcept {
    return runs<kSteps>(matches, segments) != 0;
  }
  // One bit where each run begins, in the ring written out twice.
  template <unsigned kSteps>
  [[gnu::always_inline]] std::uint64_t runs(std::uint64_t matches,
                                            unsigned segments) const noexcept {
    std::uint64_t run = matches << segments | matches;
    for (unsigned i = 0; i < kSteps; ++i) run &= run >> steps[i];
    return run & starts;
  }
  // As AgePartition::young_age, of a key that is not in the youngest generation.
  unsigned young_age(std::uint64_t matches, unsigned segments) const noexcept {
    const std::uint64_t begins = runs<5>(matches, segments) >> youngest;
    return std::min(k, static_cast<unsigned>(std::countr_zero(begins)));
  }
  bool holds(std::uint64_t matches) const noexcept { return (taken & ~matches) == 0; }
};

}  // namespace sluice::kernels
