#include "sluice/kernels/slice_sort.hpp"

#include <cstring>

// clang-format off
#include "sluice/kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/slice_sort.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#if defined(__x86_64__)
#include <immintrin.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {

// 0 of the first slice, all ones of the second: what to choose by without a branch, which would be
// mispredicted for every other record.
HWY_INLINE std::size_t chooser(unsigned slice) {
  return std::size_t{0} - slice;
}

// Records of one byte of marks, or fewer at the end. Returns how many of them are of the second.
HWY_INLINE std::size_t sort_few(const Digest* digests, std::size_t count, Digest* first,
                                std::size_t apart, std::uint8_t* mark) {
  std::size_t seconds = 0;
  unsigned bits = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned slice = slice_of(digests[i], 2);
    const std::size_t in_first = i - seconds;
    first[in_first + ((apart + seconds - in_first) & chooser(slice))] = digests[i];
    bits |= slice << i;
    seconds += slice;
  }
  *mark = static_cast<std::uint8_t>(bits);
  return seconds;
}

HWY_INLINE void gather_few(unsigned bits, std::size_t count, const Verdict* first,
                           std::size_t apart, Verdict* verdicts) {
  std::size_t seconds = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned slice = bits >> i & 1;
    const std::size_t in_first = i - seconds;
    verdicts[i] = first[in_first + ((apart + seconds - in_first) & chooser(slice))];
    seconds += slice;
  }
}

#if HWY_TARGET == HWY_AVX3

// A digest is two lanes, and both know its slice: four digests at a time, those of each slice are
// moved together and stored, with whatever is behind them, which the next store covers. Highway's
// own Compress copies a table with each use.
HWY_INLINE std::size_t sort_eight(const Digest* digests, Digest* first, std::size_t apart,
                                  std::uint8_t* mark) {
  const auto lanes_of_second = [](__m512i words) HWY_ATTR {
    const __m512i sum = _mm512_add_epi32(words, _mm512_shuffle_epi32(words, _MM_PERM_BADC));
    const __m512i mixed = _mm512_mullo_epi32(sum, _mm512_set1_epi32(static_cast<int>(kSliceMixer)));
    return _mm512_test_epi64_mask(mixed, _mm512_set1_epi64(std::int64_t{1} << 31));
  };
  const __m512i front = _mm512_loadu_si512(digests);
  const __m512i back = _mm512_loadu_si512(digests + 4);
  const __mmask8 in_front = lanes_of_second(front);
  const __mmask8 in_back = lanes_of_second(back);
  const std::size_t of_front = static_cast<std::size_t>(__builtin_popcount(in_front)) / 2;
  const auto no = [](__mmask8 mask) { return static_cast<__mmask8>(~mask); };
  _mm512_storeu_si512(first, _mm512_maskz_compress_epi64(no(in_front), front));
  _mm512_storeu_si512(first + apart, _mm512_maskz_compress_epi64(in_front, front));
  _mm512_storeu_si512(first + (4 - of_front), _mm512_maskz_compress_epi64(no(in_back), back));
  _mm512_storeu_si512(first + apart + of_front, _mm512_maskz_compress_epi64(in_back, back));
  const unsigned bits =
      _pext_u32(static_cast<unsigned>(in_front) | static_cast<unsigned>(in_back) << 8, 0x5555);
  *mark = static_cast<std::uint8_t>(bits);
  return static_cast<std::size_t>(__builtin_popcount(bits));
}

#else

HWY_INLINE std::size_t sort_eight(const Digest* digests, Digest* first, std::size_t apart,
                                  std::uint8_t* mark) {
  return sort_few(digests, 8, first, apart, mark);
}

#endif

// With each eight records `first` goes on by those of the first slice, and what is apart from it by
// those of the second.
std::size_t sort_two(const Digest* digests, std::size_t count, Digest* first, std::size_t apart,
                     std::uint8_t* marks) {
  std::size_t seconds = 0;
  std::size_t i = 0;
  const auto apart_now = [&] { return apart + 2 * seconds - i; };
  for (; i + 8 <= count; i += 8)
    seconds += sort_eight(digests + i, first + (i - seconds), apart_now(), marks + i / 8);
  if (i < count)
    seconds += sort_few(digests + i, count - i, first + (i - seconds), apart_now(), marks + i / 8);
  return seconds;
}

void gather_two(const std::uint8_t* marks, std::size_t count, const Verdict* first,
                std::size_t apart, Verdict* verdicts) {
  std::size_t seconds = 0;
  std::size_t i = 0;
  const auto apart_now = [&] { return apart + 2 * seconds - i; };
  for (; i + 8 <= count; i += 8) {
    const unsigned bits = marks[i / 8];
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX2
    // Whole bytes are dealt out to the places whose mark is set, and to those where it is not.
    const std::uint64_t places = _pdep_u64(bits, 0x0101'0101'0101'0101) * 0xFF;
    std::uint64_t of_first, of_second;
    std::memcpy(&of_first, first + (i - seconds), 8);
    std::memcpy(&of_second, first + apart + seconds, 8);
    const std::uint64_t all = _pdep_u64(of_second, places) | _pdep_u64(of_first, ~places);
    std::memcpy(verdicts + i, &all, 8);
#else
    gather_few(bits, 8, first + (i - seconds), apart_now(), verdicts + i);
#endif
    seconds += static_cast<std::size_t>(__builtin_popcount(bits));
  }
  if (i < count)
    gather_few(marks[i / 8], count - i, first + (i - seconds), apart_now(), verdicts + i);
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {

HWY_EXPORT(sort_two);
HWY_EXPORT(gather_two);

std::size_t sort_two(const Digest* digests, std::size_t count, Digest* sorted, std::size_t apart,
                     std::uint8_t* marks) noexcept {
  return HWY_DYNAMIC_DISPATCH(sort_two)(digests, count, sorted, apart, marks);
}

void gather_two(const std::uint8_t* marks, std::size_t count, const Verdict* sorted,
                std::size_t apart, Verdict* verdicts) noexcept {
  HWY_DYNAMIC_DISPATCH(gather_two)(marks, count, sorted, apart, verdicts);
}

}  // namespace sluice::kernels
#endif  // HWY_ONCE
