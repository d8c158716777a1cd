// Inner loops of the cohort filter: cache-line buckets of fingerprints with generation tags.
//
// A bucket is one 64-byte line of equal slots. A slot is a fingerprint whose upper part shares an
// element with the generation in which it was written:
//
//   slot bits   slots   lower plane          upper plane (generation on top)
//      16        32     –                    16-bit elements at byte 0
//      24        21     16-bit at byte 0      8-bit elements at byte 42
//      32        16     –                    32-bit elements at byte 0
//      40        12     32-bit at byte 0      8-bit elements at byte 48
//      48        10     32-bit at byte 0     16-bit elements at byte 40
//
// With planes, one vector comparison covers all slots of a bucket. A slot is live while the age of
// its generation (modulo 2^generation_bits) is at most `live`; any other slot is free. A key has
// two candidate buckets; the second follows from the first and the fingerprint alone, so that an
// occupant can be moved without knowing its key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sluice/base/bits.hpp"
#include "sluice/base/line_table.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice::kernels {

inline constexpr std::size_t kBucketBytes = 64;

struct CohortTable {
  std::byte* lines;  // null if there are pages
  std::uint64_t buckets;
  unsigned slot_bits;        // 16, 24, 32, 40 or 48
  unsigned generation_bits;  // 4 to 6
  unsigned live;             // the greatest age of a live slot
  unsigned now;              // the present generation, modulo 2^generation_bits
  LinePages pages = {};

  unsigned fingerprint_bits() const noexcept { return slot_bits - generation_bits; }
  unsigned generation_mask() const noexcept { return (1u << generation_bits) - 1; }
};

// How many slots a bucket has.
constexpr unsigned cohort_slots(unsigned slot_bits) noexcept {
  switch (slot_bits) {
    case 16:
      return 32;
    case 24:
      return 21;
    case 32:
      return 16;
    case 40:
      return 12;
    default:
      return 10;
  }
}

// Where a key may be, and what is stored of it.
struct CohortPlace {
  std::uint64_t first;   // bucket
  std::uint64_t second;  // bucket; may be the first again in a tiny table
  std::uint64_t fingerprint;
};

// Odd, and without pattern: 2^64 divided by the golden ratio.
inline constexpr std::uint64_t kSecondBucketFactor = 0x9E3779B97F4A7C15;

// Its own inverse for every table size: second_bucket(second_bucket(b)) = b.
inline std::uint64_t second_bucket(const CohortTable& table, std::uint64_t bucket,
                                   std::uint64_t fingerprint) noexcept {
  // The top bits of the product depend on every bit of the fingerprint; a zero fingerprint also
  // moves.
  const std::uint64_t offset = scale_to((fingerprint + 1) * kSecondBucketFactor, table.buckets);
  return offset >= bucket ? offset - bucket : offset + table.buckets - bucket;
}

inline CohortPlace place_of(const CohortTable& table, const Digest& digest) noexcept {
  const std::uint64_t fingerprint = digest.hi >> (64 - table.fingerprint_bits());
  const std::uint64_t first = scale_to(digest.lo, table.buckets);
  return {first, second_bucket(table, first, fingerprint), fingerprint};
}

// The address of a bucket; in pages, it may not have been cleared yet.
inline std::byte* line_of(const CohortTable& table, std::uint64_t bucket) noexcept {
  return table.pages ? table.pages.at(bucket) : table.lines + bucket * kBucketBytes;
}
// The same, to be written, or only to be read.
template <bool kWrite = true>
std::byte* cleared_line_of(const CohortTable& table, std::uint64_t bucket) noexcept {
  if (!table.pages) return table.lines + bucket * kBucketBytes;
  if constexpr (kWrite) return table.pages.to_write(bucket);
  return const_cast<std::byte*>(table.pages.to_read(bucket));
}

// One slot as plain values: for the rare paths and the portable form.
struct CohortSlot {
  std::uint64_t fingerprint;
  unsigned generation;
};
CohortSlot cohort_get(const CohortTable& table, std::uint64_t bucket, unsigned slot) noexcept;
void cohort_put(const CohortTable& table, std::uint64_t bucket, unsigned slot,
                const CohortSlot& value) noexcept;

// Which slots of a bucket hold the fingerprint and are live, and which are free, as bits.
struct CohortMatch {
  std::uint32_t match;
  std::uint32_t free;
};
CohortMatch cohort_probe(const CohortTable& table, std::uint64_t bucket,
                         std::uint64_t fingerprint) noexcept;

// A key that found no room in its two buckets, even by moving others.
struct CohortStray {
  std::uint64_t bucket;  // the first
  std::uint64_t fingerprint;
  std::uint64_t tick;  // the generation in which it was written
};

struct CohortBatch {
  const Digest* digests = nullptr;
  std::size_t count = 0;
  Verdict* verdicts = nullptr;
  const CohortStray* strays = nullptr;  // also asked
  std::size_t stray_count = 0;
  std::uint64_t budget = 0;                 // how many keys may be written
  bool refresh = false;                     // a duplicate is stamped with the present generation
  std::uint64_t written = 0;                // out: keys written
  std::uint64_t* refreshed_from = nullptr;  // out, with refresh: duplicates by their old generation
  // Writes a distinct key whose buckets are both full by moving others; false if it cannot.
  bool (*make_room)(void* owner, const CohortPlace& place) = nullptr;
  void* owner = nullptr;
};

// Judges digests in order and returns how many it judged: fewer than `count` when the budget is
// spent or when there is no room for a distinct key; the caller must handle that.
std::size_t cohort_admit(const CohortTable& table, CohortBatch& batch) noexcept;

// Ask only.
void cohort_may_contain(const CohortTable& table, const CohortBatch& batch) noexcept;

// The age of the youngest live slot of each of `count` digests; kNoAge if there is none. Strays are
// not searched.
inline constexpr std::uint8_t kNoAge = 255;
void cohort_ages(const CohortTable& table, const Digest* digests, std::size_t count,
                 std::uint8_t* ages) noexcept;

// Stamps the free slots of `count` buckets from `bucket` on with the generation that has just left
// the window, so that reusing its number does not bring dead slots back to life.
void cohort_sweep(const CohortTable& table, std::uint64_t bucket, std::uint64_t count) noexcept;

}  // namespace sluice::kernels
