#include "sluice/kernels/cohort.hpp"

// clang-format off
#include "sluice/kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/cohort.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <type_traits>

#include "sluice/kernels/prefetch.hpp"

#ifndef SLUICE_KERNELS_COHORT_FORMATS
#define SLUICE_KERNELS_COHORT_FORMATS
namespace sluice::kernels {

// A slot's two planes. `Lower` is void where the whole slot is one element.
template <class Lower_, class Upper_, unsigned kSlots_, unsigned kUpperByte_>
struct CohortFormat {
  using Lower = Lower_;
  using Upper = Upper_;
  static constexpr bool kPlanes = !std::is_void_v<Lower>;
  static constexpr unsigned kSlots = kSlots_;
  static constexpr unsigned kUpperByte = kUpperByte_;
  static constexpr unsigned kUpperBits = 8 * sizeof(Upper);
  static constexpr unsigned kLowerBits = [] {
    if constexpr (kPlanes) return 8u * unsigned{sizeof(Lower)};
    return 0u;
  }();
  static constexpr std::uint32_t kAll =
      static_cast<std::uint32_t>((std::uint64_t{1} << kSlots) - 1);
};
using Format16 = CohortFormat<void, std::uint16_t, 32, 0>;
using Format24 = CohortFormat<std::uint16_t, std::uint8_t, 21, 42>;
using Format32 = CohortFormat<void, std::uint32_t, 16, 0>;
using Format40 = CohortFormat<std::uint32_t, std::uint8_t, 12, 48>;
using Format48 = CohortFormat<std::uint32_t, std::uint16_t, 10, 40>;

// The upper element of a slot: generation above, the top of the fingerprint below.
template <class F>
constexpr auto upper_of(const CohortTable& table, std::uint64_t fingerprint,
                        unsigned generation) noexcept {
  using Upper = typename F::Upper;
  return static_cast<Upper>(generation << (F::kUpperBits - table.generation_bits) |
                            static_cast<std::uint32_t>(fingerprint >> F::kLowerBits));
}

template <class F>
inline void put(const CohortTable& table, std::byte* line, std::size_t slot,
                std::uint64_t fingerprint, unsigned generation) noexcept {
  if constexpr (F::kPlanes) {
    const auto lower = static_cast<typename F::Lower>(fingerprint);
    std::memcpy(line + slot * sizeof(lower), &lower, sizeof(lower));
  }
  const auto upper = upper_of<F>(table, fingerprint, generation);
  std::memcpy(line + F::kUpperByte + slot * sizeof(upper), &upper, sizeof(upper));
}

template <class F>
inline CohortSlot get(const CohortTable& table, const std::byte* line, unsigned slot) noexcept {
  typename F::Upper upper;
  std::memcpy(&upper, line + F::kUpperByte + slot * sizeof(upper), sizeof(upper));
  const unsigned shift = F::kUpperBits - table.generation_bits;
  std::uint64_t fingerprint = upper & ((std::uint64_t{1} << shift) - 1);
  if constexpr (F::kPlanes) {
    typename F::Lower lower;
    std::memcpy(&lower, line + slot * sizeof(lower), sizeof(lower));
    fingerprint = fingerprint << F::kLowerBits | lower;
  }
  return {fingerprint, static_cast<unsigned>(upper >> shift)};
}

// Calls run(format) with the format of the table.
template <class Run>
inline auto with_format(const CohortTable& table, Run run) {
  switch (table.slot_bits) {
    case 16:
      return run(Format16());
    case 24:
      return run(Format24());
    case 32:
      return run(Format32());
    case 40:
      return run(Format40());
    default:
      return run(Format48());
  }
}

// What two buckets say together. Slot i of the first is bit i + kFreeBit of `free`, of the second
// kApart bits above it.
struct CohortPair {
  bool match;
  std::uint64_t free;
};

inline bool is_stray(const CohortTable& table, const CohortBatch& batch, const std::byte* first,
                     std::uint64_t fingerprint) noexcept {
  for (std::size_t i = 0; i < batch.stray_count; ++i)
    if (line_of(table, batch.strays[i].bucket) == first &&
        batch.strays[i].fingerprint == fingerprint)
      return true;
  return false;
}

}  // namespace sluice::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What every probe of a batch shares. An upper element is generation · 2^shift + top of the
// fingerprint, so with all ones below, `now − element` is age · 2^shift + something smaller: no
// masking is needed to compare ages.
template <class F>
struct Ages {
  using Upper = typename F::Upper;
  explicit Ages(const CohortTable& table) {
    const unsigned shift = F::kUpperBits - table.generation_bits;
    const std::uint32_t below = (1u << shift) - 1;
    now = static_cast<Upper>(table.now << shift | below);
    limit = static_cast<Upper>(table.live << shift | below);
    end = static_cast<Upper>(limit + 1);
    generation = static_cast<Upper>(table.generation_mask() << shift);
    dead = static_cast<Upper>(((table.now - table.live - 1) & table.generation_mask()) << shift);
  }
  Upper now, limit, end, generation, dead;
};

