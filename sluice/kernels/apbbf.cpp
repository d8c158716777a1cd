#include "sluice/kernels/apbbf.hpp"

// clang-format off
#include "sluice/base/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/apbbf.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <array>

#include "sluice/kernels/age_line.hpp"
#include "sluice/kernels/apbbf_columns_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if SLUICE_PORTABLE_TARGET

// Two cells' bits, by the byte that chooses them: sixteen shifts a key would take longer.
constexpr std::array<std::uint32_t, 256> kCellBits = [] {
  std::array<std::uint32_t, 256> bits{};
  for (unsigned byte = 0; byte < 256; ++byte)
    bits[byte] = 1u << (byte & 15) | 0x10000u << (byte >> 4);
  return bits;
}();

// What a line holds, and the key's bits: 16 bytes at a time, for which the baseline has a register.
struct LineProbe {
  using Quad = std::uint32_t __attribute__((vector_size(16), may_alias));
  Quad held[4], mask[4];

  LineProbe(const std::uint64_t* words, const std::uint64_t* keep, const Digest& digest) {
    const std::uint64_t first = digest.hi, second = line_second_word(digest);
    for (unsigned i = 0; i < 4; ++i) {
      held[i] = reinterpret_cast<const Quad*>(words)[i] & reinterpret_cast<const Quad*>(keep)[i];
      mask[i] = Quad{kCellBits[first >> (8 * i) & 255], kCellBits[first >> (32 + 8 * i) & 255],
                     kCellBits[second >> (8 * i) & 255], kCellBits[second >> (32 + 8 * i) & 255]};
    }
  }
  template <unsigned kSegments>
  std::uint64_t matches() const {
    if constexpr (kSegments == 16) {
      const Quad bits = {1, 2, 4, 8};
      Quad found = {};
      for (unsigned i = 0; i < 4; ++i)
        found |= reinterpret_cast<Quad>((mask[i] & ~held[i]) == 0) & bits << 4 * i;
      return found[0] | found[1] | found[2] | found[3];
    }
    Quad missing[4];
    for (unsigned i = 0; i < 4; ++i) missing[i] = mask[i] & ~held[i];
    std::uint64_t words[kLineWords];
    std::memcpy(words, missing, sizeof(words));
    return line_matches(words, kSegments);
  }
  void write(std::uint64_t* words, const std::uint64_t* take) const {
    for (unsigned i = 0; i < 4; ++i)
      reinterpret_cast<Quad*>(words)[i] =
          held[i] | (mask[i] & reinterpret_cast<const Quad*>(take)[i]);
  }
};

#else

alignas(64) constexpr std::uint32_t kShift32[16] = {0,  0,  0,  0,  8,  8,  8,  8,
                                                    16, 16, 16, 16, 24, 24, 24, 24};

// A key's bits in one vector of its line.
HWY_INLINE hn::Vec<Tag64> line_mask(hn::Vec<Tag64> source, std::size_t part) {
  const Tag64 d;
  const Tag32 d32;
  const auto byte = hn::BitCast(d32, source) >> hn::Load(d32, kShift32 + part * kLanes32);
#if HWY_TARGET == HWY_AVX3
  // Cells as lanes: 16-bit ones can be shifted.
  const hn::Repartition<std::uint16_t, Tag64> d16;
  const auto low = hn::BitCast(d16, byte), high = hn::BitCast(d16, hn::ShiftLeft<12>(byte));
  return hn::BitCast(d, hn::Set(d16, 1) << hn::And(hn::OddEven(high, low), hn::Set(d16, 15)));
#else
  const auto low = hn::Set(d32, 1) << hn::And(byte, hn::Set(d32, 15));
  const auto high = hn::Set(d32, 0x10000) << hn::And(hn::ShiftRight<4>(byte), hn::Set(d32, 15));
  return hn::BitCast(d, hn::Or(low, high));
#endif
}

struct LineProbe {
  hn::Vec<Tag64> held[kParts], mask[kParts];

