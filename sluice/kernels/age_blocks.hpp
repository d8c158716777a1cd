// An age partition of blocks in columns, a batch at a time: what apbbf's `column` layout does.
//
// The same answers as AgePartition, in straight code: verdicts are as good as random, and a wrong
// guess costs more than the work it saves. Of k ages in a row exactly one is l, l − k, l − 2k or so
// on. These posts are asked first. Where none matches there is no run, and where one does, a run
// must hold it, so the k − 1 ages on either side of it decide.
//
// A key's steps wait for one another, so keys are taken in groups, and a step for all keys of a
// group before the next one: first the posts, then what is beside them, then the writing.
// That is the same as key by key as long as no two keys write in the same column. Where they do,
// which is rare in a table of some size, and where two posts match, keys are judged the plain way.
#pragma once

#include "sluice/kernels/age_partition.hpp"

namespace sluice::kernels {

// What there is to know of each age, to be had without arithmetic on the ring.
struct AgeTable {
  struct Age {
    std::uint64_t salt_low, salt_high;  // of its slice
    std::uint64_t offset;               // of its segment
    std::uint64_t counts[2];            // 1 if a match is one: in a fresh unit, in a stale one
  };
  // Ages below 0, which nothing has, down to this: they spare a question.
  static constexpr int kBelow = 32;

  // `stride`: from one segment to the next.
  AgeTable(const AgeRing& ring, std::uint64_t stride) noexcept {
    const auto k = static_cast<int>(ring.k), l = static_cast<int>(ring.l);
    none = l % k - k;
    for (int age = none - k; age < k + l; ++age) {
      // Below age 0 nothing counts. What stands there is what a key that matches no post touches.
      const int real = age >= 0 ? age : age > none ? age + k : none + k;
      const unsigned physical = ring.physical(static_cast<unsigned>(real));
      ages[age + kBelow] = {kSliceSalts.lo[physical],
                            kSliceSalts.hi[physical],
                            physical * stride,
                            {std::uint64_t{age >= 0}, std::uint64_t{age > 0}}};
    }
  }
  const Age* at(int age) const noexcept { return ages + kBelow + age; }

  int none;  // the post below the least one, which is below k
  Age ages[kBelow + kMostSlices];
};

// kFixed is k where it is known to the compiler, else 0. Beside what AgePartition asks of it,
// Segments has parts() = 1 and
//   hashed_place(digest, offset, hash)   a place, with the segment's offset and the slice's hash
//   stride()               the offset of the second segment
//   set(place, keep, to)   writes what `keep` leaves of the place's block, with the key's bits, to
//                          the words `to`
//   kWords                 of a block
// and its units are single blocks, a key's with the same number in all segments.
template <class Segments, int kFixed>
class AgeBlocks {
 public:
  AgeBlocks(const Segments& segments, const AgeRing& ring, std::uint64_t* stale,
            const AgeTable& ages) noexcept
      : segments_(segments),
        ring_(ring),
        stale_words_(stale),
        k_(static_cast<int>(ring.k)),
        youngest_(ages.at(0)),
        none_(ages.at(ages.none)),
        lowest_(ages.at(ages.none + static_cast<int>(ring.k))),
        oldest_(ages.at(static_cast<int>(ring.l))) {}

  // Judges all, and returns how many it wrote. kPrefetch: the table is out of cache.
  template <bool kRefresh, bool kPrefetch>
  [[gnu::always_inline]] std::uint64_t admit(const Digest* digests, std::size_t count,
                                             Verdict* verdicts) const noexcept {
    std::uint64_t written = 0;
    for_each_group<kPrefetch>(
        digests, count, [&](Group & group, std::size_t from) __attribute__((always_inline)) {
          Verdict* const judged = verdicts + from;
          if (__builtin_expect(group.crowded, 0)) {
            written += admit_plainly<kRefresh>(segments_, ring_, stale_words_, digests + from,
                                               group.count, judged);
            return;
          }
          std::uint64_t write[kGroup];
          for (std::size_t j = 0; j < group.count; ++j) {
            const std::uint64_t duplicate = finds(group, j);
            write[j] = (kRefresh ? stands_in_youngest(group, j) : duplicate) ^ 1;
            judged[j] = static_cast<Verdict>(duplicate);
          }
          for (std::size_t j = 0; j < group.count; ++j) {
            this->write(group, j, write[j]);
            written += write[j];
          }
        });
    return written;
  }