#if SLUICE_PORTABLE_TARGET

template <class F>
CohortMatch probe(const CohortTable& table, const Ages<F>&, const std::byte* line,
                  std::uint64_t fingerprint) {
  CohortMatch found{0, 0};
  for (unsigned slot = 0; slot < F::kSlots; ++slot) {
    const CohortSlot held = get<F>(table, line, slot);
    const bool free = ((table.now - held.generation) & table.generation_mask()) > table.live;
    found.free |= std::uint32_t{free} << slot;
    found.match |= std::uint32_t{!free && held.fingerprint == fingerprint} << slot;
  }
  return found;
}

template <class F>
void sweep_line(const CohortTable& table, const Ages<F>& ages, std::byte* line) {
  const std::uint32_t free = probe<F>(table, ages, line, 0).free;
  const unsigned dead = (table.now - table.live - 1) & table.generation_mask();
  for (unsigned slot = 0; slot < F::kSlots; ++slot)
    if ((free >> slot & 1) != 0)
      put<F>(table, line, slot, get<F>(table, line, slot).fingerprint, dead);
}

template <class F>
CohortPair probe_pair(const CohortTable& table, const Ages<F>& ages, const std::byte* first,
                      const std::byte* second, std::uint64_t fingerprint) {
  const CohortMatch one = probe<F>(table, ages, first, fingerprint);
  const CohortMatch two = probe<F>(table, ages, second, fingerprint);
  return {(one.match | two.match) != 0, one.free | std::uint64_t{two.free} << 32};
}

template <class F>
constexpr unsigned kFreeBit = 0;
template <class F>
constexpr unsigned kApart = 32;

#else

template <class D>
HWY_INLINE std::uint64_t bits_of(D d, hn::Mask<D> mask) {
  constexpr std::size_t kBytes = (hn::MaxLanes(D()) + 7) / 8;
  std::uint8_t bytes[8];
  hn::StoreMaskBits(d, mask, bytes);
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, kBytes);
  return bits;
}

// Bits, one an element, where test(vector) holds over the elements of type T in bytes [kFrom,
// kUntil) of a line; element 0 is the one at kFrom. Only the vectors that overlap the range are
// read.
template <class T, unsigned kFrom, unsigned kUntil, class Test>
HWY_INLINE std::uint64_t scan(const std::byte* line, Test test) {
  using D = hn::CappedTag<T, kBucketBytes / sizeof(T)>;
  constexpr std::size_t kVectorBytes = hn::MaxLanes(D()) * sizeof(T);
  std::uint64_t bits = 0;
  for (std::size_t at = 0; at < kBucketBytes; at += kVectorBytes) {
    if (at + kVectorBytes <= kFrom || at >= kUntil) continue;
    const auto vector = hn::Load(D(), reinterpret_cast<const T*>(line + at));
    bits |= bits_of(D(), test(D(), vector)) << (at / sizeof(T));
  }
  return bits >> (kFrom / sizeof(T));
}

template <class F>
HWY_INLINE CohortMatch probe(const CohortTable& table, const Ages<F>& ages, const std::byte* line,
                             std::uint64_t fingerprint) {
  using Upper = typename F::Upper;
  constexpr unsigned kUpperUntil = F::kUpperByte + F::kSlots * sizeof(Upper);
  const auto upper = upper_of<F>(table, fingerprint, 0);
  const auto free =
      F::kAll & scan<Upper, F::kUpperByte, kUpperUntil>(line, [&](auto d, auto v) HWY_ATTR {
        return hn::Gt(hn::Sub(hn::Set(d, ages.now), v), hn::Set(d, ages.limit));
      });
  auto match = ~free & scan<Upper, F::kUpperByte, kUpperUntil>(line, [&](auto d, auto v) HWY_ATTR {
    return hn::Eq(hn::AndNot(hn::Set(d, ages.generation), v), hn::Set(d, upper));
  });
  if constexpr (F::kPlanes) {
    using Lower = typename F::Lower;
    match &= scan<Lower, 0, F::kSlots * sizeof(Lower)>(line, [&](auto d, auto v) HWY_ATTR {
      return hn::Eq(v, hn::Set(d, static_cast<Lower>(fingerprint)));
    });
  }
  // Elements behind the last slot are never written and never match: nothing more to mask where the
  // planes fill their vectors.
  return {static_cast<std::uint32_t>(match) & F::kAll, static_cast<std::uint32_t>(free)};
}