  HWY_INLINE LineProbe(const std::uint64_t* words, const std::uint64_t* keep,
                       const Digest& digest) {
    const Tag64 d;
    const auto source = hn::OddEven(hn::Set(d, line_second_word(digest)), hn::Set(d, digest.hi));
    for (std::size_t part = 0; part < kParts; ++part) {
      held[part] =
          hn::And(hn::Load(d, words + part * kLanes64), hn::Load(d, keep + part * kLanes64));
      mask[part] = line_mask(source, part);
    }
  }
  template <unsigned kSegments>
  HWY_INLINE std::uint64_t matches() const {
    using Lane =
        std::conditional_t<kSegments == 8, std::uint64_t,
                           std::conditional_t<kSegments == 16, std::uint32_t, std::uint16_t> >;
    using D = hn::Repartition<Lane, Tag64>;
    std::uint64_t matches = 0;
    for (std::size_t part = 0; part < kParts; ++part) {
      const auto missing = hn::BitCast(D(), hn::AndNot(held[part], mask[part]));
      matches |= bits_of(D(), hn::Eq(missing, hn::Zero(D()))) << (part * hn::MaxLanes(D()));
    }
    return matches;
  }
  HWY_INLINE void write(std::uint64_t* words, const std::uint64_t* take) const {
    const Tag64 d;
    for (std::size_t part = 0; part < kParts; ++part)
      hn::Store(hn::Or(held[part], hn::And(mask[part], hn::Load(d, take + part * kLanes64))), d,
                words + part * kLanes64);
  }
};

#endif

// A key takes little longer than its line does to come. With this distance, through the second
// level, it took 1.2 to 1.3 times one line's update on a quiet machine, and 1.5 with the usual
// distance into the first; on a busy one both took about 1.5. Distance and level were not tried
// apart.
constexpr std::size_t kLinesAhead = 40;

// Straight code: verdicts and stale lines are as good as random, and a wrong guess costs more than
// the work it saves. A line that is touched is fresh from then on, for either verdict.
template <unsigned kSegments, unsigned kSteps, bool kRefresh>
HWY_NOINLINE std::uint64_t admit_lines(const ApbbfTable& given, const Digest* digests,
                                       std::size_t count, Verdict* verdicts,
                                       [[maybe_unused]] std::uint64_t* again) {
  const ApbbfTable table = given;
  const LineLanes lanes(table.ring, 0);
  std::uint64_t written = 0;
  with_prefetch(
      count, table.blocks * kLineBytes,
      [&](std::size_t i) { return line_words(table, line_of(table, digests[i])); },
      [&](std::size_t i) HWY_ATTR {
        const std::uint64_t line = line_of(table, digests[i]);
        std::uint64_t* const words = line_words(table, line);
        std::uint64_t& stale_word = table.stale[line / 64];
        const std::uint64_t stale = stale_word >> (line % 64) & 1;
        stale_word &= ~(std::uint64_t{1} << (line % 64));
        const LineProbe probe(words, lanes.keep[stale], digests[i]);
        const std::uint64_t matches = probe.template matches<kSegments>();
        const bool duplicate = lanes.template has_run<kSteps>(matches, kSegments);
        const bool write = kRefresh ? !lanes.holds(matches) : !duplicate;
        if constexpr (kRefresh) again[lanes.young_age(matches, kSegments)] += write;
        probe.write(words, lanes.take[write]);
        verdicts[i] = static_cast<Verdict>(duplicate);
        written += write;
      },
      kLinesAhead);
  return written;
}

// Judges until the room is used up. A key takes at most one place, so this many keys need no check.
template <class Run>
std::size_t admit_runs(AgeBatch& batch, Run run) {
  std::size_t judged = 0;
  while (judged < batch.count && batch.written < batch.room) {
    const std::size_t count = static_cast<std::size_t>(
        std::min<std::uint64_t>(batch.count - judged, batch.room - batch.written));
    batch.written += run(batch.digests + judged, count, batch.verdicts + judged);
    judged += count;
  }
  return judged;
}

template <unsigned kSegments>
std::size_t admit_all_lines(const ApbbfTable& table, AgeBatch& batch) {
  const auto admit = batch.refresh       ? admit_lines<kSegments, 5, true>
                     : table.ring.k <= 8 ? admit_lines<kSegments, 3, false>
                                         : admit_lines<kSegments, 5, false>;
  return admit_runs(batch, [&](const Digest* digests, std::size_t count, Verdict* verdicts) {
    return admit(table, digests, count, verdicts, batch.again);
  });
}

