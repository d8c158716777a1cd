// One bucket of a cohort table, and two: who matches, who is free. Compiled once a target.
// clang-format off
#if defined(SLUICE_KERNELS_COHORT_PROBE) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_KERNELS_COHORT_PROBE
#undef SLUICE_KERNELS_COHORT_PROBE
#else
#define SLUICE_KERNELS_COHORT_PROBE
#endif
// clang-format on

#include "sluice/kernels/cohort_formats.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if SLUICE_PORTABLE_TARGET

// Bits, one an element, where test(element) holds over the elements of type T in bytes [kFrom,
// kUntil) of a line; element 0 is the one at kFrom. In steps of 16 bytes, over plain arrays: so
// compilers find the vectors that the baseline has.
template <class T, unsigned kFrom, unsigned kUntil, class Test>
HWY_INLINE std::uint64_t scan(const std::byte* line, Test test) {
  constexpr unsigned kFirst = kFrom / 16 * 16, kLast = (kUntil + 15) / 16 * 16;
  constexpr unsigned kCount = (kLast - kFirst) / sizeof(T);
  constexpr unsigned kSkip = (kFrom - kFirst) / sizeof(T) / 8 * 8;  // elements
  T elements[kCount];
  std::memcpy(elements, line + kFirst, sizeof(elements));
  std::uint8_t holds[(kCount + 7) / 8 * 8] = {};
  for (unsigned i = 0; i < kCount; ++i) holds[i] = test(elements[i]);
  std::uint64_t bits = 0;
  for (unsigned i = kSkip; i < sizeof(holds); i += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, holds + i, 8);
    // Byte j goes to bit 56 + j, and nothing else goes there.
    bits |= (eight * 0x0102040810204080ULL >> 56) << (i - kSkip);
  }
  return bits >> ((kFrom - kFirst) / sizeof(T) - kSkip);
}

template <class F>
HWY_INLINE std::uint64_t free_slots(const CohortAges<F>& ages, const std::byte* line) {
  using Upper = typename F::Upper;
  const Upper now = ages.now, limit = ages.limit;
  return F::kAll & scan<Upper, F::kUpperByte, F::kUpperByte + F::kSlots * sizeof(Upper)>(
                       line, [=](Upper held) { return static_cast<Upper>(now - held) > limit; });
}

template <class F>
HWY_INLINE CohortMatch probe(const CohortTable& table, const CohortAges<F>& ages,
                             const std::byte* line, std::uint64_t fingerprint) {
  using Upper = typename F::Upper;
  constexpr unsigned kUpperUntil = F::kUpperByte + F::kSlots * sizeof(Upper);
  const Upper upper = upper_of<F>(table, fingerprint, 0);
  const Upper top = static_cast<Upper>(~ages.generation);
  const std::uint64_t free = free_slots<F>(ages, line);
  std::uint64_t match = ~free & scan<Upper, F::kUpperByte, kUpperUntil>(line, [=](Upper held) {
    return static_cast<Upper>(held & top) == upper;
  });
  if constexpr (F::kPlanes) {
    using Lower = typename F::Lower;
    const auto lower = static_cast<Lower>(fingerprint);
    match &=
        scan<Lower, 0, F::kSlots * sizeof(Lower)>(line, [=](Lower held) { return held == lower; });
  }
  return {static_cast<std::uint32_t>(match) & F::kAll, static_cast<std::uint32_t>(free) & F::kAll};
}

template <class F>
HWY_INLINE void sweep_line(const CohortTable&, const CohortAges<F>& ages, std::byte* line) {
  using Upper = typename F::Upper;
  constexpr unsigned kFirst = F::kUpperByte / 16 * 16;
  constexpr unsigned kSkip = (F::kUpperByte - kFirst) / sizeof(Upper);
  Upper held[(kBucketBytes - kFirst) / sizeof(Upper)];
  std::memcpy(held, line + kFirst, sizeof(held));
  const Upper now = ages.now, limit = ages.limit, dead = ages.dead;
  const auto top = static_cast<Upper>(~ages.generation);
  for (unsigned i = 0; i < std::size(held); ++i) {
    const bool free = static_cast<Upper>(now - held[i]) > limit;
    const auto swept = free ? static_cast<Upper>((held[i] & top) | dead) : held[i];
    held[i] = i >= kSkip && i < kSkip + F::kSlots ? swept : held[i];
  }
  std::memcpy(line + kFirst, held, sizeof(held));
}

// The baseline has no instruction for it, and the compiler would call a function.
HWY_INLINE unsigned count_ones(std::uint32_t word) {
  word -= word >> 1 & 0x55555555;
  word = (word & 0x33333333) + (word >> 2 & 0x33333333);
  return ((word + (word >> 4)) & 0x0F0F0F0F) * 0x01010101 >> 24;
}

template <class F>
constexpr bool kSharedVector = false;
template <class F>
constexpr bool kTwoVectors = false;

#else