// Whether a vector is a whole line, and the format has an upper plane in its second half.
template <class F>
constexpr bool kSharedVector =
    F::kPlanes&& hn::MaxLanes(hn::CappedTag<std::uint8_t, 64>()) == kBucketBytes;
template <class F>
constexpr unsigned kFreeBit = kSharedVector<F>
                                  ? (F::kUpperByte - kBucketBytes / 2) / sizeof(typename F::Upper)
                                  : 0;
template <class F>
constexpr unsigned kApart = kSharedVector<F> ? kBucketBytes / 2 / sizeof(typename F::Upper) : 32;

// Both candidate buckets at once. Where a vector is a whole line, the upper planes of two-plane
// formats, which lie in the lines' second halves, share one.
template <class F>
HWY_INLINE CohortPair probe_pair(const CohortTable& table, const Ages<F>& ages,
                                 const std::byte* first, const std::byte* second,
                                 std::uint64_t fingerprint) {
  using Upper = typename F::Upper;
  using D = hn::CappedTag<Upper, kBucketBytes / sizeof(Upper)>;
  if constexpr (kSharedVector<F>) {
    using Lower = typename F::Lower;
    constexpr unsigned kHalf = kBucketBytes / 2;
    static_assert(F::kUpperByte >= kHalf);
    constexpr std::uint64_t kSlots =
        (std::uint64_t{F::kAll} | std::uint64_t{F::kAll} << kApart<F>) << kFreeBit<F>;
    const D d;
    const hn::Half<D> half;
    const auto load = [&](const std::byte* line) HWY_ATTR {
      return hn::Load(half, reinterpret_cast<const Upper*>(line + kHalf));
    };
    const auto uppers = hn::Combine(d, load(second), load(first));
    const auto live = hn::Gt(hn::Set(d, ages.end), hn::Sub(hn::Set(d, ages.now), uppers));
    const auto equal = hn::Eq(hn::AndNot(hn::Set(d, ages.generation), uppers),
                              hn::Set(d, upper_of<F>(table, fingerprint, 0)));
    const auto lower = [&](const std::byte* line) HWY_ATTR {
      return scan<Lower, 0, F::kSlots * sizeof(Lower)>(line, [&](auto dl, auto v) HWY_ATTR {
        return hn::Eq(v, hn::Set(dl, static_cast<Lower>(fingerprint)));
      });
    };
    const std::uint64_t lowers = (lower(first) | lower(second) << kApart<F>) << kFreeBit<F>;
    const std::uint64_t match = kSlots & lowers & bits_of(d, hn::And(live, equal));
    return {match != 0, kSlots & ~bits_of(d, live)};
  } else {
    const CohortMatch one = probe<F>(table, ages, first, fingerprint);
    const CohortMatch two = probe<F>(table, ages, second, fingerprint);
    return {(one.match | two.match) != 0, one.free | std::uint64_t{two.free} << 32};
  }
}

