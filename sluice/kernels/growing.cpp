#include "sluice/kernels/growing.hpp"

// clang-format off
#include "sluice/base/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/growing.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <cstring>

#include "sluice/kernels/growing_ring.hpp"
#include "sluice/kernels/prefetch.hpp"
#include "sluice/kernels/vectors_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if SLUICE_PORTABLE_TARGET

template <class F>
GrowingMatch probe(const std::byte* line, typename F::Slot query) {
  using Slot = typename F::Slot;
  GrowingMatch found{0, 0};
  for (unsigned i = 0; i < F::kSlots; ++i) {
    Slot slot;
    std::memcpy(&slot, line + i * sizeof(Slot), sizeof(Slot));
    const auto apart = static_cast<Slot>(slot ^ query);
    const auto agree = static_cast<Slot>(apart ^ static_cast<Slot>(apart - 1));
    found.match |= std::uint32_t{agree > static_cast<Slot>(slot - 1)} << i;
    found.free |= std::uint32_t{slot == 0} << i;
  }
  return found;
}

// Returns how many slots had no bit left and are now in both.
template <class F>
unsigned split_line(std::byte* source, std::byte* target) {
  using Slot = typename F::Slot;
  unsigned both = 0;
  for (unsigned i = 0; i < F::kSlots; ++i) {
    Slot slot;
    std::memcpy(&slot, source + i * sizeof(Slot), sizeof(Slot));
    const bool spent = slot >> F::kTagBits == 1;
    const bool far = (slot >> F::kTagBits & 1) != 0;
    const auto shifted =
        static_cast<Slot>((slot & F::kTagMask) | (slot >> 1 & static_cast<Slot>(~F::kTagMask)));
    const Slot next = spent ? slot : shifted;
    const Slot here = far && !spent ? Slot{0} : next, there = far ? next : Slot{0};
    std::memcpy(source + i * sizeof(Slot), &here, sizeof(Slot));
    std::memcpy(target + i * sizeof(Slot), &there, sizeof(Slot));
    both += spent;
  }
  return both;
}

#else

template <class F>
using Tag = hn::CappedTag<typename F::Slot, F::kSlots>;
template <class F>
constexpr std::size_t kLanes = hn::MaxLanes(Tag<F>());

template <class F>
HWY_INLINE GrowingMatch probe(const std::byte* line, typename F::Slot query) {
  const Tag<F> d;
  const auto* slots = reinterpret_cast<const typename F::Slot*>(line);
  const auto one = hn::Set(d, 1);
  GrowingMatch found{0, 0};
  for (std::size_t at = 0; at < F::kSlots; at += kLanes<F>) {
    const auto slot = hn::Load(d, slots + at);
    const auto apart = hn::Xor(slot, hn::Set(d, query));
    const auto agree = hn::Xor(apart, hn::Sub(apart, one));
    found.match |= static_cast<std::uint32_t>(bits_of(d, hn::Gt(agree, hn::Sub(slot, one)))) << at;
    found.free |= static_cast<std::uint32_t>(bits_of(d, hn::Eq(slot, hn::Zero(d)))) << at;
  }
  return found;
}

template <class F>
HWY_INLINE unsigned split_line(std::byte* source, std::byte* target) {
  const Tag<F> d;
  auto* from = reinterpret_cast<typename F::Slot*>(source);
  auto* to = reinterpret_cast<typename F::Slot*>(target);
  const auto tag = hn::Set(d, F::kTagMask);
  const auto first = hn::Set(d, static_cast<typename F::Slot>(F::kTagMask + 1));
  std::size_t both = 0;
  for (std::size_t at = 0; at < F::kSlots; at += kLanes<F>) {
    const auto slot = hn::Load(d, from + at);
    const auto spent = hn::Eq(hn::AndNot(tag, slot), first);
    const auto far = hn::Ne(hn::And(slot, first), hn::Zero(d));
    const auto shifted = hn::Or(hn::And(slot, tag), hn::AndNot(tag, hn::ShiftRight<1>(slot)));
    const auto next = hn::IfThenElse(spent, slot, shifted);
    hn::Store(hn::IfThenZeroElse(hn::AndNot(spent, far), next), d, from + at);
    hn::Store(hn::IfThenElseZero(far, next), d, to + at);
    both += hn::CountTrue(d, spent);
  }
  return static_cast<unsigned>(both);
}

#endif

// Lines are asked for into the second-level cache: more can be on their way to it than to the
// first, and out of cache that saves a fifth of the wait.
constexpr int kIntoSecondLevel = 2;

// How far ahead of a split its lines are asked for, in splits.
constexpr std::size_t kSplitsAhead = 3;

