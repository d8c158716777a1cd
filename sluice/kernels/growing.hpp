// Inner loops of the growing filter: cache-line buckets of fingerprints, split one at a time.
//
// Sides    A key has two hashes, h and h ^ mix(tag), and so two buckets; each hash follows from the
//          other, since every slot has the tag. The lowest bit of the mix is set: of the two hashes
//          one is even and one is odd.
// Halves   The table is two tables, for even and for odd hashes, that double in turn. While one is
//          partly split, its unsplit buckets get twice as many keys as the others, but every key
//          has its other bucket in the half without such differences. This takes a third of the
//          moves of one table that holds both buckets of a key.
// Address  Linear hashing. Of a half's 2^L + p buckets the first p have been split, and each has
//          its sibling 2^L further on; a hash's bucket is given by its bits 1 to L + 1 if there is
//          such a bucket, otherwise by bits 1 to L. The number of hash bits used, including the
//          lowest, is the bucket's *level*.
// Slot     From the lowest bit on: the tag, which is never shortened; then the hash's bits from the
//          bucket's level on; then a one; then zeros. All zero is free. A new key has as many bits
//          as fit. When a bucket splits, the first bit tells where a slot goes and is shifted out:
//          each doubling costs older keys one bit, and new keys none. A slot that has no bit left
//          is copied to both buckets.
// Match    A slot s and a query q (tag and hash bits, no delimiter) agree when their lowest
//          difference lies at or above s's highest bit: ((s ^ q) ^ ((s ^ q) − 1)) > s − 1,
//          unsigned, which no free slot does.
//
// What is written for a digest is part of the snapshot format: a change is a new version.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/base/bits.hpp"
#include "sluice/base/page_list.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice::kernels {

inline constexpr std::size_t kGrowingBucketBytes = 64;
inline constexpr std::size_t kGrowingMostStrays = 64;
// A bucket is a line of a page, if a half is in pages.
static_assert(kGrowingBucketBytes == kCacheLineBytes);
// More would need more hash bits than there are: 33 for the address, 31 for a 64-bit slot.
inline constexpr std::uint64_t kGrowingMostBuckets = std::uint64_t{1} << 33;

// How a slot is cut, and how full the table is kept.
struct GrowingShape {
  unsigned slot_bits;
  unsigned tag_bits;
  unsigned load_256ths;
  constexpr unsigned slots() const noexcept { return 512 / slot_bits; }
  // Hash bits of a new slot; one more is the delimiter.
  constexpr unsigned hash_bits() const noexcept { return slot_bits - tag_bits - 1; }
  // The number of slots in use at which a table of that many buckets grows.
  constexpr std::uint64_t limit(std::uint64_t buckets) const noexcept {
    return buckets * slots() * load_256ths / 256;
  }
};

// The loads: at these, all but about one key in a thousand find a free slot in one of their two
// buckets, averaged over a doubling (docs/filters/growing.md).
inline constexpr GrowingShape kGrowing16{16, 6, 184};
inline constexpr GrowingShape kGrowing32{32, 12, 174};
inline constexpr GrowingShape kGrowing64{64, 32, 160};

// What is known about a key: its tag and the low `bits` bits of one of its hashes.
struct GrowingTrace {
  std::uint64_t tag = 0;
  std::uint64_t hash = 0;
  unsigned bits = 64;
};

// The buckets of even, or of odd, hashes.
struct GrowingHalf {
  // One block, or pages.
  std::byte* lines = nullptr;
  GrownPages pages;
  std::uint64_t allocated = 0;  // buckets there is memory for
  std::uint64_t buckets = 0;
  std::uint64_t low_mask = 0;  // 2^L − 1: 2^L ≤ buckets < 2^(L+1)
  std::uint64_t split = 0;     // how many of the first 2^L have been split
  unsigned level = 0;          // L + 1: level of a bucket that has not been split

  void set_buckets(std::uint64_t count) noexcept;
  // The number of the bucket of a hash that belongs to this half.
  std::uint64_t bucket_of(std::uint64_t hash) const noexcept {
    const std::uint64_t far = hash >> 1 & (2 * low_mask + 1), near = hash >> 1 & low_mask;
    return far < buckets ? far : near;
  }
  // Bucket number `index` of this half: to be written, or only to be read.
  std::byte* at(std::uint64_t index) const noexcept {
    return pages ? pages.to_write(index) : lines + index * kGrowingBucketBytes;
  }
  const std::byte* to_read(std::uint64_t index) const noexcept {
    return pages ? pages.to_read(index) : lines + index * kGrowingBucketBytes;
  }
  unsigned level_of(std::uint64_t hash) const noexcept {
    return level + ((hash >> 1 & low_mask) < split);
  }
};