template <class F>
HWY_INLINE void sweep_line(const CohortTable&, const Ages<F>& ages, std::byte* line) {
  using Upper = typename F::Upper;
  using D = hn::CappedTag<Upper, kBucketBytes / sizeof(Upper)>;
  constexpr std::size_t kVectorBytes = hn::MaxLanes(D()) * sizeof(Upper);
  // Elements before the plane belong to the lower one and stay as they are.
  constexpr std::size_t kFirst = F::kUpperByte / kVectorBytes * kVectorBytes;
  for (std::size_t at = kFirst; at < kBucketBytes; at += kVectorBytes) {
    auto* elements = reinterpret_cast<Upper*>(line + at);
    const auto v = hn::Load(D(), elements);
    const auto generation = hn::Set(D(), ages.generation);
    const auto age = hn::Sub(hn::Set(D(), ages.now), v);
    auto swept = hn::IfThenElse(hn::Gt(age, hn::Set(D(), ages.limit)),
                                hn::Or(hn::AndNot(generation, v), hn::Set(D(), ages.dead)), v);
    if (at < F::kUpperByte) {
      const std::size_t skip = (F::kUpperByte - at) / sizeof(Upper);
      swept = hn::IfThenElse(hn::FirstN(D(), skip), v, swept);
    }
    // Nor are those behind the last slot touched: every level leaves the same bytes.
    constexpr std::size_t kUntil = F::kUpperByte + F::kSlots * sizeof(Upper);
    if (at + kVectorBytes > kUntil)
      swept = hn::IfThenElse(hn::FirstN(D(), (kUntil - at) / sizeof(Upper)), swept, v);
    hn::Store(swept, D(), elements);
  }
}

#endif

// Where a key's two buckets lie, and what is kept of it.
struct Lines {
  std::byte* first;
  std::byte* second;
  std::uint64_t fingerprint;
};

// The lines of keys, computed a group of keys at a time and, where `kFetch`, asked for so far ahead
// that they are near when they are needed.
template <bool kFetch>
class Places {
 public:
  static constexpr std::size_t kGroup = 8;

  // `spare` is a line that may be touched in place of any other.
  HWY_INLINE Places(const CohortTable& table, const Digest* digests, std::size_t count,
                    std::byte* spare)
      : digests_(digests), count_(count), spare_(reinterpret_cast<std::uintptr_t>(spare)) {
    for (std::size_t i = 0; i < kRing; ++i) rows_[2][i] = rows_[3][i] = spare_;
    for (std::size_t i = 0; i < kAhead; i += kGroup) {
      fetch(table, i);
      if constexpr (kFetch)
        for (std::size_t j = i; j < i + kGroup; ++j) {
          __builtin_prefetch(reinterpret_cast<const void*>(rows_[0][j]), 0, kPrefetchLocality);
          __builtin_prefetch(reinterpret_cast<const void*>(rows_[1][j]), 0, kPrefetchLocality);
        }
    }
  }
  // For i = 0, 8, 16 and so on, before the keys from i on are asked for.
  HWY_INLINE void start_group(const CohortTable& table, std::size_t i) {
    fetch(table, i + kAhead);
    at_ = i % kRing;
    next_at_ = (i + kAhead) % kRing;
  }
  // Key j of the group.
  HWY_INLINE Lines get(std::size_t j) const {
    if constexpr (kFetch) {
      __builtin_prefetch(reinterpret_cast<const void*>(rows_[0][next_at_ + j]), 0,
                         kPrefetchLocality);
      __builtin_prefetch(reinterpret_cast<const void*>(rows_[1][next_at_ + j]), 0,
                         kPrefetchLocality);
    }
    return {reinterpret_cast<std::byte*>(rows_[0][at_ + j]),
            reinterpret_cast<std::byte*>(rows_[1][at_ + j]), fingerprint_[at_ + j]};
  }
  // Its first line, its second, or, where `which` is 2 or 3, the spare one.
  HWY_INLINE std::byte* line(std::size_t j, std::size_t which) const {
    return reinterpret_cast<std::byte*>(rows_[which][at_ + j]);
  }

 private:
  static constexpr std::size_t kAhead = kFetch ? kPrefetchDistance : kGroup;
  static constexpr std::size_t kRing = 32;
  static_assert(kAhead % kGroup == 0 && kAhead + kGroup <= kRing);

  HWY_INLINE void fetch(const CohortTable& table, std::size_t i) {
    const std::size_t at = i % kRing;
    if (HWY_LIKELY(!SLUICE_PORTABLE_TARGET && i + kGroup <= count_ &&
                   table.buckets < kFewBuckets)) {
      compute_group(table, digests_ + i, at);
      return;
    }
    for (std::size_t j = 0; j < kGroup; ++j) {
      rows_[0][at + j] = rows_[1][at + j] = spare_;
      if (i + j >= count_) continue;
      const CohortPlace place = place_of(table, digests_[i + j]);
      rows_[0][at + j] = reinterpret_cast<std::uintptr_t>(line_of(table, place.first));
      rows_[1][at + j] = reinterpret_cast<std::uintptr_t>(line_of(table, place.second));
      fingerprint_[at + j] = place.fingerprint;
    }
  }