template <class F, class Lies>
HWY_INLINE void split_one(GrowingTable& table) {
  GrowingHalf& half = table.halves[table.next()];
  std::byte* const source = Lies::at(half, half.split);
  std::byte* const target = Lies::at(half, half.buckets);
  // The lines of the splits to come: they are a dozen keys apart. Nearly always in the same page.
  __builtin_prefetch(source + kSplitsAhead * kGrowingBucketBytes, 1);
  __builtin_prefetch(target + kSplitsAhead * kGrowingBucketBytes, 1);
  const std::uint64_t both = split_line<F>(source, target);
  if (HWY_UNLIKELY(both != 0)) {
    table.by_bits[half.level] -= both;
    table.by_bits[half.level + 1] += 2 * both;
    table.entries += both;
  }
  ++half.buckets;
  ++half.split;
  if (HWY_UNLIKELY(half.split > half.low_mask)) half.set_buckets(half.buckets);
  ++table.buckets;
  table.limit = F::kShape.limit(table.buckets);
  table.lines_touched += 2;
  if (HWY_UNLIKELY(table.stray_count != 0)) growing_settle(table);
}

// A choice without a branch; `which` is all ones for yes, zero for no: with a bool the compiler
// would rather jump.
HWY_INLINE std::uint64_t choose(std::uint64_t which, std::uint64_t yes, std::uint64_t no) {
  return no ^ ((yes ^ no) & which);
}

// Writes a new key's slot to the first free one of the bucket; a duplicate's to a spare place.
template <class F>
HWY_INLINE void write(const GrowingRing<F>& ring, std::size_t at, std::uint64_t free,
                      std::uint64_t duplicate, std::byte* unused) {
  const std::uint64_t line =
      choose(std::uint64_t{0} - duplicate, reinterpret_cast<std::uintptr_t>(unused),
             reinterpret_cast<std::uintptr_t>(ring.lines[at]));
  const auto slot =
      static_cast<std::size_t>(__builtin_ctzll(free | std::uint64_t{1} << (F::kSlots - 1)));
  std::memcpy(reinterpret_cast<std::byte*>(line) + slot * sizeof(typename F::Slot), &ring.slots[at],
              sizeof(typename F::Slot));
}

// Judges until the end, until it is stuck, or until the other half is the one that is partly split.
template <class F, class Lies, class Even, class Odd>
HWY_NOINLINE std::size_t observe_run(GrowingTable& table, const Digest* digests, std::size_t count,
                                     Verdict* verdicts, bool& stuck) {
  using Ring = GrowingRing<F>;
  Even evens(table.halves[0]);
  Odd odds(table.halves[1]);
  Ring ring;
  alignas(64) std::byte unused[kGrowingBucketBytes];  // where the slot of a duplicate is written
  const std::size_t turn = table.next();
  const auto look_up = [&](std::size_t from, std::size_t until) HWY_ATTR {
    for (std::size_t i = from; i < std::min(until, count); ++i) {
      const std::size_t at = i % Ring::kKeys;
      ring.put(at, evens, odds, digests[i]);
      __builtin_prefetch(ring.lines[at], 1, kIntoSecondLevel);
      __builtin_prefetch(ring.lines[at + Ring::kKeys], 1, kIntoSecondLevel);
    }
  };
  look_up(0, kPrefetchDistance);
  ring.clear(turn);
  std::uint64_t room = table.room();
  for (std::size_t i = 0; i < count;) {
    const std::size_t at = i % Ring::kKeys;
    const GrowingMatch one = probe<F>(ring.lines[at], ring.slots[at]);
    const GrowingMatch two = probe<F>(ring.lines[at + Ring::kKeys], ring.slots[at + Ring::kKeys]);
    std::uint64_t duplicate = (one.match | two.match) != 0;
    if (HWY_UNLIKELY(table.stray_count != 0))
      duplicate |= std::uint64_t{is_stray(table, trace_of(F::kShape, digests[i]))};
    verdicts[i] = static_cast<Verdict>(duplicate);
    // The emptier takes the key: all ones where that is the second. Neither this nor the verdict is
    // branched on: both are as good as random.
    const auto to_second = static_cast<std::uint64_t>(
        (__builtin_popcount(one.free) - __builtin_popcount(two.free)) >> 31);
    const std::uint64_t free =
        choose(to_second, two.free, one.free) & (std::uint64_t{0} - (room != 0));
    if (HWY_LIKELY((free | duplicate) != 0)) {
      const std::size_t chosen = at + (to_second & Ring::kKeys);
      write<F>(ring, chosen, free, duplicate, unused);
      room -= duplicate ^ 1;
      table.by_bits[ring.levels[chosen] + F::kShape.hash_bits()] += duplicate ^ 1;
    } else {
      table.entries += table.room() - room;
      stuck = room != 0 ? !growing_place_crowded(table, trace_of(F::kShape, digests[i]))
                        : !table.can_split();
      if (stuck) return i;
      if (room == 0) {
        const std::byte* const source = Lies::at(table.halves[turn], table.halves[turn].split);
        split_one<F, Lies>(table);
        if (table.next() != turn) return i;
        evens = Even(table.halves[0]);
        odds = Odd(table.halves[1]);
        room = table.room();
        if (HWY_UNLIKELY(ring.has(turn, source, count))) look_up(i, i + kPrefetchDistance);
        continue;  // again, where it goes now
      }
      room = table.room();
    }
    if (i + kPrefetchDistance < count) {
      const std::size_t next = (i + kPrefetchDistance) % Ring::kKeys;
      ring.put(next, evens, odds, digests[i + kPrefetchDistance]);
      __builtin_prefetch(ring.lines[next], 1, kIntoSecondLevel);
      __builtin_prefetch(ring.lines[next + Ring::kKeys], 1, kIntoSecondLevel);
    }
    ++i;
  }
  table.entries += table.room() - room;
  return count;
}

