// Where the keys of a batch lie in a cohort table, computed ahead. Compiled once per target.
// clang-format off
#if defined(SLUICE_KERNELS_COHORT_PLACES) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_KERNELS_COHORT_PLACES
#undef SLUICE_KERNELS_COHORT_PLACES
#else
#define SLUICE_KERNELS_COHORT_PLACES
#endif
// clang-format on

#include "sluice/kernels/cohort_formats.hpp"
#include "sluice/kernels/prefetch.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The factor that repeats an element of that many bits to fill 32 bits.
constexpr std::uint32_t repeat(unsigned bits) {
  return bits == 8 ? 0x01010101 : bits == 16 ? 0x00010001 : 1;
}
template <class F>
constexpr std::uint64_t lower_mask = (std::uint64_t{1} << F::kLowerBits) - 1;

// The place of a key that comes alone, as Places has it. Room for a group takes several times as
// long to fill as one key takes to judge.
template <class F, bool kWrite>
class OnePlace {
 public:
  HWY_INLINE OnePlace(const CohortTable& table, const Digest& digest, std::byte* spare)
      : spare_(spare) {
    const CohortPlace place = place_of(table, digest);
    key_.first = cleared_line_of<kWrite>(table, place.first);
    key_.second = cleared_line_of<kWrite>(table, place.second);
    key_.slot = place.fingerprint | std::uint64_t{table.now} << table.fingerprint_bits();
    key_.lower =
        static_cast<std::uint32_t>((place.fingerprint & lower_mask<F>)*repeat(F::kLowerBits));
    key_.upper =
        static_cast<std::uint32_t>((place.fingerprint >> F::kLowerBits) * repeat(F::kUpperBits));
  }
  HWY_INLINE const CohortKey& get(std::size_t) const { return key_; }
  HWY_INLINE std::byte* line(std::size_t, std::size_t which) const {
    return which == 0 ? key_.first : which == 1 ? key_.second : spare_;
  }

 private:
  CohortKey key_;
  std::byte* spare_;
};

// The places of keys, computed for a group of keys at a time and, with `kFetch`, prefetched early
// enough to be in cache when needed. Lines of a table in pages are cleared on the way if they are
// to be written.
template <class F, bool kFetch, bool kWrite>
class Places {
 public:
  static constexpr std::size_t kGroup = 8;

  // `spare` may be written in place of any line, and past its end up to where slot 32 would be.
  HWY_INLINE Places(const CohortTable& table, const Digest* digests, std::size_t count,
                    std::byte* spare)
      : digests_(digests),
        count_(count),
        spare_(reinterpret_cast<std::uintptr_t>(spare)),
        stamp_(std::uint64_t{table.now} << table.fingerprint_bits()) {
    for (std::size_t i = 0; i < kRing; ++i) rows_[2][i] = rows_[3][i] = spare_;
    for (std::size_t i = 0; i < kAhead; i += kGroup) {
      compute(table, i);
      if constexpr (kFetch)
        for (std::size_t j = i; j < i + kGroup; ++j) {
          __builtin_prefetch(reinterpret_cast<const void*>(rows_[0][j]), 0, kPrefetchLocality);
          __builtin_prefetch(reinterpret_cast<const void*>(rows_[1][j]), 0, kPrefetchLocality);
        }
    }
  }
  // For i = 0, 8, 16 and so on, before the keys from i on are asked for.
  HWY_INLINE void start_group(const CohortTable& table, std::size_t i) {
    compute(table, i + kAhead);
    at_ = i % kRing;
    near_ = (i + kGroup) % kRing;
    ahead_ = (i + kAhead) % kRing;
  }
  // Key j of the group.
  HWY_INLINE CohortKey get(std::size_t j) const {
    if constexpr (kFetch) {
      __builtin_prefetch(reinterpret_cast<const void*>(rows_[0][ahead_ + j]), 0, kPrefetchLocality);
      __builtin_prefetch(reinterpret_cast<const void*>(rows_[1][ahead_ + j]), 0, kPrefetchLocality);
    }
    // Into the first-level cache: the work per key is so long that at most three keys overlap, and
    // if one of them waits, all wait.
    __builtin_prefetch(reinterpret_cast<const void*>(rows_[0][near_ + j]), 0, 3);
    __builtin_prefetch(reinterpret_cast<const void*>(rows_[1][near_ + j]), 0, 3);
    CohortKey key{line(j, 0), line(j, 1), slot_[at_ + j], 0,
                  static_cast<std::uint32_t>(upper_[at_ + j])};
    if constexpr (F::kPlanes) key.lower = static_cast<std::uint32_t>(lower_[at_ + j]);
    return key;
  }
  // The key's first line, its second, or, if `which` is 2 or 3, the spare one.
  HWY_INLINE std::byte* line(std::size_t j, std::size_t which) const {
    return reinterpret_cast<std::byte*>(rows_[which][at_ + j]);
  }