  // Below this, bucket numbers and the differences of two fit in 32 bits.
  static constexpr std::uint64_t kFewBuckets = std::uint64_t{1} << 31;

#if SLUICE_PORTABLE_TARGET
  void compute_group(const CohortTable&, const Digest*, std::size_t) {}
#else
  using D = hn::CappedTag<std::uint64_t, kGroup>;
  using V = hn::Vec<D>;

  // Products of the low halves of 64-bit lanes.
  static HWY_INLINE V multiply(V a, V b) {
    const hn::Repartition<std::uint32_t, D> d32;
    return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
  }
  // scale_to(word, n) for n below 2^32.
  static HWY_INLINE V scale(V word, V n) {
    const V low = hn::ShiftRight<32>(multiply(word, n));
    return hn::ShiftRight<32>(hn::Add(multiply(hn::ShiftRight<32>(word), n), low));
  }
  // place_of for a group, in the same arithmetic.
  HWY_INLINE void compute_group(const CohortTable& table, const Digest* digests, std::size_t at) {
    const D d;
    const hn::Repartition<std::uint32_t, D> d32;
    static_assert(sizeof(Digest) == 16);
    const V buckets = hn::Set(d, table.buckets);
    const V base = hn::Set(d, reinterpret_cast<std::uintptr_t>(table.lines));
    const V factor = hn::Set(d, kSecondBucketFactor);
    const V factor_high = hn::ShiftRight<32>(factor);
    for (std::size_t j = 0; j < kGroup; j += hn::Lanes(d)) {
      V low, high;
      hn::LoadInterleaved2(d, &digests[j].lo, low, high);
      const V fingerprint =
          hn::ShiftRightSame(high, static_cast<int>(64 - table.fingerprint_bits()));
      const V first = scale(low, buckets);
      const V number = hn::Add(fingerprint, hn::Set(d, 1));
      const V crossed =
          hn::Add(multiply(number, factor_high), multiply(hn::ShiftRight<32>(number), factor));
      const V offset =
          scale(hn::Add(multiply(number, factor), hn::ShiftLeft<32>(crossed)), buckets);
      // offset − first, plus the number of buckets where that wraps: the smaller of the two.
      const auto apart = hn::BitCast(d32, hn::Sub(offset, first));
      const auto wrapped = hn::Add(apart, hn::BitCast(d32, buckets));
      const V second = hn::And(hn::BitCast(d, hn::Min(apart, wrapped)), hn::Set(d, 0xFFFFFFFF));
      hn::Store(hn::Add(base, hn::ShiftLeft<6>(first)), d, rows_[0] + at + j);
      hn::Store(hn::Add(base, hn::ShiftLeft<6>(second)), d, rows_[1] + at + j);
      hn::Store(fingerprint, d, fingerprint_ + at + j);
    }
  }
#endif

  const Digest* digests_;
  std::size_t count_;
  std::uintptr_t spare_;
  std::size_t at_ = 0, next_at_ = 0;
  // One array a member: read back in the pieces that the store buffer can forward.
  alignas(64) std::uint64_t rows_[4][kRing], fingerprint_[kRing];
};

// Calls each(places, i, j) for all keys in order, i being the number of a key and j its place in
// its group, until that returns false. Returns the number of the key where it did, or `count`.
template <bool kFetch, class Each>
HWY_INLINE std::size_t for_each(const CohortTable& table, const Digest* digests, std::size_t count,
                                Each each) {
  alignas(64) std::byte spare[kBucketBytes];
  using P = Places<kFetch>;
  P places(table, digests, count, spare);
  std::size_t i = 0;
  for (; i + P::kGroup <= count; i += P::kGroup) {
    places.start_group(table, i);
    HWY_UNROLL(8)
    for (std::size_t j = 0; j < P::kGroup; ++j)
      if (HWY_UNLIKELY(!each(places, i + j, j))) return i + j;
  }
  places.start_group(table, i);
  for (std::size_t j = 0; i + j < count; ++j)
    if (HWY_UNLIKELY(!each(places, i + j, j))) return i + j;
  return count;
}