  template <bool kPrefetch>
  [[gnu::always_inline]] void ask(const Digest* digests, std::size_t count,
                                  Verdict* verdicts) const noexcept {
    for_each_group<kPrefetch>(
        digests, count, [&](Group & group, std::size_t from) __attribute__((always_inline)) {
          for (std::size_t j = 0; j < group.count; ++j)
            verdicts[from + j] = static_cast<Verdict>(finds(group, j));
        });
  }

 private:
  static constexpr std::size_t kGroup = 8;
  static_assert(kPrefetchDistance % kGroup == 0);

  using Place = typename Segments::Place;

  using Age = AgeTable::Age;

  struct Group {
    std::size_t count = 0;
    bool crowded = false;
    Digest digests[kGroup];
    std::uint64_t stale[kGroup];  // 1 if the youngest unit is
    std::uint64_t found[kGroup];  // posts that match
    const Age* post[kGroup];      // the oldest that does; none_, below all ages, if none does
  };

  // Units that keys write in: none, those of the group before, those of this one.
  using Units = std::uint32_t[3 * kGroup];

  [[gnu::always_inline]] int k() const noexcept { return kFixed != 0 ? kFixed : k_; }
  [[gnu::always_inline]] Place place(const Digest& digest, const Age& age) const noexcept {
    return segments_.hashed_place(
        digest, age.offset, fold_multiply(digest.lo ^ age.salt_low, digest.hi ^ age.salt_high));
  }
  [[gnu::always_inline]] std::uint64_t matches(const Digest& digest, const Age& age,
                                               std::uint64_t stale) const noexcept {
    return std::uint64_t{segments_.has(place(digest, age))} & age.counts[stale];
  }

  [[gnu::always_inline]] void find_posts(Group& group, std::size_t j) const noexcept {
    const Digest digest = group.digests[j];
    const std::uint64_t unit = segments_.unit(place(digest, *youngest_));
    const std::uint64_t stale = stale_words_[unit / 64] >> (unit % 64) & 1;
    std::uint64_t found = 0;
    auto post = reinterpret_cast<std::uintptr_t>(none_);
    for (const Age* age = lowest_; age <= oldest_; age += k()) {
      const std::uint64_t match = matches(digest, *age, stale);
      found += match;
      // A mask: with a bool the compiler would rather jump.
      post ^= (post ^ reinterpret_cast<std::uintptr_t>(age)) & (std::uint64_t{0} - match);
    }
    group.stale[j] = stale;
    group.found[j] = found;
    group.post[j] = reinterpret_cast<const Age*>(post);
  }

  [[gnu::always_inline]] std::uint64_t finds(const Group& group, std::size_t j) const noexcept {
    const Digest digest = group.digests[j];
    const std::uint64_t found = group.found[j], stale = group.stale[j];
    const Age* const post = group.post[j];
    if (__builtin_expect(found > 1, 0))
      return asked_plainly(segments_, ring_, stale_words_, digest);
    // A bit for each age from k − 1 below the post to k − 1 above it.
    std::uint64_t around = found << (k() - 1);
    for (int step = 1; step < k(); ++step) {
      around |= matches(digest, post[step], stale) << (k() - 1 + step);
      around |= matches(digest, post[-step], stale) << (k() - 1 - step);
    }
    for (int have = 1; have < k();) {
      const int step = std::min(have, k() - have);
      around &= around >> step;
      have += step;
    }
    return found & std::uint64_t{around != 0};
  }

  [[gnu::always_inline]] std::uint64_t stands_in_youngest(const Group& group,
                                                          std::size_t j) const noexcept {
    std::uint64_t all = 1;
    for (int age = 0; age < k(); ++age)
      all &= matches(group.digests[j], youngest_[age], group.stale[j]);
    return all;
  }

  // Writes the key where `write` is 1, and as much elsewhere where it is 0.
  [[gnu::always_inline]] void write(const Group& group, std::size_t j,
                                    std::uint64_t write) const noexcept {
    alignas(64) std::uint64_t unused[Segments::kWords];
    const auto target = [&](const Place& where) {
      const auto block = reinterpret_cast<std::uintptr_t>(where.block);
      const auto other = reinterpret_cast<std::uintptr_t>(unused);
      return reinterpret_cast<std::uint64_t*>(other ^
                                              ((block ^ other) & (std::uint64_t{0} - write)));
    };
    const Place young = place(group.digests[j], *youngest_);
    const std::uint64_t unit = segments_.unit(young), stale = group.stale[j];
    stale_words_[unit / 64] &= ~(write << (unit % 64));
    segments_.set(young, stale - 1, target(young));
    for (int age = 1; age < k(); ++age) {
      const Place where = place(group.digests[j], youngest_[age]);
      segments_.set(where, ~std::uint64_t{0}, target(where));
    }
  }

