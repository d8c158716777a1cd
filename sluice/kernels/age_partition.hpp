// Age partition: the common mechanism of apbf and apbbf, for any kind of segment.
//
// A ring of k + l segments. A key is written in the k youngest, and is found if k segments in a row
// match. When a generation ends, the oldest segment becomes the youngest. Segments have fixed
// physical numbers and a hash each, and their age is counted from `youngest`.
//
// The segment that becomes the youngest must be empty, but until then it is in use and as full as
// any. Emptying it at once would delay one call. Instead its units (cache lines, or a column's
// blocks) are marked stale: a stale unit matches nothing, and the first key written to it empties
// it. Units that no key reaches are swept in the course of the generation. If a generation ends
// before that is done, the marks of one segment are not enough: see age_strips.hpp.
//
// A Segments type says where a key's bits lie. A segment has parts() parts, each with one Place of
// the key:
//   place(digest, physical, part)   address(place)   has(place)   set(place)
//   unit(place)                     which unit of the segment the place is in
//   empty(physical, unit)           clears a unit
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sluice/base/bits.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/hash/digest.hpp"
#include "sluice/kernels/prefetch.hpp"

namespace sluice::kernels {

struct AgeRing {
  unsigned k = 0;         // segments a key is written in
  unsigned l = 0;         // generations for which a key stays beyond its own
  unsigned youngest = 0;  // physical number of the segment of age 0

  unsigned segments() const noexcept { return k + l; }
  unsigned physical(unsigned age) const noexcept {
    const unsigned at = youngest + age;
    return at >= segments() ? at - segments() : at;
  }
  unsigned age(unsigned physical) const noexcept {
    return physical >= youngest ? physical - youngest : physical + segments() - youngest;
  }
};

// One bit per unit of the youngest segment.
class StaleUnits {
 public:
  explicit StaleUnits(std::uint64_t* words) noexcept : words_(words) {}
  bool has(std::uint64_t unit) const noexcept {
    return (words_[unit / 64] >> (unit % 64) & 1) != 0;
  }
  void remove(std::uint64_t unit) const noexcept {
    words_[unit / 64] &= ~(std::uint64_t{1} << (unit % 64));
  }

 private:
  std::uint64_t* words_;
};

// What AgePartition asks where only the youngest segment may be stale.
class StaleYoungest {
 public:
  static constexpr bool kAnyAge = false;
  explicit StaleYoungest(std::uint64_t* words) noexcept : units_(words) {}
  [[gnu::always_inline]] bool has(unsigned, unsigned, std::uint64_t unit) const noexcept {
    return units_.has(unit);
  }
  // Empties what is stale, so that it can be written to.
  template <class Segments>
  [[gnu::always_inline]] void freshen(const Segments& segments, unsigned physical,
                                      std::uint64_t unit) const noexcept {
    segments.empty(physical, unit);
    units_.remove(unit);
  }

 private:
  StaleUnits units_;
};

// Most parts that all segments of a filter may have together: there is a pair of salts for each.
inline constexpr unsigned kMostParts = 256;

struct PartSalts {
  std::uint64_t lo[kMostParts], hi[kMostParts];
  constexpr PartSalts() noexcept : lo(), hi() {
    SplitMix64 random(0x536C757463654167ULL);
    for (unsigned i = 0; i < kMostParts; ++i) {
      lo[i] = random.next();
      hi[i] = random.next();
    }
  }
};
inline constexpr PartSalts kPartSalts{};

// The hash of one physical part. The whole digest is mixed for each part: steps of two hashes (h1 +
// i·h2) would leave a floor of false positives of about window / bits².
inline std::uint64_t part_hash(const Digest& digest, unsigned part) noexcept {
  return fold_multiply(digest.lo ^ kPartSalts.lo[part], digest.hi ^ kPartSalts.hi[part]);
}

// The request for a batch, and its result.
struct AgeBatch {
  const Digest* digests = nullptr;
  std::size_t count = 0;
  Verdict* verdicts = nullptr;
  std::uint64_t room = 0;     // how many keys may be written
  bool refresh = false;       // a duplicate is written again
  std::uint64_t written = 0;  // out: keys written
  // Out, with refresh: keys written again, by how old they were, from 1 to k − 1 generations. Index k:
  // those that were older, or not there. A key that was younger than k has its bits already in the
  // segments that are as old as itself or older.
  std::uint64_t* again = nullptr;
};

template <class Segments, class Stale = StaleYoungest>
class AgePartition {
 public:
  AgePartition(const Segments& segments, const AgeRing& ring, const Stale& stale) noexcept
      : segments_(segments), ring_(ring), stale_(stale) {}
  AgePartition(const Segments& segments, const AgeRing& ring, std::uint64_t* stale) noexcept
      : AgePartition(segments, ring, StaleYoungest(stale)) {}

