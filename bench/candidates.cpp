#include "candidates.hpp"

// clang-format off
#include "sluice/base/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/candidates.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "sluice/base/bits.hpp"
#include "sluice/kernels/blocked.hpp"
#include "sluice/kernels/prefetch.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Position i of a digest whose bits lie anywhere in a line: 9 bits of a word that is mixed on.
template <bool kRemember>
HWY_INLINE bool judge_anywhere(std::uint64_t* block, const Digest& digest, unsigned probes) {
  std::uint64_t word = digest.hi;
  bool present = true;
  for (unsigned i = 0; i < probes; ++i) {
    if (i % 7 == 6) word = fold_multiply(digest.hi + i, 0x9E3779B97F4A7C15);
    const std::uint64_t mask = std::uint64_t{1} << (word & 63);
    std::uint64_t& held = block[(word >> 6) & 7];
    present &= (held & mask) != 0;
    if (kRemember) held |= mask;
    word >>= 9;
  }
  return present;
}

#if SLUICE_PORTABLE_TARGET

template <Layout kLayout, bool kRemember>
bool judge_lanes(std::uint64_t* block, const Digest& digest) {
  constexpr bool kHalf = kLayout == Layout::half_8x32;
  const kernels::BlockedTable table{block, 1, kLayout == Layout::lanes_8x64 ? 8u : 16u};
  std::uint64_t missing = 0;
  for (unsigned i = 0; i < (kHalf ? 4 : 8); ++i) {
    const std::uint64_t mask =
        kHalf ? (std::uint64_t{1} << ((digest.hi >> (5 * i)) & 31)) |
                    (std::uint64_t{1} << (32 + ((digest.hi >> (32 + 5 * i)) & 31)))
              : kernels::block_mask(table, digest, i);
    missing |= mask & ~block[i];
    if (kRemember) block[i] |= mask;
  }
  return missing == 0;
}

#else

alignas(64) constexpr std::uint64_t kShift8x64[] = {0, 6, 12, 18, 24, 30, 36, 42};
alignas(64) constexpr std::uint32_t kShift16x32[] = {0,  0,  0,  0,  5,  5,  5,  5,
                                                     10, 10, 10, 10, 15, 15, 15, 15};
alignas(64) constexpr std::uint32_t kShift8x32[] = {0, 0, 5, 5, 10, 10, 15, 15};

// `source` repeats over the lanes, and each lane takes its own bits of it.
template <bool kRemember, class D, class Lane = hn::TFromD<D> >
HWY_INLINE bool judge_vector(D d, hn::Vec<D> source, const Lane* shifts, Lane* lanes) {
  const auto position =
      hn::And(source >> hn::Load(d, shifts), hn::Set(d, static_cast<Lane>(8 * sizeof(Lane) - 1)));
  const auto mask = hn::Set(d, Lane{1}) << position;
  const auto held = hn::Load(d, lanes);
  if (kRemember) hn::Store(hn::Or(held, mask), d, lanes);
  return hn::AllTrue(d, hn::Eq(hn::AndNot(held, mask), hn::Zero(d)));
}

template <Layout kLayout, bool kRemember>
HWY_INLINE bool judge_lanes(std::uint64_t* block, const Digest& digest) {
  bool present = true;
  if constexpr (kLayout == Layout::lanes_8x64) {
    const hn::CappedTag<std::uint64_t, 8> d;
    for (std::size_t at = 0; at < 8; at += hn::Lanes(d))
      present &= judge_vector<kRemember>(d, hn::Set(d, digest.hi), kShift8x64 + at, block + at);
    return present;
  }
  auto* const lanes = reinterpret_cast<std::uint32_t*>(block);
  if constexpr (kLayout == Layout::lanes_16x32) {
    const hn::CappedTag<std::uint32_t, 16> d;
    alignas(16) const std::uint64_t words[2] = {digest.hi, kernels::second_word(digest)};
    const auto source = hn::BitCast(d, hn::LoadDup128(hn::CappedTag<std::uint64_t, 8>(), words));
    for (std::size_t at = 0; at < 16; at += hn::Lanes(d))
      present &= judge_vector<kRemember>(d, source, kShift16x32 + at, lanes + at);
  } else {
    const hn::CappedTag<std::uint32_t, 8> d;
    const auto source = hn::BitCast(d, hn::Set(hn::CappedTag<std::uint64_t, 4>(), digest.hi));
    for (std::size_t at = 0; at < 8; at += hn::Lanes(d))
      present &= judge_vector<kRemember>(d, source, kShift8x32 + at, lanes + at);
  }
  return present;
}

