// Inner loops of sharded filters: which shard a digest belongs to, picking those of some shards out
// of a batch, and bringing the verdicts on them back.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/base/verdict.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice::kernels {

inline constexpr std::uint32_t kShardMixer = 0x85EBCA6B;  // odd, and without pattern

constexpr std::uint32_t shard_mix(const Digest& digest) noexcept {
  return (static_cast<std::uint32_t>(digest.lo) + static_cast<std::uint32_t>(digest.hi)) *
         kShardMixer;
}

// The shard of a key: part of the snapshot format.
//
// It uses the low halves of both words, which no filter uses up: places are taken from the top of
// the low word (blocked bloom, cohort, exact, apbbf) or, by `growing`, from its low end and then
// with tags from the top of the high word; bits and fingerprints from the high word; or all from
// products of the whole words (probe.hpp, age_partition.hpp). For given bits of a filter the sum is
// still uniform, so that the errors within a shard are those of a filter with fewer keys. The top
// bits of both words would be wrong: they are cohort's bucket and fingerprint, and a shard that
// gets only half of their combinations would have twice the error.
constexpr unsigned shard_of(const Digest& digest, unsigned shards) noexcept {
  return static_cast<unsigned>(std::uint64_t{shard_mix(digest)} * shards >> 32);
}

// Neighbouring shards are a range of shard_mix: `first` and the ones up to `extent` above it.
struct ShardRange {
  std::uint32_t first = 0;
  std::uint32_t extent = 0;

  constexpr bool has(const Digest& digest) const noexcept {
    return shard_mix(digest) - first <= extent;
  }
};

// The range of shards `begin` to `end` − 1, of `shards` in all.
constexpr ShardRange shard_range(unsigned begin, unsigned end, unsigned shards) noexcept {
  assert(begin < end && end <= shards);
  const auto first_of = [&](unsigned shard) {
    return ((std::uint64_t{shard} << 32) + shards - 1) / shards;
  };
  return {static_cast<std::uint32_t>(first_of(begin)),
          static_cast<std::uint32_t>(first_of(end) - 1 - first_of(begin))};
}

// What select_shards may write, and spread_verdicts read, beyond the last record selected.
inline constexpr std::size_t kShardSlack = 64;

// Copies the digests of the range, in order, to `selected`, which has room for all, and slack. Bit
// i % 8 of marks[i / 8] says whether record i is one of them. Returns how many are.
std::size_t select_shards(std::span<const Digest> digests, ShardRange range, Digest* selected,
                          std::uint8_t* marks) noexcept;

// Clears the marks of records that are not duplicates; `verdicts` are those on the selected
// records.
void spread_verdicts(const Verdict* verdicts, std::span<std::uint8_t> marks) noexcept;

// The verdicts on all records: duplicate where one of the planes has a mark. Planes lie
// `plane_bytes` apart, the first at `marks`.
void unite_verdicts(const std::uint8_t* marks, std::size_t planes, std::size_t plane_bytes,
                    std::span<Verdict> verdicts) noexcept;

}  // namespace sluice::kernels
