#include "sluice/kernels/growing.hpp"

// clang-format off
#include "sluice/kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/growing.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <cstring>

#include "sluice/kernels/prefetch.hpp"

#ifndef SLUICE_KERNELS_GROWING_FORMATS
#define SLUICE_KERNELS_GROWING_FORMATS
namespace sluice::kernels {

template <class Slot_, const GrowingShape& kShape_>
struct GrowingFormat {
  using Slot = Slot_;
  static constexpr const GrowingShape& kShape = kShape_;
  static constexpr unsigned kSlots = kShape.slots();
  static constexpr unsigned kTagBits = kShape.tag_bits;
  static constexpr Slot kTagMask = static_cast<Slot>((std::uint64_t{1} << kTagBits) - 1);
  static constexpr Slot kDelimiter = static_cast<Slot>(Slot{1} << (kShape.slot_bits - 1));
  static_assert(8 * sizeof(Slot) == kShape.slot_bits);
};

// Calls run(format) with the format of the table.
template <class Run>
inline auto with_format(const GrowingTable& table, Run run) {
  switch (table.shape.slot_bits) {
    case 16:
      return run(GrowingFormat<std::uint16_t, kGrowing16>());
    case 32:
      return run(GrowingFormat<std::uint32_t, kGrowing32>());
    default:
      return run(GrowingFormat<std::uint64_t, kGrowing64>());
  }
}

// Which slots of a bucket agree with a query, and which are free, as bits.
struct GrowingMatch {
  std::uint32_t match, free;
};

// What addresses depend on, apart from the table so that it stays in registers.
struct GrowingView {
  explicit GrowingView(const GrowingTable& table) noexcept
      : lines(table.lines),
        buckets(table.buckets),
        low_mask(table.low_mask()),
        split(table.split()),
        level(table.level) {}
  std::uint64_t bucket(std::uint64_t hash) const noexcept {
    const std::uint64_t far = hash & (2 * low_mask + 1), near = hash & low_mask;
    return far < buckets ? far : near;
  }
  std::byte* line(std::uint64_t hash) const noexcept {
    return lines + bucket(hash) * kGrowingBucketBytes;
  }
  std::byte* lines;
  std::uint64_t buckets, low_mask, split;
  unsigned level;
};

// One of a key's two places.
template <class F>
struct GrowingSide {
  GrowingSide(const GrowingView& view, std::uint64_t hash, std::uint64_t tag) noexcept
      : line(view.line(hash)),
        level(view.level + ((hash & view.low_mask) < view.split)),
        query(static_cast<typename F::Slot>(hash >> level << F::kTagBits | tag)) {}
  std::byte* line;
  unsigned level;
  typename F::Slot query;
};

inline bool is_stray(const GrowingTable& table, const GrowingTrace& key) noexcept {
  for (std::size_t i = 0; i < table.stray_count; ++i)
    if (covers(table.strays[i], key)) return true;
  return false;
}

}  // namespace sluice::kernels
#endif

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

template <class D>
HWY_INLINE std::uint32_t bits_of(D d, hn::Mask<D> mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(d, mask, bytes);
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes, (hn::MaxLanes(D()) + 7) / 8);
  return bits;
}

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
    found.match |= bits_of(d, hn::Gt(agree, hn::Sub(slot, one))) << at;
    found.free |= bits_of(d, hn::Eq(slot, hn::Zero(d))) << at;
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

template <class F>
HWY_INLINE void split_one(GrowingTable& table) {
  const std::uint64_t source = table.split(), target = table.buckets;
  const std::uint64_t both = split_line<F>(table.line(source), table.line(target));
  if (HWY_UNLIKELY(both != 0)) {
    table.by_bits[table.level] -= both;
    table.by_bits[table.level + 1] += 2 * both;
    table.entries += both;
  }
  table.set_buckets(target + 1);
  table.lines_touched += 2;
  if (HWY_UNLIKELY(table.stray_count != 0)) growing_settle(table);
}

// How far ahead of a split its lines are asked for, in splits. They are a dozen keys apart.
constexpr std::uint64_t kSplitsAhead = 3;