#endif

template <Layout kLayout, bool kRemember>
std::size_t judge_all(const Candidate& table, const Digest* digests, std::size_t count,
                      Verdict* verdicts, std::size_t distance, std::size_t from_bytes) {
  const std::uint64_t block_words = block_bits(kLayout) / 64;
  std::size_t duplicates = 0;
  const auto block_of = [&](std::size_t i) {
    return table.words + scale_to(digests[i].lo, table.blocks) * block_words;
  };
  kernels::with_prefetch(
      count, table.blocks * block_words * 8, block_of,
      [&](std::size_t i) HWY_ATTR {
        bool duplicate = false;
        if constexpr (kLayout == Layout::anywhere)
          duplicate = judge_anywhere<kRemember>(block_of(i), digests[i], table.probes);
        else
          duplicate = judge_lanes<kLayout, kRemember>(block_of(i), digests[i]);
        verdicts[i] = static_cast<Verdict>(duplicate);
        duplicates += duplicate;
      },
      distance, from_bytes);
  return count - duplicates;
}

template <bool kRemember>
std::size_t judge(const Candidate& table, const Digest* digests, std::size_t count,
                  Verdict* verdicts, std::size_t distance, std::size_t from_bytes) {
  switch (table.layout) {
    case Layout::lanes_8x64:
      return judge_all<Layout::lanes_8x64, kRemember>(table, digests, count, verdicts, distance,
                                                      from_bytes);
    case Layout::lanes_16x32:
      return judge_all<Layout::lanes_16x32, kRemember>(table, digests, count, verdicts, distance,
                                                       from_bytes);
    case Layout::half_8x32:
      return judge_all<Layout::half_8x32, kRemember>(table, digests, count, verdicts, distance,
                                                     from_bytes);
    case Layout::anywhere:
      break;
  }
  return judge_all<Layout::anywhere, kRemember>(table, digests, count, verdicts, distance,
                                                from_bytes);
}

std::size_t observe(const Candidate& table, const Digest* digests, std::size_t count,
                    Verdict* verdicts, std::size_t distance, std::size_t from_bytes) {
  return judge<true>(table, digests, count, verdicts, distance, from_bytes);
}
std::size_t may_contain(const Candidate& table, const Digest* digests, std::size_t count,
                        Verdict* verdicts, std::size_t distance, std::size_t from_bytes) {
  return judge<false>(table, digests, count, verdicts, distance, from_bytes);
}

}  // namespace sluice::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::bench {

HWY_EXPORT(observe);
HWY_EXPORT(may_contain);

std::size_t candidate_observe(const Candidate& table, const Digest* digests, std::size_t count,
                              Verdict* verdicts, std::size_t distance, std::size_t from_bytes) {
  return HWY_DYNAMIC_DISPATCH(observe)(table, digests, count, verdicts, distance, from_bytes);
}
std::size_t candidate_may_contain(const Candidate& table, const Digest* digests, std::size_t count,
                                  Verdict* verdicts, std::size_t distance, std::size_t from_bytes) {
  return HWY_DYNAMIC_DISPATCH(may_contain)(table, digests, count, verdicts, distance, from_bytes);
}

}  // namespace sluice::bench
#endif  // HWY_ONCE
