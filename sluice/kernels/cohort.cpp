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
inline void put(const CohortTable& table, std::byte* line, unsigned slot, std::uint64_t fingerprint,
                unsigned generation) noexcept {
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

struct CohortPair {
  bool match;
  std::uint32_t free_first, free_second;
};

inline bool is_stray(const CohortBatch& batch, const CohortPlace& place) noexcept {
  for (std::size_t i = 0; i < batch.stray_count; ++i)
    if (batch.strays[i].bucket == place.first && batch.strays[i].fingerprint == place.fingerprint)
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
    generation = static_cast<Upper>(table.generation_mask() << shift);
    dead = static_cast<Upper>(((table.now - table.live - 1) & table.generation_mask()) << shift);
  }
  Upper now, limit, generation, dead;
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
  return {(one.match | two.match) != 0, one.free, two.free};
}

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

// Both candidate buckets at once. Where a vector is a whole line, the upper planes of two-plane
// formats, which lie in the lines' second halves, share one.
template <class F>
HWY_INLINE CohortPair probe_pair(const CohortTable& table, const Ages<F>& ages,
                                 const std::byte* first, const std::byte* second,
                                 std::uint64_t fingerprint) {
  using Upper = typename F::Upper;
  using D = hn::CappedTag<Upper, kBucketBytes / sizeof(Upper)>;
  if constexpr (F::kPlanes && hn::MaxLanes(D()) * sizeof(Upper) == kBucketBytes) {
    using Lower = typename F::Lower;
    constexpr unsigned kHalf = kBucketBytes / 2;
    static_assert(F::kUpperByte >= kHalf);
    constexpr unsigned kOne = (F::kUpperByte - kHalf) / sizeof(Upper);
    constexpr unsigned kTwo = kOne + kHalf / sizeof(Upper);
    const D d;
    const hn::Half<D> half;
    const auto load = [&](const std::byte* line) HWY_ATTR {
      return hn::Load(half, reinterpret_cast<const Upper*>(line + kHalf));
    };
    const auto uppers = hn::Combine(d, load(second), load(first));
    const std::uint64_t free =
        bits_of(d, hn::Gt(hn::Sub(hn::Set(d, ages.now), uppers), hn::Set(d, ages.limit)));
    const std::uint64_t equal =
        ~free & bits_of(d, hn::Eq(hn::AndNot(hn::Set(d, ages.generation), uppers),
                                  hn::Set(d, upper_of<F>(table, fingerprint, 0))));
    const auto lower = [&](const std::byte* line) HWY_ATTR {
      return scan<Lower, 0, F::kSlots * sizeof(Lower)>(line, [&](auto dl, auto v) HWY_ATTR {
        return hn::Eq(v, hn::Set(dl, static_cast<Lower>(fingerprint)));
      });
    };
    const std::uint64_t match = (equal >> kOne & lower(first)) | (equal >> kTwo & lower(second));
    return {(match & F::kAll) != 0, static_cast<std::uint32_t>(free >> kOne) & F::kAll,
            static_cast<std::uint32_t>(free >> kTwo) & F::kAll};
  } else {
    const CohortMatch one = probe<F>(table, ages, first, fingerprint);
    const CohortMatch two = probe<F>(table, ages, second, fingerprint);
    return {(one.match | two.match) != 0, one.free, two.free};
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

// Places of keys. Out of cache they are computed ahead of the key in hand, their lines on the way
// into the cache; in cache that costs more than it saves.
template <bool kAhead>
class Places {
 public:
  HWY_INLINE Places(const CohortTable& table, const Digest* digests, std::size_t count)
      : digests_(digests), count_(count) {
    if constexpr (kAhead)
      for (std::size_t i = 0; i < kPrefetchDistance; ++i) fetch(table, i);
  }
  HWY_INLINE CohortPlace next(const CohortTable& table, std::size_t i) {
    if constexpr (!kAhead) return place_of(table, digests_[i]);
    const std::size_t at = i % kRing;
    const CohortPlace place{first_[at], second_[at], fingerprint_[at]};
    fetch(table, i + kPrefetchDistance);
    return place;
  }

 private:
  static constexpr std::size_t kRing = 32;
  static_assert(kPrefetchDistance < kRing);

  HWY_INLINE void fetch(const CohortTable& table, std::size_t i) {
    if (i >= count_) return;
    const CohortPlace place = place_of(table, digests_[i]);
    __builtin_prefetch(line_of(table, place.first), 1);
    __builtin_prefetch(line_of(table, place.second), 1);
    first_[i % kRing] = place.first;
    second_[i % kRing] = place.second;
    fingerprint_[i % kRing] = place.fingerprint;
  }

  const Digest* digests_;
  std::size_t count_;
  // One array a member: a place copied as a whole would be read back in wider pieces than it was
  // written, which the store buffer cannot forward.
  std::uint64_t first_[kAhead ? kRing : 1], second_[kAhead ? kRing : 1],
      fingerprint_[kAhead ? kRing : 1];
};

// A choice without a branch: verdicts and loads are as good as random, and a misprediction costs
// more than both sides. Written out, because the compiler would rather jump.
template <class T>
HWY_INLINE T choose(bool which, T yes, T no) {
  return no ^ ((yes ^ no) & (T{0} - T{which}));
}

template <class F>
HWY_INLINE void refresh_slot(const CohortTable& table, const Ages<F>& ages,
                             const CohortPlace& place, std::uint64_t* refreshed_from) {
  std::byte* line = line_of(table, place.first);
  std::uint32_t match = probe<F>(table, ages, line, place.fingerprint).match;
  if (match == 0) {
    line = line_of(table, place.second);
    match = probe<F>(table, ages, line, place.fingerprint).match;
  }
  const auto slot = static_cast<unsigned>(__builtin_ctz(match));
  ++refreshed_from[get<F>(table, line, slot).generation];
  put<F>(table, line, slot, place.fingerprint, table.now);
}

// kGeneral: with strays or refresh; without, the loop has no branch that depends on the keys. The
// budget is not looked at. Stops before a distinct key for which there is no room.
template <class F, bool kAhead, bool kGeneral>
HWY_NOINLINE std::size_t admit_run(const CohortTable& given, const CohortBatch& batch,
                                   const Digest* digests, Verdict* verdicts, std::size_t count) {
  // A copy that nothing else can point at stays in registers while slots are written.
  const CohortTable table = given;
  const Ages<F> ages(table);
  Places<kAhead> places(table, digests, count);
  alignas(64) std::byte unused[kBucketBytes];  // where the slot of a duplicate is written
  constexpr std::uint32_t kLastSlot = std::uint32_t{1} << (F::kSlots - 1);
  for (std::size_t i = 0; i < count; ++i) {
    const CohortPlace place = places.next(table, i);
    std::byte* const first = line_of(table, place.first);
    std::byte* const second = line_of(table, place.second);
    const CohortPair pair = probe_pair<F>(table, ages, first, second, place.fingerprint);
    bool duplicate = pair.match;
    if (kGeneral) {
      if (!duplicate && is_stray(batch, place)) {
        if (batch.refresh) return i;
        duplicate = true;
      } else if (duplicate && batch.refresh) {
        refresh_slot<F>(table, ages, place, batch.refreshed_from);
      }
    }
    // The emptier bucket takes the key.
    const bool to_first =
        __builtin_popcount(pair.free_first) >= __builtin_popcount(pair.free_second);
    const std::uint32_t free = choose(to_first, pair.free_first, pair.free_second);
    if (HWY_UNLIKELY(free == 0) && !duplicate) return i;
    const auto bucket = choose(to_first, reinterpret_cast<std::uintptr_t>(first),
                               reinterpret_cast<std::uintptr_t>(second));
    const auto line = choose(duplicate, reinterpret_cast<std::uintptr_t>(unused), bucket);
    put<F>(table, reinterpret_cast<std::byte*>(line),
           static_cast<unsigned>(__builtin_ctz(free | kLastSlot)), place.fingerprint, table.now);
    verdicts[i] = static_cast<Verdict>(duplicate);
  }
  return count;
}

// A key takes at most one from the budget, so as many keys as there is budget need no watching.
template <class F, bool kAhead, bool kGeneral>
HWY_INLINE std::size_t admit_all(const CohortTable& table, CohortBatch& batch) {
  std::size_t judged = 0;
  while (judged < batch.count && batch.written < batch.budget) {
    const std::size_t count = static_cast<std::size_t>(
        std::min<std::uint64_t>(batch.count - judged, batch.budget - batch.written));
    Verdict* const verdicts = batch.verdicts + judged;
    const std::size_t done =
        admit_run<F, kAhead, kGeneral>(table, batch, batch.digests + judged, verdicts, count);
    batch.written +=
        static_cast<std::uint64_t>(std::count(verdicts, verdicts + done, Verdict::distinct));
    judged += done;
    if (done < count) break;
  }
  return judged;
}

bool out_of_cache(const CohortTable& table) {
  return table.buckets * kBucketBytes >= kPrefetchFromBytes;
}

std::size_t admit(const CohortTable& table, CohortBatch& batch) {
  return with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    if (batch.refresh || batch.stray_count != 0) return admit_all<F, true, true>(table, batch);
    return out_of_cache(table) ? admit_all<F, true, false>(table, batch)
                               : admit_all<F, false, false>(table, batch);
  });
}