template <class F, class Lies>
HWY_INLINE std::size_t observe_all(GrowingTable& table, const Digest* digests, std::size_t count,
                                   Verdict* verdicts) {
  std::size_t done = 0;
  for (bool stuck = false; done < count && !stuck;) {
    using Partial = typename Lies::Partial;
    using Whole = typename Lies::Whole;
    const auto run = table.next() == 0 ? observe_run<F, Lies, Partial, Whole>
                                       : observe_run<F, Lies, Whole, Partial>;
    done += run(table, digests + done, count - done, verdicts + done, stuck);
  }
  table.lines_touched += 2 * done;
  return done;
}

std::size_t observe(GrowingTable& table, const Digest* digests, std::size_t count,
                    Verdict* verdicts) {
  return with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    if (HWY_UNLIKELY(bool{table.halves[0].pages}))
      return observe_all<F, GrowingPaged<true>>(table, digests, count, verdicts);
    return observe_all<F, GrowingFlat>(table, digests, count, verdicts);
  });
}

template <class F, class Even, class Odd>
HWY_NOINLINE void ask_run(const GrowingTable& table, const Digest* digests, std::size_t count,
                          Verdict* verdicts) {
  using Ring = GrowingRing<F>;
  const Even evens(table.halves[0]);
  const Odd odds(table.halves[1]);
  Ring ring;
  const std::size_t ahead = std::min(count, kPrefetchDistance);
  // The first rounds only look up.
  for (std::size_t round = 0; round < count + ahead; ++round) {
    if (round < count) {
      const std::size_t at = round % Ring::kKeys;
      ring.put(at, evens, odds, digests[round]);
      __builtin_prefetch(ring.lines[at], 0, kIntoSecondLevel);
      __builtin_prefetch(ring.lines[at + Ring::kKeys], 0, kIntoSecondLevel);
    }
    if (round < ahead) continue;
    const std::size_t i = round - ahead, at = i % Ring::kKeys;
    const std::uint32_t match =
        probe<F>(ring.lines[at], ring.slots[at]).match |
        probe<F>(ring.lines[at + Ring::kKeys], ring.slots[at + Ring::kKeys]).match;
    verdicts[i] =
        static_cast<Verdict>(match != 0 || is_stray(table, trace_of(F::kShape, digests[i])));
  }
}

template <class F, class Lies>
HWY_INLINE void ask_all(const GrowingTable& table, const Digest* digests, std::size_t count,
                        Verdict* verdicts) {
  using Partial = typename Lies::Partial;
  using Whole = typename Lies::Whole;
  const auto run = table.next() == 0 ? ask_run<F, Partial, Whole> : ask_run<F, Whole, Partial>;
  run(table, digests, count, verdicts);
}

void ask(const GrowingTable& table, const Digest* digests, std::size_t count, Verdict* verdicts) {
  with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    if (HWY_UNLIKELY(bool{table.halves[0].pages}))
      return ask_all<F, GrowingPaged<false>>(table, digests, count, verdicts);
    return ask_all<F, GrowingFlat>(table, digests, count, verdicts);
  });
}

void split(GrowingTable& table) {
  with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    if (table.halves[0].pages) return split_one<F, GrowingPaged<true>>(table);
    return split_one<F, GrowingFlat>(table);
  });
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {

HWY_EXPORT(observe);
HWY_EXPORT(ask);
HWY_EXPORT(split);

std::size_t growing_observe(GrowingTable& table, const Digest* digests, std::size_t count,
                            Verdict* verdicts) noexcept {
  return HWY_DYNAMIC_DISPATCH(observe)(table, digests, count, verdicts);
}

void growing_may_contain(const GrowingTable& table, const Digest* digests, std::size_t count,
                         Verdict* verdicts) noexcept {
  HWY_DYNAMIC_DISPATCH(ask)(table, digests, count, verdicts);
}

void growing_split(GrowingTable& table) noexcept {
  HWY_DYNAMIC_DISPATCH(split)(table);
}

}  // namespace sluice::kernels
#endif  // HWY_ONCE