HWY_INLINE unsigned count_ones(std::uint32_t word) {
  return static_cast<unsigned>(std::popcount(word));
}

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
HWY_INLINE CohortMatch probe(const CohortTable& table, const CohortAges<F>& ages,
                             const std::byte* line, std::uint64_t fingerprint) {
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
// Whether a vector is half a line, and the second half has 8-bit elements above 16-bit ones.
template <class F>
constexpr bool kTwoVectors = HWY_TARGET == HWY_AVX2&& std::is_same_v<F, Format24>;

template <class F>
HWY_INLINE void sweep_line(const CohortTable&, const CohortAges<F>& ages, std::byte* line) {
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

template <class F>
constexpr unsigned kFreeBit = kSharedVector<F> || kTwoVectors<F>
                                  ? (F::kUpperByte - kBucketBytes / 2) / sizeof(typename F::Upper)
                                  : 0;
template <class F>
constexpr unsigned kApart = kSharedVector<F> ? kBucketBytes / 2 / sizeof(typename F::Upper) : 32;
// The slots of both buckets in CohortPair::free.
template <class F>
constexpr std::uint64_t kPairSlots =
    (std::uint64_t{F::kAll} | std::uint64_t{F::kAll} << kApart<F>) << kFreeBit<F>;

#if !SLUICE_PORTABLE_TARGET

// Both candidate buckets at once where a vector is a whole line: the upper planes of two-plane
// formats, which lie in the lines' second halves, share one.
template <class F>
HWY_INLINE CohortPair probe_shared(const CohortAges<F>& ages, const CohortKey& key) {
  using Upper = typename F::Upper;
  using Lower = typename F::Lower;
  constexpr unsigned kHalf = kBucketBytes / 2;
  static_assert(F::kUpperByte >= kHalf);
  const hn::CappedTag<Upper, kBucketBytes / sizeof(Upper)> d;
  const hn::Half<decltype(d)> half;
  const hn::Repartition<std::uint32_t, decltype(d)> d32;
  const auto load = [&](const std::byte* line) HWY_ATTR {
    return hn::Load(half, reinterpret_cast<const Upper*>(line + kHalf));
  };
  const auto uppers = hn::Combine(d, load(key.second), load(key.first));
  const auto live = hn::Gt(hn::Set(d, ages.end), hn::Sub(hn::Set(d, ages.now), uppers));
  const auto equal = hn::Eq(hn::AndNot(hn::Set(d, ages.generation), uppers),
                            hn::BitCast(d, hn::Set(d32, key.upper)));
  const auto lower = [&](const std::byte* line) HWY_ATTR {
    return scan<Lower, 0, F::kSlots * sizeof(Lower)>(line, [&](auto dl, auto v) HWY_ATTR {
      return hn::Eq(v, hn::BitCast(dl, hn::Set(d32, key.lower)));
    });
  };
  const std::uint64_t lowers = (lower(key.first) | lower(key.second) << kApart<F>) << kFreeBit<F>;
  const std::uint64_t matches = lowers & bits_of(d, hn::And(live, equal));
  return {(matches & kPairSlots<F>) != 0, kPairSlots<F> & ~bits_of(d, live)};
}

#endif

#if HWY_TARGET == HWY_AVX2

// Half lines: the first is all lower plane, the second the rest of it and the upper plane.
template <class F>
HWY_INLINE CohortPair probe_halves(const CohortAges<F>& ages, const CohortKey& key) {
  const hn::CappedTag<std::int8_t, 32> d;
  const hn::CappedTag<std::int16_t, 16> d16;
  const hn::CappedTag<std::uint32_t, 8> d32;
  const auto lower = hn::BitCast(d16, hn::Set(d32, key.lower));
  const auto upper = hn::BitCast(d, hn::Set(d32, key.upper));
  // There are signed compares only: ages are shifted by half of all.
  const auto now = hn::Set(d, static_cast<std::int8_t>(ages.now ^ 0x80));
  const auto end = hn::Set(d, static_cast<std::int8_t>(ages.end ^ 0x80));
  const auto generation = hn::Set(d, static_cast<std::int8_t>(ages.generation));
  std::uint32_t live[2], match = 0;
  const std::byte* const lines[2] = {key.first, key.second};
  for (unsigned i = 0; i < 2; ++i) {
    const auto* bytes = reinterpret_cast<const std::int8_t*>(lines[i]);
    const auto front = hn::BitCast(d16, hn::Load(d, bytes));
    const auto back = hn::Load(d, bytes + 32);
    // Two words to two bytes, and the quarters in order again.
    const __m256i packed =
        _mm256_packs_epi16(hn::VecFromMask(d16, hn::Eq(front, lower)).raw,
                           hn::VecFromMask(d16, hn::Eq(hn::BitCast(d16, back), lower)).raw);
    const auto lowers = static_cast<std::uint32_t>(
        _mm256_movemask_epi8(_mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0))));
    const auto alive = hn::Gt(end, hn::Sub(now, back));
    const auto equal = hn::Eq(hn::AndNot(generation, back), upper);
    live[i] = static_cast<std::uint32_t>(bits_of(d, alive));
    match |= lowers << kFreeBit<F> & static_cast<std::uint32_t>(bits_of(d, hn::And(alive, equal)));
  }
  const std::uint64_t lives = live[0] | std::uint64_t{live[1]} << kApart<F>;
  return {(match & F::kAll << kFreeBit<F>) != 0, kPairSlots<F> & ~lives};
}

#endif

template <class F>
HWY_INLINE CohortPair probe_pair(const CohortTable& table, const CohortAges<F>& ages,
                                 const CohortKey& key) {
#if HWY_TARGET == HWY_AVX2
  if constexpr (kTwoVectors<F>) return probe_halves<F>(ages, key);
#elif !SLUICE_PORTABLE_TARGET
  if constexpr (kSharedVector<F>) return probe_shared<F>(ages, key);
#endif
  const std::uint64_t fingerprint = fingerprint_of(table, key);
  const CohortMatch one = probe<F>(table, ages, key.first, fingerprint);
  const CohortMatch two = probe<F>(table, ages, key.second, fingerprint);
  return {(one.match | two.match) != 0, one.free | std::uint64_t{two.free} << 32};
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once a target