  // Static, and given copies: what nobody else can point at stays in registers.
  [[gnu::noinline]] static std::uint64_t asked_plainly(Segments segments, AgeRing ring,
                                                       std::uint64_t* stale,
                                                       Digest digest) noexcept {
    return AgePartition<Segments>(segments, ring, stale).may_contain(digest);
  }
  template <bool kRefresh>
  [[gnu::noinline]] static std::uint64_t admit_plainly(Segments segments, AgeRing ring,
                                                       std::uint64_t* stale, const Digest* digests,
                                                       std::size_t count,
                                                       Verdict* verdicts) noexcept {
    const AgePartition<Segments> plain(segments, ring, stale);
    std::uint64_t written = 0;
    for (std::size_t j = 0; j < count; ++j) {
      const bool duplicate = plain.may_contain(digests[j]);
      verdicts[j] = static_cast<Verdict>(duplicate);
      if (kRefresh ? plain.holds(digests[j], 0) : duplicate) continue;
      plain.write(digests[j], 0);
      ++written;
    }
    return written;
  }

  // Whether a key of this group writes where another of it or, with `kBefore`, of the group before
  // does.
  template <bool kBefore>
  [[gnu::always_inline]] bool is_crowded(const Group& group, Units& units) const noexcept {
    if (kBefore)
      for (std::size_t j = 0; j < kGroup; ++j) units[kGroup + j] = units[2 * kGroup + j];
    for (std::size_t j = 0; j < group.count; ++j)
      units[2 * kGroup + j] =
          static_cast<std::uint32_t>(segments_.unit(place(group.digests[j], *youngest_)));
    std::uint32_t same = 0;
    for (std::size_t apart = 1; apart < (kBefore ? 2 : 1) * kGroup; ++apart)
      for (std::size_t j = 0; j < kGroup; ++j)
        same |= std::uint32_t{units[2 * kGroup + j] == units[2 * kGroup + j - apart]};
    return same != 0;
  }

  // Posts are asked for first, long ahead. When they have come they are looked at, a group ahead of
  // the judgement, and what else it will need is asked for.
  template <bool kPrefetch, class Judge>
  [[gnu::always_inline]] void for_each_group(const Digest* digests, std::size_t count,
                                             Judge judge) const {
    Units units;
    for (std::size_t j = 0; j < 3 * kGroup; ++j) units[j] = ~static_cast<std::uint32_t>(j);
    Group groups[2];
    constexpr std::size_t kAhead = kPrefetch ? kPrefetchDistance : 0;
    constexpr std::size_t kLag = kPrefetch ? kGroup : 0;
    for (std::size_t i = 0; i < count + kAhead + kLag; i += kGroup) {
      if constexpr (kPrefetch) {
        for (std::size_t key = i; key < std::min(i + kGroup, count); ++key)
          for (const Age* age = lowest_; age <= oldest_; age += k())
            __builtin_prefetch(segments_.address(place(digests[key], *age)), 0, kPrefetchLocality);
      }
      const std::size_t next = i - kAhead, now = next - kLag;  // below 0: far beyond the count
      Group& looked = groups[next / kGroup % 2];
      looked.count = next < count ? std::min(kGroup, count - next) : 0;
      for (std::size_t j = 0; j < looked.count; ++j) looked.digests[j] = digests[next + j];
      for (std::size_t j = 0; j < looked.count; ++j) {
        find_posts(looked, j);
        if constexpr (kPrefetch)
          for (int step = 1; step < k(); ++step) {
            const Age *above = looked.post[j] + step, *below = looked.post[j] - step;
            __builtin_prefetch(segments_.address(place(looked.digests[j], *above)), 0,
                               kPrefetchLocality);
            __builtin_prefetch(segments_.address(place(looked.digests[j], *below)), 0,
                               kPrefetchLocality);
          }
      }
      looked.crowded = is_crowded<kPrefetch>(looked, units);
      if (now < count) judge(groups[now / kGroup % 2], now);
    }
  }

  Segments segments_;
  AgeRing ring_;
  std::uint64_t* stale_words_;
  int k_;
  const Age *youngest_, *none_;
  const Age *lowest_, *oldest_;  // posts
};

}  // namespace sluice::kernels