template <class F>
HWY_INLINE void refresh_slot(const CohortTable& table, const Ages<F>& ages, const Lines& place,
                             std::uint64_t* refreshed_from) {
  std::byte* line = place.first;
  std::uint32_t match = probe<F>(table, ages, line, place.fingerprint).match;
  if (match == 0) {
    line = place.second;
    match = probe<F>(table, ages, line, place.fingerprint).match;
  }
  const auto slot = static_cast<unsigned>(__builtin_ctz(match));
  ++refreshed_from[get<F>(table, line, slot).generation];
  put<F>(table, line, slot, place.fingerprint, table.now);
}

// kGeneral: with strays or refresh; without, the loop has no branch that depends on the keys. The
// budget is not looked at. Stops before a distinct key for which there is no room.
template <class F, bool kGeneral, bool kFetch>
HWY_NOINLINE std::size_t admit_run(const CohortTable& given, const CohortBatch& batch,
                                   const Digest* digests, Verdict* verdicts, std::size_t count) {
  // A copy that nothing else can point at stays in registers while slots are written.
  const CohortTable table = given;
  const Ages<F> ages(table);
  constexpr std::uint64_t kSlots = std::uint64_t{F::kAll} << kFreeBit<F>;
  constexpr std::uint64_t kLastSlot = std::uint64_t{1} << (F::kSlots - 1 + kFreeBit<F>);
  return for_each<kFetch>(
      table, digests, count, [&](const auto& places, std::size_t i, std::size_t j) HWY_ATTR {
        const Lines place = places.get(j);
        const CohortPair pair =
            probe_pair<F>(table, ages, place.first, place.second, place.fingerprint);
        bool duplicate = pair.match;
        if (kGeneral) {
          if (!duplicate && is_stray(table, batch, place.first, place.fingerprint)) {
            if (batch.refresh) return false;
            duplicate = true;
          } else if (duplicate && batch.refresh) {
            refresh_slot<F>(table, ages, place, batch.refreshed_from);
          }
        }
        // The emptier bucket takes the key.
        const std::size_t to_second =
            __builtin_popcountll(pair.free & kSlots) < __builtin_popcountll(pair.free >> kApart<F>);
        const std::uint64_t free = pair.free >> (kApart<F> * to_second) & kSlots;
        if (HWY_UNLIKELY((free | std::uint64_t{duplicate}) == 0)) return false;
        std::byte* const line = places.line(j, to_second + 2 * std::size_t{duplicate});
        const auto slot = static_cast<std::size_t>(__builtin_ctzll(free | kLastSlot)) - kFreeBit<F>;
        put<F>(table, line, slot, place.fingerprint, table.now);
        verdicts[i] = static_cast<Verdict>(duplicate);
        return true;
      });
}

// A key takes at most one from the budget, so as many keys as there is budget need no watching.
template <class F, bool kGeneral>
HWY_INLINE std::size_t admit_all(const CohortTable& table, CohortBatch& batch) {
  const auto run = table.buckets * kBucketBytes >= kPrefetchFromBytes
                       ? admit_run<F, kGeneral, true>
                       : admit_run<F, kGeneral, false>;
  std::size_t judged = 0;
  while (judged < batch.count && batch.written < batch.budget) {
    const std::size_t count = static_cast<std::size_t>(
        std::min<std::uint64_t>(batch.count - judged, batch.budget - batch.written));
    Verdict* const verdicts = batch.verdicts + judged;
    const std::size_t done = run(table, batch, batch.digests + judged, verdicts, count);
    batch.written +=
        static_cast<std::uint64_t>(std::count(verdicts, verdicts + done, Verdict::distinct));
    judged += done;
    if (done < count) break;
  }
  return judged;
}

std::size_t admit(const CohortTable& table, CohortBatch& batch) {
  return with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    return batch.refresh || batch.stray_count != 0 ? admit_all<F, true>(table, batch)
                                                   : admit_all<F, false>(table, batch);
  });
}

template <class F>
HWY_NOINLINE void ask_all(const CohortTable& given, const CohortBatch& batch) {
  const CohortTable table = given;
  const Ages<F> ages(table);
  for_each<true>(
      table, batch.digests, batch.count,
      [&](const auto& places, std::size_t i, std::size_t j) HWY_ATTR {
        const Lines place = places.get(j);
        const bool match =
            probe_pair<F>(table, ages, place.first, place.second, place.fingerprint).match;
        batch.verdicts[i] =
            static_cast<Verdict>(match || is_stray(table, batch, place.first, place.fingerprint));
        return true;
      });
}

void ask(const CohortTable& table, const CohortBatch& batch) {
  with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    ask_all<F>(table, batch);
  });
}