template <class F>
HWY_NOINLINE std::size_t observe_all(GrowingTable& table, const Digest* digests, std::size_t count,
                                     Verdict* verdicts) {
  GrowingView view(table);
  alignas(64) std::byte unused[kGrowingBucketBytes];  // where the slot of a duplicate is written
  const bool far = table.buckets * kGrowingBucketBytes >= kPrefetchFromBytes;
  const std::size_t ahead = far ? kPrefetchDistance : count;
  const auto hashes = [](const Digest& digest) { return trace_of(F::kShape, digest); };
  for (std::size_t i = 0; far && i < std::min(ahead, count); ++i) {
    const GrowingTrace key = hashes(digests[i]);
    __builtin_prefetch(view.line(key.hash), 1);
    __builtin_prefetch(view.line(key.hash ^ growing_mix(key.tag)), 1);
  }
  std::uint64_t entries = table.entries;
  std::size_t i = 0;
  for (; i < count; ++i) {
    if (i + ahead < count) {
      // A hint only: a split until then may change where it goes.
      const GrowingTrace next = hashes(digests[i + ahead]);
      __builtin_prefetch(view.line(next.hash), 1);
      __builtin_prefetch(view.line(next.hash ^ growing_mix(next.tag)), 1);
    }
    const GrowingTrace key = hashes(digests[i]);
    for (;;) {
      const GrowingSide<F> first(view, key.hash, key.tag);
      const GrowingSide<F> second(view, key.hash ^ growing_mix(key.tag), key.tag);
      const GrowingMatch one = probe<F>(first.line, first.query);
      const GrowingMatch two = probe<F>(second.line, second.query);
      bool duplicate = (one.match | two.match) != 0;
      if (HWY_UNLIKELY(table.stray_count != 0)) duplicate = duplicate || is_stray(table, key);
      verdicts[i] = static_cast<Verdict>(duplicate);
      const bool to_second = __builtin_popcount(two.free) > __builtin_popcount(one.free);
      const std::uint32_t free = to_second ? two.free : one.free;
      if (HWY_LIKELY(duplicate || (free != 0 && entries < table.limit))) {
        // No branch on the verdict, which is as good as random.
        const GrowingSide<F>& side = to_second ? second : first;
        std::byte* const line = duplicate ? unused : side.line;
        const auto slot = static_cast<typename F::Slot>(side.query | F::kDelimiter);
        const auto at = static_cast<std::size_t>(__builtin_ctz(free | 1u << (F::kSlots - 1)));
        std::memcpy(line + at * sizeof(slot), &slot, sizeof(slot));
        entries += !duplicate;
        table.by_bits[side.level + F::kShape.hash_bits()] += !duplicate;
        break;
      }
      table.entries = entries;
      if (entries < table.limit) {
        if (!growing_place(table, key)) goto stopped;
        entries = table.entries;
        break;
      }
      if (table.buckets == table.allocated) goto stopped;
      split_one<F>(table);
      __builtin_prefetch(table.line(table.split() + kSplitsAhead), 1);
      __builtin_prefetch(table.line(table.buckets + kSplitsAhead), 1);
      view = GrowingView(table);
      entries = table.entries;
    }
  }
stopped:
  table.entries = entries;
  table.lines_touched += 2 * i;
  return i;
}

std::size_t observe(GrowingTable& table, const Digest* digests, std::size_t count,
                    Verdict* verdicts) {
  return with_format(table, [&](auto format) HWY_ATTR {
    return observe_all<decltype(format)>(table, digests, count, verdicts);
  });
}

template <class F>
HWY_NOINLINE void ask_all(const GrowingTable& table, const Digest* digests, std::size_t count,
                          Verdict* verdicts) {
  const GrowingView view(table);
  const bool far = table.buckets * kGrowingBucketBytes >= kPrefetchFromBytes;
  const std::size_t ahead = far ? kPrefetchDistance : 0;
  // The first `ahead` rounds only prefetch.
  for (std::size_t round = 0; round < count + ahead; ++round) {
    if (far && round < count) {
      const GrowingTrace next = trace_of(F::kShape, digests[round]);
      __builtin_prefetch(view.line(next.hash), 0);
      __builtin_prefetch(view.line(next.hash ^ growing_mix(next.tag)), 0);
    }
    if (round < ahead) continue;
    const std::size_t i = round - ahead;
    const GrowingTrace key = trace_of(F::kShape, digests[i]);
    const GrowingSide<F> first(view, key.hash, key.tag);
    const GrowingSide<F> second(view, key.hash ^ growing_mix(key.tag), key.tag);
    const std::uint32_t match =
        probe<F>(first.line, first.query).match | probe<F>(second.line, second.query).match;
    verdicts[i] = static_cast<Verdict>(match != 0 || is_stray(table, key));
  }
}

void ask(const GrowingTable& table, const Digest* digests, std::size_t count, Verdict* verdicts) {
  with_format(table, [&](auto format)
                         HWY_ATTR { ask_all<decltype(format)>(table, digests, count, verdicts); });
}

void split(GrowingTable& table) {
  with_format(table, [&](auto format) HWY_ATTR { split_one<decltype(format)>(table); });
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
