// Blocks of apbbf's segments as vectors, and whole columns of them. Compiled once per target.
// clang-format off
#if defined(SLUICE_KERNELS_APBBF_COLUMNS) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_KERNELS_APBBF_COLUMNS
#undef SLUICE_KERNELS_APBBF_COLUMNS
#else
#define SLUICE_KERNELS_APBBF_COLUMNS
#endif
// clang-format on

#include "sluice/kernels/age_line.hpp"
#include "sluice/kernels/vectors_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if SLUICE_PORTABLE_TARGET

template <unsigned kBlock, unsigned kBits, bool kColumn>
using Segments = BlockSegments<kBlock, kBits, kColumn>;

#else

using Tag64 = hn::CappedTag<std::uint64_t, 8>;
using Tag32 = hn::CappedTag<std::uint32_t, 16>;
constexpr std::size_t kLanes64 = hn::MaxLanes(Tag64());
constexpr std::size_t kLanes32 = hn::MaxLanes(Tag32());
constexpr std::size_t kParts = kLineBytes / (kLanes64 * sizeof(std::uint64_t));

// Whole lines as vectors; single words are left to plain code. The functions are not forced inline:
// AgePartition, which calls them, uses this instruction set only where it is itself inlined.
template <unsigned kBlock, unsigned kBits, bool kColumn>
class VectorSegments : public BlockSegments<kBlock, kBits, kColumn> {
  using Base = BlockSegments<kBlock, kBits, kColumn>;

 public:
  using Base::Base;
  using Place = typename Base::Place;

  bool has(const Place& place) const noexcept {
    const Tag64 d;
    auto missing = hn::Zero(d);
    for (std::size_t part = 0; part < kParts; ++part)
      missing = hn::Or(missing, hn::AndNot(hn::Load(d, place.block + part * kLanes64),
                                           mask(place.positions, part)));
    return is_zero(d, missing);
  }
  void set(const Place& place, std::uint64_t keep = ~std::uint64_t{0}) const noexcept {
    const Tag64 d;
    for (std::size_t part = 0; part < kParts; ++part) {
      std::uint64_t* const words = place.block + part * kLanes64;
      const auto held = hn::And(hn::Load(d, words), hn::Set(d, keep));
      hn::Store(hn::Or(held, mask(place.positions, part)), d, words);
    }
  }

 private:
  static hn::Vec<Tag64> mask(std::uint64_t positions, std::size_t part) {
    static_assert(kBlock == 512 && (kBits == 4 || kBits == 8));
    alignas(64) static constexpr std::uint64_t kShift8[8] = {0, 6, 12, 18, 24, 30, 36, 42};
    alignas(64) static constexpr std::uint64_t kShift4[8] = {0, 0, 7, 7, 14, 14, 21, 21};
    alignas(64) static constexpr std::uint64_t kUpper[8] = {0, 64, 0, 64, 0, 64, 0, 64};
    const Tag64 d;
    const auto all = hn::Set(d, positions);
    if constexpr (kBits == 8) {
      const auto position = hn::And(all >> hn::Load(d, kShift8 + part * kLanes64), hn::Set(d, 63));
      return hn::Set(d, 1) << position;
    } else {
      const auto position = all >> hn::Load(d, kShift4 + part * kLanes64);
      const auto here =
          hn::Eq(hn::And(position, hn::Set(d, 64)), hn::Load(d, kUpper + part * kLanes64));
      return hn::IfThenElseZero(here, hn::Set(d, 1) << hn::And(position, hn::Set(d, 63)));
    }
  }
};

template <unsigned kBlock, unsigned kBits, bool kColumn>
using Segments = std::conditional_t<kBlock == 512, VectorSegments<kBlock, kBits, kColumn>,
                                    BlockSegments<kBlock, kBits, kColumn> >;

#endif

static_assert(kMostWholeColumn <= kMostRunSegments);

// Columns of few segments are judged like lines: all segments are read in any case. kCommon: k = 2
// and l = 5, known to the compiler.
template <unsigned kBlock, unsigned kBits, bool kCommon>
class Columns {
 public:
  using S = Segments<kBlock, kBits, true>;
  using Place = typename S::Place;

  explicit Columns(const ApbbfTable& table)
      : segments_(table), ring_(table.ring), runs_(table.ring, 0), stale_(table.stale) {}