struct GrowingTable {
  std::array<GrowingHalf, 2> halves = {};
  std::uint64_t buckets = 0;  // of both
  GrowingShape shape = kGrowing32;
  std::uint64_t entries = 0;                   // slots taken, and strays
  std::uint64_t limit = 0;                     // entries at which it grows
  std::array<std::uint64_t, 65> by_bits = {};  // entries by their number of known hash bits
  std::array<GrowingTrace, kGrowingMostStrays> strays = {};  // keys that found no room
  std::size_t stray_count = 0;
  std::uint64_t moves = 0;
  std::uint64_t lines_touched = 0;

  // How `buckets` are divided: one half has a power of two, the other up to twice that; the even
  // half is never smaller.
  void set_buckets(std::uint64_t count) noexcept;
  // Slots that may still be used. A split may make more copies than room.
  std::uint64_t room() const noexcept { return entries < limit ? limit - entries : 0; }
  // The half whose bucket is split next.
  std::size_t next() const noexcept { return halves[0].buckets >= 2 * (halves[1].low_mask + 1); }
  bool can_split() const noexcept {
    return halves[next()].buckets < halves[next()].allocated && buckets < kGrowingMostBuckets;
  }
  const GrowingHalf& half(std::uint64_t hash) const noexcept { return halves[hash & 1]; }
  std::byte* line(std::uint64_t hash) const noexcept {
    return half(hash).at(half(hash).bucket_of(hash));
  }
  const std::byte* line_to_read(std::uint64_t hash) const noexcept {
    return half(hash).to_read(half(hash).bucket_of(hash));
  }
  unsigned level_of(std::uint64_t hash) const noexcept { return half(hash).level_of(hash); }
};

inline std::uint64_t growing_mix(std::uint64_t tag) noexcept {
  return fold_multiply(tag ^ 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93) | 1;
}

inline GrowingTrace trace_of(const GrowingShape& shape, const Digest& digest) noexcept {
  return {digest.hi >> (64 - shape.tag_bits), digest.lo, 64};
}

// The same trace, by the key's other hash.
inline GrowingTrace other_side(const GrowingTrace& trace) noexcept {
  const std::uint64_t known =
      trace.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << trace.bits) - 1;
  return {trace.tag, (trace.hash ^ growing_mix(trace.tag)) & known, trace.bits};
}

// Whether `key` agrees with all that is known about `held`; at least as much must be known about
// `key`.
inline bool covers(const GrowingTrace& held, const GrowingTrace& key) noexcept {
  if (held.tag != key.tag || held.bits > key.bits) return false;
  const unsigned unknown = 64 - held.bits;
  const auto agree = [&](std::uint64_t hash) {
    return unknown == 64 || (held.hash ^ hash) << unknown == 0;
  };
  return agree(key.hash) || agree(key.hash ^ growing_mix(key.tag));
}

// The plain forms, for rare paths.
std::uint64_t growing_get(const GrowingTable& table, std::uint64_t bucket, unsigned slot) noexcept;
void growing_put(const GrowingTable& table, std::uint64_t bucket, unsigned slot,
                 std::uint64_t value) noexcept;
std::optional<unsigned> growing_free_slot(const GrowingTable& table, std::uint64_t bucket) noexcept;
// The trace in a slot in use, with the hash of its bucket's half.
GrowingTrace growing_trace(const GrowingTable& table, std::uint64_t bucket, unsigned slot) noexcept;
// The bucket of a trace's hash; none if too few of its bits are known.
std::optional<std::uint64_t> growing_bucket(const GrowingTable& table,
                                            const GrowingTrace& trace) noexcept;
// Writes a trace to a free slot of the bucket of its hash, and counts it.
void growing_write(GrowingTable& table, std::uint64_t bucket, unsigned slot,
                   const GrowingTrace& trace) noexcept;
// Frees a slot and subtracts it from the counts.
void growing_erase(GrowingTable& table, std::uint64_t bucket, unsigned slot) noexcept;

// Writes a trace whose buckets are known: to the emptier one, or by moving others, or to the
// strays. False: there is no room.
bool growing_place(GrowingTable& table, const GrowingTrace& trace) noexcept;
// The same when both buckets are known to be full.
bool growing_place_crowded(GrowingTable& table, const GrowingTrace& trace) noexcept;
// Moves strays that find a free slot into the table.
void growing_settle(GrowingTable& table) noexcept;

// Splits the next bucket; can_split() must be true.
void growing_split(GrowingTable& table) noexcept;

// Judges digests in order and remembers the distinct ones, splitting a bucket whenever the limit is
// reached. Returns how many were judged: fewer than `count` when the table has no memory for the
// next split, or a key found no room and the stash is full.
std::size_t growing_observe(GrowingTable& table, const Digest* digests, std::size_t count,
                            Verdict* verdicts) noexcept;
// Ask only.
void growing_may_contain(const GrowingTable& table, const Digest* digests, std::size_t count,
                         Verdict* verdicts) noexcept;

}  // namespace sluice::kernels