 private:
  static constexpr std::size_t kAhead = kFetch ? kPrefetchDistance : kGroup;
  static constexpr std::size_t kRing = 32;
  static_assert(kAhead % kGroup == 0 && kAhead + kGroup <= kRing);
  static constexpr std::uint64_t kLowerMask = lower_mask<F>;

  HWY_INLINE void compute(const CohortTable& table, std::size_t i) {
    const std::size_t at = i % kRing;
#if !SLUICE_PORTABLE_TARGET
    if (HWY_LIKELY(i + kGroup <= count_ && table.buckets < kFewBuckets)) {
      compute_group(table, digests_ + i, at);
      if (HWY_UNLIKELY(bool(table.pages)))
        for (std::size_t row = 0; row < 2; ++row) find_in_pages(table.pages, rows_[row] + at);
      return;
    }
#endif
    for (std::size_t j = 0; j < kGroup; ++j) {
      rows_[0][at + j] = rows_[1][at + j] = spare_;
      if (i + j >= count_) continue;
      const CohortPlace place = place_of(table, digests_[i + j]);
      rows_[0][at + j] =
          reinterpret_cast<std::uintptr_t>(cleared_line_of<kWrite>(table, place.first));
      rows_[1][at + j] =
          reinterpret_cast<std::uintptr_t>(cleared_line_of<kWrite>(table, place.second));
      slot_[at + j] = place.fingerprint | stamp_;
      lower_[at + j] = (place.fingerprint & kLowerMask) * repeat(F::kLowerBits);
      upper_[at + j] = (place.fingerprint >> F::kLowerBits) * repeat(F::kUpperBits);
    }
  }

#if !SLUICE_PORTABLE_TARGET
  // compute_group leaves addresses as if the table began at zero. Takes the table and the places by
  // value, so that they stay in registers.
  static HWY_NOINLINE void find_in_pages(LinePages pages, std::uint64_t* lines) {
    for (std::size_t j = 0; j < kGroup; ++j) {
      const std::uint64_t bucket = lines[j] / kBucketBytes;
      lines[j] =
          reinterpret_cast<std::uintptr_t>(kWrite ? pages.to_write(bucket) : pages.to_read(bucket));
    }
  }

  // Below this, bucket numbers and the differences of two fit in 32 bits.
  static constexpr std::uint64_t kFewBuckets = std::uint64_t{1} << 31;
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
  // Does what compute does, for a whole group in the same arithmetic.
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
      hn::Store(hn::Or(fingerprint, hn::Set(d, stamp_)), d, slot_ + at + j);
      V lower = fingerprint, upper = fingerprint;
      if constexpr (F::kPlanes) upper = hn::ShiftRight<static_cast<int>(F::kLowerBits)>(upper);
      if constexpr (F::kLowerBits == 16)
        lower = multiply(hn::And(lower, hn::Set(d, kLowerMask)), hn::Set(d, repeat(16)));
      if constexpr (F::kUpperBits < 32) upper = multiply(upper, hn::Set(d, repeat(F::kUpperBits)));
      if constexpr (F::kPlanes) hn::Store(lower, d, lower_ + at + j);
      hn::Store(upper, d, upper_ + at + j);
    }
  }
#endif

  const Digest* digests_;
  std::size_t count_;
  std::uintptr_t spare_;
  std::uint64_t stamp_;
  std::size_t at_ = 0, near_ = 0, ahead_ = 0;
  // One array per member: read back in pieces that the store buffer can forward.
  alignas(64) std::uint64_t rows_[4][kRing], slot_[kRing], lower_[kRing], upper_[kRing];
};

// Calls each(places, i, j) for all keys in order, i being the number of a key and j its place in
// its group, until that returns false. Returns the number of the key where it did, or `count`.
// With `kUnroll`, the code for a group is unrolled.
template <class F, bool kFetch, bool kWrite, bool kUnroll, class Each>
HWY_INLINE std::size_t for_each_key(const CohortTable& table, const Digest* digests,
                                    std::size_t count, Each each) {
  alignas(64) std::byte spare[4 * kBucketBytes];
  if (count == 1) return each(OnePlace<F, kWrite>(table, *digests, spare), 0, 0) ? 1 : 0;
  using P = Places<F, kFetch, kWrite>;
  P places(table, digests, count, spare);
  std::size_t i = 0;
  if constexpr (kUnroll && !SLUICE_PORTABLE_TARGET)
    for (; i + P::kGroup <= count; i += P::kGroup) {
      places.start_group(table, i);
      HWY_UNROLL(8)
      for (std::size_t j = 0; j < P::kGroup; ++j)
        if (HWY_UNLIKELY(!each(places, i + j, j))) return i + j;
    }
  for (std::size_t j = 0; i + j < count; j = (j + 1) % P::kGroup) {
    if (j == 0) places.start_group(table, i);
    if (HWY_UNLIKELY(!each(places, i + j, j))) return i + j;
    if (j + 1 == P::kGroup) i += P::kGroup;
  }
  return count;
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