template <unsigned kSegments>
HWY_NOINLINE void ask_lines(const ApbbfTable& given, const Digest* digests, std::size_t count,
                            Verdict* verdicts) {
  const ApbbfTable table = given;
  const LineLanes lanes(table.ring, 0);
  const StaleUnits stale(table.stale);
  with_prefetch(
      count, table.blocks * kLineBytes,
      [&](std::size_t i) { return line_words(table, line_of(table, digests[i])); },
      [&](std::size_t i) HWY_ATTR {
        const std::uint64_t line = line_of(table, digests[i]);
        const LineProbe probe(line_words(table, line), lanes.keep[stale.has(line)], digests[i]);
        verdicts[i] = static_cast<Verdict>(
            lanes.template has_run<5>(probe.template matches<kSegments>(), kSegments));
      },
      kLinesAhead);
}

template <unsigned kBlock, unsigned kBits, bool kColumn>
HWY_NOINLINE std::size_t admit_blocks(const ApbbfTable& table, AgeBatch& batch) {
  if (kColumn && table.ring.segments() <= kMostWholeColumn) {
    const auto run = batch.refresh ? admit_columns<kBlock, kBits, true, false>
                     : table.ring.k == 2 && table.ring.l == 5
                         ? admit_columns<kBlock, kBits, false, true>
                         : admit_columns<kBlock, kBits, false, false>;
    return admit_runs(batch, [&](const Digest* digests, std::size_t count, Verdict* verdicts) {
      return run(table, digests, count, verdicts, batch.again);
    });
  }
  const AgePartition partition(Segments<kBlock, kBits, kColumn>(table), table.ring, table.stale);
  return partition.admit(batch, table.total_bytes());
}

template <unsigned kBlock, unsigned kBits, bool kColumn>
HWY_NOINLINE void ask_blocks(const ApbbfTable& table, const Digest* digests, std::size_t count,
                             Verdict* verdicts) {
  if (kColumn && table.ring.segments() <= kMostWholeColumn) {
    const Columns<kBlock, kBits, false> columns(table);
    for_each_column(
        columns, table.total_bytes(), digests,
        count, [&](std::size_t i) HWY_ATTR __attribute__((always_inline)) {
          const std::uint64_t stale = columns.is_stale(columns.unit(digests[i]));
          verdicts[i] = static_cast<Verdict>(columns.has_run(columns.matches(digests[i], stale)));
        });
    return;
  }
  const AgePartition partition(Segments<kBlock, kBits, kColumn>(table), table.ring, table.stale);
  partition.ask(digests, count, verdicts, table.total_bytes());
}

template <bool kColumn>
std::size_t admit_shape(const ApbbfTable& table, AgeBatch& batch) {
  if (table.block == 64)
    return table.bits == 4 ? admit_blocks<64, 4, kColumn>(table, batch)
                           : admit_blocks<64, 8, kColumn>(table, batch);
  return table.bits == 4 ? admit_blocks<512, 4, kColumn>(table, batch)
                         : admit_blocks<512, 8, kColumn>(table, batch);
}

template <bool kColumn>
void ask_shape(const ApbbfTable& table, const Digest* digests, std::size_t count,
               Verdict* verdicts) {
  if (table.block == 64)
    table.bits == 4 ? ask_blocks<64, 4, kColumn>(table, digests, count, verdicts)
                    : ask_blocks<64, 8, kColumn>(table, digests, count, verdicts);
  else
    table.bits == 4 ? ask_blocks<512, 4, kColumn>(table, digests, count, verdicts)
                    : ask_blocks<512, 8, kColumn>(table, digests, count, verdicts);
}

std::size_t admit(const ApbbfTable& table, AgeBatch& batch) {
  if (table.layout == ApbbfLayout::segment) return admit_shape<false>(table, batch);
  if (table.layout == ApbbfLayout::column) return admit_shape<true>(table, batch);
  const unsigned segments = table.ring.segments();
  return segments == 8    ? admit_all_lines<8>(table, batch)
         : segments == 16 ? admit_all_lines<16>(table, batch)
                          : admit_all_lines<32>(table, batch);
}

