// One bucket of a cohort table, and two: which slots match, which are free. Compiled once per
// target. clang-format off
#if defined(SLUICE_KERNELS_COHORT_PROBE) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_KERNELS_COHORT_PROBE
#undef SLUICE_KERNELS_COHORT_PROBE
#else
#define SLUICE_KERNELS_COHORT_PROBE
#endif
// clang-format on

#include <algorithm>

#include "sluice/kernels/cohort_formats.hpp"
#include "sluice/kernels/vectors_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if SLUICE_PORTABLE_TARGET

// The slots of a line, eight at a time and one byte each; the last eight may overlap the previous
// ones. It uses the compiler's generic vectors, which become baseline instructions.
template <class F>
struct Eights {
  template <class T, unsigned kLanes>
  struct Vector {
    typedef T Type __attribute__((vector_size(kLanes * sizeof(T))));
  };
  using Bytes = typename Vector<std::int8_t, 8>::Type;
  static constexpr unsigned kCount = (F::kSlots + 7) / 8;
  static constexpr unsigned start(unsigned i) { return std::min(8 * i, F::kSlots - 8); }
  // All ones in a byte where the slot is free, and where it holds the fingerprint and is live.
  std::uint64_t free[kCount], match[kCount];

  HWY_INLINE Eights(const CohortAges<F>& ages, const std::byte* line, std::uint64_t fingerprint) {
    using Upper = typename F::Upper;
    using Signed = std::make_signed_t<Upper>;
    const auto upper = static_cast<Upper>(fingerprint >> F::kLowerBits);
    const auto top = static_cast<Upper>(~ages.generation);
    // The baseline has signed compares only: ages are shifted by half of all.
    constexpr auto kHalf = static_cast<Upper>(std::uint64_t{1} << (F::kUpperBits - 1));
    const auto now = static_cast<Upper>(ages.now ^ kHalf);
    const auto limit = static_cast<Signed>(ages.limit ^ kHalf);
    for (unsigned i = 0; i < kCount; ++i) {
      const std::byte* const uppers = line + F::kUpperByte + start(i) * sizeof(Upper);
      const Bytes dead = where<Upper>(uppers, [=](auto v) HWY_ATTR {
        using Ages = typename Vector<Signed, sizeof(v) / sizeof(Upper)>::Type;
        return reinterpret_cast<Ages>(now - v) > limit;
      });
      Bytes same =
          where<Upper>(uppers, [=](auto v) HWY_ATTR { return (v & top) == upper; }) & ~dead;
      if constexpr (F::kPlanes) {
        using Lower = typename F::Lower;
        const auto lower = static_cast<Lower>(fingerprint);
        same &= where<Lower>(line + start(i) * sizeof(Lower),
                             [=](auto v) HWY_ATTR { return v == lower; });
      }
      std::memcpy(&free[i], &dead, 8);
      std::memcpy(&match[i], &same, 8);
    }
  }
  // All ones where test(elements) holds, over eight elements. The baseline's vectors have 16 bytes,
  // and compilers take longer ones apart to the last element.
  template <class T, class Test>
  static HWY_INLINE Bytes where(const std::byte* from, Test test) {
    if constexpr (sizeof(T) <= 2) {
      typename Vector<T, 8>::Type v;
      std::memcpy(&v, from, sizeof(v));
      return __builtin_convertvector(test(v), Bytes);
    } else {
      using Words = typename Vector<std::int16_t, 8>::Type;
      typename Vector<T, 4>::Type v, w;
      std::memcpy(&v, from, sizeof(v));
      std::memcpy(&w, from + sizeof(v), sizeof(w));
      const auto low = reinterpret_cast<Words>(test(v)), high = reinterpret_cast<Words>(test(w));
      return __builtin_convertvector(__builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14),
                                     Bytes);
    }
  }
  // A bit per slot.
  static HWY_INLINE std::uint32_t bits(const std::uint64_t (&eights)[kCount]) {
    std::uint64_t all = 0;
    // Byte j goes to bit 56 + j, and nothing else goes there.
    for (unsigned i = 0; i < kCount; ++i)
      all |= ((eights[i] & 0x0101010101010101ULL) * 0x0102040810204080ULL >> 56) << start(i);
    return static_cast<std::uint32_t>(all);
  }
};

template <class F>
HWY_INLINE CohortMatch probe(const CohortTable&, const CohortAges<F>& ages, const std::byte* line,
                             std::uint64_t fingerprint) {
  const Eights<F> eights(ages, line, fingerprint);
  return {eights.bits(eights.match), eights.bits(eights.free)};
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

// One bit per element where test(vector) holds over the elements of type T in bytes [kFrom, kUntil)
// of a line; element 0 is the one at kFrom. Only the vectors that overlap the range are read.
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
#if SLUICE_PORTABLE_TARGET
  const Eights<F> first(ages, key.first, fingerprint), second(ages, key.second, fingerprint);
  std::uint64_t match = 0;
  for (unsigned i = 0; i < first.kCount; ++i) match |= first.match[i] | second.match[i];
  return {match != 0, first.bits(first.free) | std::uint64_t{second.bits(second.free)} << 32};
#else
  const CohortMatch one = probe<F>(table, ages, key.first, fingerprint);
  const CohortMatch two = probe<F>(table, ages, key.second, fingerprint);
  return {(one.match | two.match) != 0, one.free | std::uint64_t{two.free} << 32};
#endif
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