  HWY_INLINE unsigned count() const { return kCommon ? 7 : ring_.segments(); }
  HWY_INLINE unsigned k() const { return kCommon ? 2 : ring_.k; }
  HWY_INLINE std::uint64_t unit(const Digest& digest) const {
    return segments_.unit(segments_.place(digest, 0, 0));
  }
  HWY_INLINE const std::byte* address(const Digest& digest) const {
    return reinterpret_cast<const std::byte*>(segments_.place(digest, 0, 0).block);
  }
  HWY_INLINE std::size_t bytes() const { return count() * kBlock / 8; }

  HWY_INLINE std::uint64_t matches(const Digest& digest, std::uint64_t stale) const {
    std::uint64_t matches = 0;
    for (unsigned i = 0; i < count(); ++i)
      matches |= std::uint64_t{segments_.has(segments_.place(digest, i, 0))} << i;
    return matches & ~(stale << ring_.youngest);
  }
  HWY_INLINE std::uint64_t is_stale(std::uint64_t unit) const {
    return stale_[unit / 64] >> (unit % 64) & 1;
  }
  HWY_INLINE bool has_run(std::uint64_t matches) const {
    constexpr unsigned kSteps = kCommon ? 1 : 5;
    return runs_.template has_run<kSteps>(matches, count());
  }
  HWY_INLINE bool holds(std::uint64_t matches) const { return runs_.holds(matches); }
  HWY_INLINE unsigned young_age(std::uint64_t matches) const {
    return runs_.young_age(matches, count());
  }

  // Writes the key if `write` is 1. If it is 0, the same amount is written to a spare place.
  HWY_INLINE void write(const Digest& digest, std::uint64_t unit, std::uint64_t stale,
                        std::uint64_t write, std::uint64_t* elsewhere) const {
    stale_[unit / 64] &= ~(write << (unit % 64));
    std::uint64_t keep = stale - 1;
    for (unsigned age = 0; age < k(); ++age) {
      Place where = segments_.place(digest, ring_.physical(age), 0);
      const auto block = reinterpret_cast<std::uintptr_t>(where.block);
      const auto other = reinterpret_cast<std::uintptr_t>(elsewhere);
      where.block =
          reinterpret_cast<std::uint64_t*>(other ^ ((block ^ other) & (std::uint64_t{0} - write)));
      segments_.set(where, keep);
      keep = ~std::uint64_t{0};
    }
  }

 private:
  S segments_;
  AgeRing ring_;
  AgeRuns runs_;
  std::uint64_t* stale_;
};

// Calls judge(i) for each key in order; whole columns are prefetched ahead of it.
template <class C, class Judge>
HWY_INLINE void for_each_column(const C& columns, std::size_t table_bytes, const Digest* digests,
                                std::size_t count, Judge judge) {
  const std::size_t ahead =
      table_bytes < kPrefetchFromBytes ? 0 : std::min(count, kPrefetchDistance);
  for (std::size_t i = 0; i < count + ahead; ++i) {
    if (ahead != 0 && i < count) {
      const std::byte* const first = columns.address(digests[i]);
      // Columns of small blocks begin anywhere in a line.
      const std::size_t before = reinterpret_cast<std::uintptr_t>(first) % kLineBytes;
      for (std::size_t at = 0; at < before + columns.bytes(); at += kLineBytes)
        __builtin_prefetch(first - before + at, 0, kPrefetchLocality);
    }
    if (i >= ahead) judge(i - ahead);
  }
}

template <unsigned kBlock, unsigned kBits, bool kRefresh, bool kCommon>
HWY_NOINLINE std::uint64_t admit_columns(const ApbbfTable& table, const Digest* digests,
                                         std::size_t count, Verdict* verdicts,
                                         [[maybe_unused]] std::uint64_t* again) {
  const Columns<kBlock, kBits, kCommon> columns(table);
  alignas(64) std::uint64_t elsewhere[kBlock / 64] = {};
  std::uint64_t written = 0;
  for_each_column(
      columns, table.total_bytes(), digests,
      count, [&](std::size_t i) HWY_ATTR __attribute__((always_inline)) {
        const Digest digest = digests[i];
        const std::uint64_t unit = columns.unit(digest), stale = columns.is_stale(unit);
        const std::uint64_t matches = columns.matches(digest, stale);
        const bool duplicate = columns.has_run(matches);
        const std::uint64_t write = kRefresh ? !columns.holds(matches) : !duplicate;
        if constexpr (kRefresh) again[columns.young_age(matches)] += write;
        columns.write(digest, unit, stale, write, elsewhere);
        verdicts[i] = static_cast<Verdict>(duplicate);
        written += write;
      });
  return written;
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
