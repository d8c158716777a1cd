#include "sluice/kernels/apbbf.hpp"

// clang-format off
#include "sluice/kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/apbbf.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "sluice/kernels/age_line.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if SLUICE_PORTABLE_TARGET

template <unsigned kBlock, unsigned kBits, bool kColumn>
using Segments = BlockSegments<kBlock, kBits, kColumn>;

// What a line lacks of a key, and the key's bits.
struct LineProbe {
  std::uint64_t held[kLineWords], mask[kLineWords];

  LineProbe(const std::uint64_t* words, const std::uint64_t* keep, const Digest& digest) {
    const std::uint64_t second = line_second_word(digest);
    for (unsigned i = 0; i < kLineWords; ++i) {
      held[i] = words[i] & keep[i];
      mask[i] = line_mask(digest, second, i);
    }
  }
  template <unsigned kSegments>
  std::uint64_t matches() const {
    std::uint64_t missing[kLineWords];
    for (unsigned i = 0; i < kLineWords; ++i) missing[i] = mask[i] & ~held[i];
    return line_matches(missing, kSegments);
  }
  void write(std::uint64_t* words, const std::uint64_t* take) const {
    for (unsigned i = 0; i < kLineWords; ++i) words[i] = held[i] | (mask[i] & take[i]);
  }
};

#else

using Tag64 = hn::CappedTag<std::uint64_t, 8>;
using Tag32 = hn::CappedTag<std::uint32_t, 16>;
constexpr std::size_t kLanes64 = hn::MaxLanes(Tag64());
constexpr std::size_t kLanes32 = hn::MaxLanes(Tag32());
constexpr std::size_t kParts = kLineBytes / (kLanes64 * sizeof(std::uint64_t));

// Whole lines as vectors; single words are left to plain code. The functions are not forced inline:
// AgePartition, which calls them, takes on this instruction set only where it is itself inlined.
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
    return hn::AllTrue(d, hn::Eq(missing, hn::Zero(d)));
  }
  void set(const Place& place) const noexcept {
    const Tag64 d;
    for (std::size_t part = 0; part < kParts; ++part) {
      std::uint64_t* const words = place.block + part * kLanes64;
      hn::Store(hn::Or(hn::Load(d, words), mask(place.positions, part)), d, words);
    }
  }
  void set(const Place& place, std::uint64_t keep, std::uint64_t* to) const noexcept {
    const Tag64 d;
    for (std::size_t part = 0; part < kParts; ++part) {
      const auto held = hn::And(hn::Load(d, place.block + part * kLanes64), hn::Set(d, keep));
      hn::Store(hn::Or(held, mask(place.positions, part)), d, to + part * kLanes64);
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

template <class D>
HWY_INLINE std::uint64_t bits_of(D d, hn::Mask<D> mask) {
  constexpr std::size_t kBytes = (hn::MaxLanes(D()) + 7) / 8;
  std::uint8_t bytes[8];
  hn::StoreMaskBits(d, mask, bytes);
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, kBytes);
  return bits;
}

alignas(64) constexpr std::uint32_t kShift32[16] = {0,  0,  0,  0,  8,  8,  8,  8,
                                                    16, 16, 16, 16, 24, 24, 24, 24};

struct LineProbe {
  hn::Vec<Tag64> held[kParts], mask[kParts];

  HWY_INLINE LineProbe(const std::uint64_t* words, const std::uint64_t* keep,
                       const Digest& digest) {
    const Tag64 d;
    const Tag32 d32;
    alignas(16) const std::uint64_t sources[2] = {digest.hi, line_second_word(digest)};
    const auto source = hn::BitCast(d32, hn::LoadDup128(d, sources));
    for (std::size_t part = 0; part < kParts; ++part) {
      held[part] =
          hn::And(hn::Load(d, words + part * kLanes64), hn::Load(d, keep + part * kLanes64));
      const auto byte = source >> hn::Load(d32, kShift32 + part * kLanes32);
      const auto low = hn::Set(d32, 1) << hn::And(byte, hn::Set(d32, 15));
      const auto high = hn::Set(d32, 0x10000) << hn::And(hn::ShiftRight<4>(byte), hn::Set(d32, 15));
      mask[part] = hn::BitCast(d, hn::Or(low, high));
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

// Straight code: verdicts and stale lines are as good as random, and a wrong guess costs more than
// the work it saves. A line that is met is fresh from then on, whatever the verdict.
template <unsigned kSegments, unsigned kSteps, bool kRefresh>
HWY_NOINLINE std::uint64_t admit_lines(const ApbbfTable& given, const Digest* digests,
                                       std::size_t count, Verdict* verdicts) {
  const ApbbfTable table = given;
  const LineLanes lanes(table.ring, 0);
  std::uint64_t written = 0;
  with_prefetch<kNearLocality>(
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
        const bool duplicate = lanes.template has_run<kSegments, kSteps>(matches);
        const bool write = kRefresh ? !lanes.holds(matches) : !duplicate;
        probe.write(words, lanes.take[write]);
        verdicts[i] = static_cast<Verdict>(duplicate);
        written += write;
      });
  return written;
}

// Judges until the room is used up. A key takes at most one, so as many keys as there is room need
// no watching.
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
    return admit(table, digests, count, verdicts);
  });
}