void ask(const ApbbfTable& table, const Digest* digests, std::size_t count, Verdict* verdicts) {
  if (table.layout == ApbbfLayout::segment)
    return ask_shape<false>(table, digests, count, verdicts);
  if (table.layout == ApbbfLayout::column) return ask_shape<true>(table, digests, count, verdicts);
  const unsigned segments = table.ring.segments();
  segments == 8    ? ask_lines<8>(table, digests, count, verdicts)
  : segments == 16 ? ask_lines<16>(table, digests, count, verdicts)
                   : ask_lines<32>(table, digests, count, verdicts);
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {
namespace {

// Calls `work` with the plain segments of this shape: for single keys of any age.
template <class Work>
auto with_segments(const ApbbfTable& table, Work work) {
  const auto of_layout = [&]<bool kColumn>() {
    if (table.block == 64)
      return table.bits == 4 ? work(BlockSegments<64, 4, kColumn>(table))
                             : work(BlockSegments<64, 8, kColumn>(table));
    return table.bits == 4 ? work(BlockSegments<512, 4, kColumn>(table))
                           : work(BlockSegments<512, 8, kColumn>(table));
  };
  return table.layout == ApbbfLayout::column ? of_layout.template operator()<true>()
                                             : of_layout.template operator()<false>();
}

HWY_EXPORT(admit);
HWY_EXPORT(ask);

}  // namespace

std::size_t apbbf_admit(const ApbbfTable& table, AgeBatch& batch) noexcept {
  if (table.strips) return apbbf_admit_behind(table, batch);
  if (table.pages) return apbbf_admit_paged(table, batch);
  return HWY_DYNAMIC_DISPATCH(admit)(table, batch);
}

void apbbf_ask(const ApbbfTable& table, const Digest* digests, std::size_t count,
               Verdict* verdicts) noexcept {
  if (table.strips) return apbbf_ask_behind(table, digests, count, verdicts);
  if (table.pages) return apbbf_ask_paged(table, digests, count, verdicts);
  HWY_DYNAMIC_DISPATCH(ask)(table, digests, count, verdicts);
}

bool apbbf_holds(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept {
  if (table.strips) return apbbf_holds_behind(table, digest, age);
  if (table.pages) return apbbf_holds_paged(table, digest, age);
  if (table.layout != ApbbfLayout::line)
    return with_segments(table, [&](const auto& segments) {
      return AgePartition(segments, table.ring, table.stale).holds(digest, age);
    });
  const LineLanes lanes(table.ring, age);
  const std::uint64_t line = line_of(table, digest), second = line_second_word(digest);
  const bool stale = StaleUnits(table.stale).has(line);
  std::uint64_t missing[kLineWords];
  for (unsigned i = 0; i < kLineWords; ++i)
    missing[i] =
        line_mask(digest, second, i) & ~(line_words(table, line)[i] & lanes.keep[stale][i]);
  return lanes.holds(line_matches(missing, table.ring.segments()));
}

void apbbf_write(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept {
  if (table.strips) return apbbf_write_behind(table, digest, age);
  if (table.pages) return apbbf_write_paged(table, digest, age);
  if (table.layout != ApbbfLayout::line)
    return with_segments(table, [&](const auto& segments) {
      AgePartition(segments, table.ring, table.stale).write(digest, age);
    });
  const LineLanes lanes(table.ring, age);
  const std::uint64_t line = line_of(table, digest), second = line_second_word(digest);
  std::uint64_t* const words = line_words(table, line);
  if (StaleUnits(table.stale).has(line)) {
    apbbf_empty(table, line);
    StaleUnits(table.stale).remove(line);
  }
  for (unsigned i = 0; i < kLineWords; ++i)
    words[i] |= line_mask(digest, second, i) & lanes.take[1][i];
}

void apbbf_empty(const ApbbfTable& table, std::uint64_t unit) noexcept {
  if (table.pages) return apbbf_empty_paged(table, unit);
  if (table.layout != ApbbfLayout::line)
    return with_segments(table,
                         [&](const auto& segments) { segments.empty(table.ring.youngest, unit); });
  const unsigned bytes = table.block / 8;
  std::memset(table.bytes + unit * kLineBytes + table.ring.youngest * bytes, 0, bytes);
}

}  // namespace sluice::kernels
#endif  // HWY_ONCE
