#include "sluice/kernels/shard_select.hpp"

#include <array>
#include <cstring>

// clang-format off
#include "sluice/base/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/shard_select.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "sluice/kernels/vectors_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {

// Records of one byte of marks, or fewer at the end. Returns how many are selected. Without a
// branch, which would be mispredicted for every other record.
HWY_INLINE std::size_t select_few(const Digest* digests, std::size_t count, ShardRange range,
                                  Digest* selected, std::uint8_t* mark) {
  std::size_t taken = 0;
  unsigned bits = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned in = range.has(digests[i]) ? 1 : 0;
    selected[taken] = digests[i];
    bits |= in << i;
    taken += in;
  }
  *mark = static_cast<std::uint8_t>(bits);
  return taken;
}

#if HWY_TARGET == HWY_AVX3

// Which words of four digests go where, for each set of them: those of it first.
struct Moves {
  alignas(64) std::array<std::array<std::uint64_t, 8>, 16> words{};
};
constexpr Moves make_moves() {
  Moves moves;
  for (unsigned set = 0; set < 16; ++set) {
    unsigned to = 0;
    for (unsigned digest = 0; digest < 4; ++digest)
      if (set >> digest & 1)
        for (unsigned word = 0; word < 2; ++word) moves.words[set][to++] = 2 * digest + word;
  }
  return moves;
}
constexpr Moves kMoves = make_moves();

// The sums of eight digests are taken at once: of the first four in the even lanes, of the others
// in the odd ones. What is behind those selected is covered by the next store.
HWY_INLINE std::size_t select_eight(const Digest* digests, ShardRange range, Digest* selected,
                                    std::uint8_t* mark) {
  const __m512i front = _mm512_loadu_si512(digests);
  const __m512i back = _mm512_loadu_si512(digests + 4);
  const __m512i sum =
      _mm512_add_epi64(_mm512_unpacklo_epi64(front, back), _mm512_unpackhi_epi64(front, back));
  const __m512i mixed = _mm512_mul_epu32(sum, _mm512_set1_epi64(kShardMixer));
  const __m512i above = _mm512_sub_epi32(mixed, _mm512_set1_epi64(range.first));
  // Of each lane the low half counts: every other bit.
  const unsigned in = in_register(
      _mm512_cmple_epu32_mask(above, _mm512_set1_epi32(static_cast<int>(range.extent))));
  const unsigned of_front = _pext_u32(in, 0x1111);
  const unsigned of_back = _pext_u32(in, 0x4444);
  const auto moved = [](unsigned set, __m512i words) HWY_ATTR {
    return _mm512_permutexvar_epi64(_mm512_load_si512(kMoves.words[set].data()), words);
  };
  const auto taken = static_cast<std::size_t>(__builtin_popcount(of_front));
  _mm512_storeu_si512(selected, moved(of_front, front));
  _mm512_storeu_si512(selected + taken, moved(of_back, back));
  *mark = static_cast<std::uint8_t>(of_front | of_back << 4);
  return taken + static_cast<std::size_t>(__builtin_popcount(of_back));
}

#else

HWY_INLINE std::size_t select_eight(const Digest* digests, ShardRange range, Digest* selected,
                                    std::uint8_t* mark) {
  return select_few(digests, 8, range, selected, mark);
}

#endif

constexpr std::size_t kDigestsAhead = 64;

std::size_t select_shards(const Digest* digests, std::size_t count, ShardRange range,
                          Digest* selected, std::uint8_t* marks) {
  std::size_t taken = 0;
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    // Another core may have written them, and the processor's own asking ahead ends with the page.
    __builtin_prefetch(digests + i + kDigestsAhead);
    __builtin_prefetch(digests + i + kDigestsAhead + 4);
    taken += select_eight(digests + i, range, selected + taken, marks + i / 8);
  }
  if (i < count)
    taken += select_few(digests + i, count - i, range, selected + taken, marks + i / 8);
  return taken;
}

void spread_verdicts(const Verdict* verdicts, std::uint8_t* marks, std::size_t bytes) {
  std::size_t i = 0;
#if HWY_TARGET == HWY_AVX3
  for (; i + 8 <= bytes; i += 8) {
    std::uint64_t in;
    std::memcpy(&in, marks + i, 8);
    const __m512i next = _mm512_loadu_si512(verdicts);
    const std::uint64_t duplicates = _pdep_u64(_mm512_test_epi8_mask(next, next), in);
    std::memcpy(marks + i, &duplicates, 8);
    verdicts += __builtin_popcountll(in);
  }
#endif
  for (; i < bytes; ++i) {
    const unsigned in = marks[i];
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX2
    std::uint64_t next;
    std::memcpy(&next, verdicts, 8);
    marks[i] = static_cast<std::uint8_t>(
        _pdep_u32(static_cast<unsigned>(_pext_u64(next, 0x0101'0101'0101'0101)), in));
    verdicts += __builtin_popcount(in);
#else
    unsigned duplicates = 0;
    for (unsigned left = in; left != 0; left &= left - 1)
      if (*verdicts++ == Verdict::duplicate) duplicates |= left & -left;
    marks[i] = static_cast<std::uint8_t>(duplicates);
#endif
  }
}

void unite_verdicts(const std::uint8_t* marks, std::size_t planes, std::size_t plane_bytes,
                    Verdict* verdicts, std::size_t count) {
  const auto duplicates = [&](std::size_t byte) {
    unsigned bits = 0;
    for (std::size_t plane = 0; plane < planes; ++plane) bits |= marks[plane * plane_bytes + byte];
    return bits;
  };
  std::size_t i = 0;
#if HWY_TARGET == HWY_AVX3
  for (; i + 64 <= count; i += 64) {
    std::uint64_t all = 0;
    for (std::size_t plane = 0; plane < planes; ++plane) {
      std::uint64_t bits;
      std::memcpy(&bits, marks + plane * plane_bytes + i / 8, 8);
      all |= bits;
    }
    _mm512_storeu_si512(verdicts + i, _mm512_maskz_set1_epi8(all, 1));
  }
#endif
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX2
  for (; i + 8 <= count; i += 8) {
    const std::uint64_t all = _pdep_u64(duplicates(i / 8), 0x0101'0101'0101'0101);
    std::memcpy(verdicts + i, &all, 8);
  }
#endif
  for (; i < count; ++i) verdicts[i] = static_cast<Verdict>(duplicates(i / 8) >> (i % 8) & 1u);
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {

HWY_EXPORT(select_shards);
HWY_EXPORT(spread_verdicts);
HWY_EXPORT(unite_verdicts);

std::size_t select_shards(std::span<const Digest> digests, ShardRange range, Digest* selected,
                          std::uint8_t* marks) noexcept {
  return HWY_DYNAMIC_DISPATCH(select_shards)(digests.data(), digests.size(), range, selected,
                                             marks);
}

void spread_verdicts(const Verdict* verdicts, std::span<std::uint8_t> marks) noexcept {
  HWY_DYNAMIC_DISPATCH(spread_verdicts)(verdicts, marks.data(), marks.size());
}

void unite_verdicts(const std::uint8_t* marks, std::size_t planes, std::size_t plane_bytes,
                    std::span<Verdict> verdicts) noexcept {
  HWY_DYNAMIC_DISPATCH(unite_verdicts)
  (marks, planes, plane_bytes, verdicts.data(), verdicts.size());
}

}  // namespace sluice::kernels
#endif  // HWY_ONCE