template <class F, bool kAhead>
HWY_NOINLINE void ask_all(const CohortTable& given, const CohortBatch& batch) {
  const CohortTable table = given;
  const Ages<F> ages(table);
  Places<kAhead> places(table, batch.digests, batch.count);
  for (std::size_t i = 0; i < batch.count; ++i) {
    const CohortPlace place = places.next(table, i);
    const std::uint32_t match =
        probe<F>(table, ages, line_of(table, place.first), place.fingerprint).match |
        probe<F>(table, ages, line_of(table, place.second), place.fingerprint).match;
    batch.verdicts[i] = static_cast<Verdict>(match != 0 || is_stray(batch, place));
  }
}

void ask(const CohortTable& table, const CohortBatch& batch) {
  with_format(table, [&](auto format) HWY_ATTR {
    using F = decltype(format);
    out_of_cache(table) ? ask_all<F, true>(table, batch) : ask_all<F, false>(table, batch);
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
HWY_EXPORT(sweep);
HWY_EXPORT(probe_one);

std::size_t cohort_admit(const CohortTable& table, CohortBatch& batch) noexcept {
  return HWY_DYNAMIC_DISPATCH(admit)(table, batch);
}

void cohort_may_contain(const CohortTable& table, const CohortBatch& batch) noexcept {
  HWY_DYNAMIC_DISPATCH(ask)(table, batch);
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