  // The paper's Algorithm 1. From age l on it counts matches in a row; after a miss at i no run can
  // contain i, so it asks i − k next, and keeps the matches just counted: they may complete a run
  // from below.
  [[gnu::always_inline]] bool may_contain(const Digest& digest) const noexcept {
    int at = static_cast<int>(ring_.l);
    unsigned previous = 0, current = 0;
    while (at >= 0) {
      if (matches(digest, static_cast<unsigned>(at))) {
        ++at;
        if (previous + ++current == ring_.k) return true;
      } else {
        at -= static_cast<int>(ring_.k);
        previous = current;
        current = 0;
      }
    }
    return false;
  }

  // Whether the key is in all segments in which a key of this age is written.
  [[gnu::always_inline]] bool holds(const Digest& digest, unsigned age) const noexcept {
    for (unsigned i = age; i < age + ring_.k; ++i)
      if (!matches(digest, i)) return false;
    return true;
  }

  // The age of the youngest trace of the key, if it is more than 0 and less than k; else k.
  unsigned young_age(const Digest& digest) const noexcept {
    const unsigned end = std::min(2 * ring_.k - 1, ring_.segments());
    unsigned run = 0;
    for (unsigned i = 1; i < end; ++i) {
      run = matches(digest, i) ? run + 1 : 0;
      if (run == ring_.k) return i + 1 - ring_.k;
    }
    return ring_.k;
  }

  [[gnu::always_inline]] void write(const Digest& digest, unsigned age) const noexcept {
    for (unsigned i = age; i < age + ring_.k; ++i) {
      const unsigned physical = ring_.physical(i);
      for (unsigned part = 0; part < segments_.parts(); ++part) {
        const auto place = segments_.place(digest, physical, part);
        if ((Stale::kAnyAge || i == 0) && stale_.has(i, physical, segments_.unit(place)))
          stale_.freshen(segments_, physical, segments_.unit(place));
        segments_.set(place);
      }
    }
  }

  // Judges in order until the room is used up, and returns how many it judged.
  [[gnu::always_inline]] std::size_t admit(AgeBatch& batch, std::size_t table_bytes) const {
    return batch.refresh ? admit_all<true>(batch, table_bytes)
                         : admit_all<false>(batch, table_bytes);
  }

  [[gnu::always_inline]] void ask(const Digest* digests, std::size_t count, Verdict* verdicts,
                                  std::size_t table_bytes) const {
    for_each(
        digests, count, table_bytes, [&](std::size_t i) __attribute__((always_inline)) {
          verdicts[i] = static_cast<Verdict>(may_contain(digests[i]));
        });
  }

 private:
  template <bool kRefresh>
  [[gnu::always_inline]] std::size_t admit_all(AgeBatch& batch, std::size_t table_bytes) const {
    std::size_t judged = 0;
    // A key takes at most one place, so this many keys need no check.
    while (judged < batch.count && batch.written < batch.room) {
      const std::size_t run = static_cast<std::size_t>(
          std::min<std::uint64_t>(batch.count - judged, batch.room - batch.written));
      for_each(
          batch.digests + judged, run,
          table_bytes, [&](std::size_t i) __attribute__((always_inline)) {
            const Digest& digest = batch.digests[judged + i];
            const bool duplicate = may_contain(digest);
            batch.verdicts[judged + i] = static_cast<Verdict>(duplicate);
            if (duplicate && (!kRefresh || holds(digest, 0))) return;
            if (kRefresh && duplicate) ++batch.again[young_age(digest)];
            write(digest, 0);
            ++batch.written;
          });
      judged += run;
    }
    return judged;
  }

  [[gnu::always_inline]] bool matches(const Digest& digest, unsigned age) const noexcept {
    const unsigned physical = ring_.physical(age);
    for (unsigned part = 0; part < segments_.parts(); ++part) {
      const auto place = segments_.place(digest, physical, part);
      if ((Stale::kAnyAge || age == 0) && stale_.has(age, physical, segments_.unit(place)))
        return false;
      if (!segments_.has(place)) return false;
    }
    return true;
  }

  // Prefetches what a new key certainly or probably touches: the segments that it is written in,
  // and those that the query asks when nothing matches.
  template <class Judge>
  [[gnu::always_inline]] void for_each(const Digest* digests, std::size_t count,
                                       std::size_t table_bytes, Judge judge) const {
    const bool prefetch = table_bytes >= kPrefetchFromBytes;
    const std::size_t ahead = std::min(count, kPrefetchDistance);
    for (std::size_t i = 0; i < count + ahead; ++i) {
      if (prefetch && i < count) {
        for (unsigned age = 0; age < ring_.k; ++age) {
          const unsigned physical = ring_.physical(age);
          for (unsigned part = 0; part < segments_.parts(); ++part)
            __builtin_prefetch(segments_.address(segments_.place(digests[i], physical, part)), 1);
        }
        for (unsigned age = ring_.l; age >= ring_.k; age -= ring_.k)
          __builtin_prefetch(segments_.address(segments_.place(digests[i], ring_.physical(age), 0)),
                             0);
      }
      if (i >= ahead) judge(i - ahead);
    }
  }

  Segments segments_;
  AgeRing ring_;
  Stale stale_;
};

}  // namespace sluice::kernels