template <class F>
HWY_INLINE unsigned youngest(const CohortTable& table, const Ages<F>& ages, const std::byte* line,
                             std::uint64_t fingerprint) {
  unsigned age = kNoAge;
  for (std::uint32_t match = probe<F>(table, ages, line, fingerprint).match; match != 0;
       match &= match - 1) {
    const auto slot = static_cast<unsigned>(__builtin_ctz(match));
    const unsigned generation = get<F>(table, line, slot).generation;
    age = std::min(age, (table.now - generation) & table.generation_mask());
  }
  return age;
}

// Nearly every key that is asked for has one slot, in its first bucket or in its second: a choice
// without a branch. Several slots, or none, are looked at one by one.
template <class F>
HWY_NOINLINE void ages_of(const CohortTable& given, const Digest* digests, std::size_t count,
                          std::uint8_t* found) {
  const CohortTable table = given;
  const Ages<F> shared(table);
  for_each<true>(
      table, digests, count, [&](const auto& places, std::size_t i, std::size_t j) HWY_ATTR {
        const auto [first, second, fingerprint] = places.get(j);
        const std::uint64_t one = probe<F>(table, shared, first, fingerprint).match;
        const std::uint64_t two = probe<F>(table, shared, second, fingerprint).match;
        const std::uint64_t both = one | two << 32;
        if (HWY_UNLIKELY(both == 0 || (both & (both - 1)) != 0)) {
          found[i] =
              static_cast<std::uint8_t>(std::min(youngest<F>(table, shared, first, fingerprint),
                                                 youngest<F>(table, shared, second, fingerprint)));
          return true;
        }
        const std::byte* line = places.line(j, one == 0);
        const auto slot = static_cast<unsigned>(__builtin_ctzll(one | two));
        found[i] = static_cast<std::uint8_t>((table.now - get<F>(table, line, slot).generation) &
                                             table.generation_mask());
        return true;
      });
}

void ages(const CohortTable& table, const Digest* digests, std::size_t count, std::uint8_t* found) {
  with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    ages_of<F>(table, digests, count, found);
  });
}

void sweep(const CohortTable& table, std::uint64_t bucket, std::uint64_t count) {
  with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    const Ages<F> ages(table);
    for (std::uint64_t i = 0; i < count; ++i)
      sweep_line<F>(table, ages, line_of(table, bucket + i));
  });
}

CohortMatch probe_one(const CohortTable& table, std::uint64_t bucket, std::uint64_t fingerprint) {
  return with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    return probe<F>(table, Ages<F>(table), line_of(table, bucket), fingerprint);
  });
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {

HWY_EXPORT(admit);
HWY_EXPORT(ask);
HWY_EXPORT(ages);
HWY_EXPORT(sweep);
HWY_EXPORT(probe_one);

std::size_t cohort_admit(const CohortTable& table, CohortBatch& batch) noexcept {
  return HWY_DYNAMIC_DISPATCH(admit)(table, batch);
}

void cohort_may_contain(const CohortTable& table, const CohortBatch& batch) noexcept {
  HWY_DYNAMIC_DISPATCH(ask)(table, batch);
}

void cohort_ages(const CohortTable& table, const Digest* digests, std::size_t count,
                 std::uint8_t* found) noexcept {
  HWY_DYNAMIC_DISPATCH(ages)(table, digests, count, found);
}

void cohort_sweep(const CohortTable& table, std::uint64_t bucket, std::uint64_t count) noexcept {
  HWY_DYNAMIC_DISPATCH(sweep)(table, bucket, count);
}

CohortMatch cohort_probe(const CohortTable& table, std::uint64_t bucket,
                         std::uint64_t fingerprint) noexcept {
  return HWY_DYNAMIC_DISPATCH(probe_one)(table, bucket, fingerprint);
}

CohortSlot cohort_get(const CohortTable& table, std::uint64_t bucket, unsigned slot) noexcept {
  return with_format(table, [&](auto format) {
    return get<decltype(format)>(table, line_of(table, bucket), slot);
  });
}

void cohort_put(const CohortTable& table, std::uint64_t bucket, unsigned slot,
                const CohortSlot& value) noexcept {
  with_format(table, [&](auto format) {
    put<decltype(format)>(table, line_of(table, bucket), slot, value.fingerprint, value.generation);
  });
}

}  // namespace sluice::kernels
#endif  // HWY_ONCE