template <unsigned kSegments>
HWY_NOINLINE void ask_lines(const ApbbfTable& given, const Digest* digests, std::size_t count,
                            Verdict* verdicts) {
  const ApbbfTable table = given;
  const LineLanes lanes(table.ring, 0);
  const StaleUnits stale(table.stale);
  with_prefetch<kNearLocality>(
      count, table.blocks * kLineBytes,
      [&](std::size_t i) { return line_words(table, line_of(table, digests[i])); },
      [&](std::size_t i) HWY_ATTR {
        const std::uint64_t line = line_of(table, digests[i]);
        const LineProbe probe(line_words(table, line), lanes.keep[stale.has(line)], digests[i]);
        verdicts[i] = static_cast<Verdict>(
            lanes.template has_run<kSegments, 5>(probe.template matches<kSegments>()));
      });
}

template <unsigned kBlock, unsigned kBits, bool kRefresh, int kFixed>
HWY_NOINLINE std::uint64_t admit_columns(const ApbbfTable& table, const Digest* digests,
                                         std::size_t count, Verdict* verdicts) {
  using S = Segments<kBlock, kBits, true>;
  const S segments(table);
  const AgeTable ages(table.ring, segments.stride());
  const AgeBlocks<S, kFixed> blocks(segments, table.ring, table.stale, ages);
  return table.total_bytes() >= kPrefetchFromBytes
             ? blocks.template admit<kRefresh, true>(digests, count, verdicts)
             : blocks.template admit<kRefresh, false>(digests, count, verdicts);
}

template <unsigned kBlock, unsigned kBits, bool kColumn>
HWY_NOINLINE std::size_t admit_blocks(const ApbbfTable& table, AgeBatch& batch) {
  if constexpr (kColumn) {
    const auto run = batch.refresh       ? admit_columns<kBlock, kBits, true, 0>
                     : table.ring.k == 2 ? admit_columns<kBlock, kBits, false, 2>
                                         : admit_columns<kBlock, kBits, false, 0>;
    return admit_runs(batch, [&](const Digest* digests, std::size_t count, Verdict* verdicts) {
      return run(table, digests, count, verdicts);
    });
  } else {
    const AgePartition partition(Segments<kBlock, kBits, false>(table), table.ring, table.stale);
    return partition.admit(batch, table.total_bytes());
  }
}

template <unsigned kBlock, unsigned kBits, bool kColumn>
HWY_NOINLINE void ask_blocks(const ApbbfTable& table, const Digest* digests, std::size_t count,
                             Verdict* verdicts) {
  using S = Segments<kBlock, kBits, kColumn>;
  const S segments(table);
  if constexpr (kColumn) {
    const AgeTable ages(table.ring, segments.stride());
    const AgeBlocks<S, 0> blocks(segments, table.ring, table.stale, ages);
    table.total_bytes() >= kPrefetchFromBytes
        ? blocks.template ask<true>(digests, count, verdicts)
        : blocks.template ask<false>(digests, count, verdicts);
  } else {
    const AgePartition partition(segments, table.ring, table.stale);
    partition.ask(digests, count, verdicts, table.total_bytes());
  }
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
  return HWY_DYNAMIC_DISPATCH(admit)(table, batch);
}

void apbbf_ask(const ApbbfTable& table, const Digest* digests, std::size_t count,
               Verdict* verdicts) noexcept {
  HWY_DYNAMIC_DISPATCH(ask)(table, digests, count, verdicts);
}

bool apbbf_holds(const ApbbfTable& table, const Digest& digest, unsigned age) noexcept {
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
  if (table.layout != ApbbfLayout::line)
    return with_segments(table,
                         [&](const auto& segments) { segments.empty(table.ring.youngest, unit); });
  const unsigned bytes = table.block / 8;
  std::memset(table.bytes + unit * kLineBytes + table.ring.youngest * bytes, 0, bytes);
}

}  // namespace sluice::kernels
#endif  // HWY_ONCE
