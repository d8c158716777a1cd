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

// Records of one byte of marks, or fewer at the end, without a branch on their slice: two cycles a
// digest, of which vectors that compress and store four digests at a time take off an eighth.
// Returns how many of them went to the second.
HWY_INLINE std::size_t sort_few(const Digest* digests, std::size_t count, Digest* first,
                                Digest* second, std::uint8_t* mark) {
  std::size_t seconds = 0;
  unsigned bits = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned slice = slice_of(digests[i], 2);
    Digest* const to = slice != 0 ? second + seconds : first + (i - seconds);
    *to = digests[i];
    bits |= slice << i;
    seconds += slice;
  }
  *mark = static_cast<std::uint8_t>(bits);
  return seconds;
}

HWY_INLINE void gather_few(unsigned bits, std::size_t count, const Verdict* first,
                           const Verdict* second, Verdict* verdicts) {
  std::size_t seconds = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t slice = bits >> i & 1;
    verdicts[i] = slice != 0 ? second[seconds] : first[i - seconds];
    seconds += slice;
  }
}

std::size_t sort_two(const Digest* digests, std::size_t count, Digest* first, Digest* second,
                     std::uint8_t* marks) {
  std::size_t seconds = 0;
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    seconds += sort_few(digests + i, 8, first + (i - seconds), second + seconds, marks + i / 8);
  if (i < count)
    seconds +=
        sort_few(digests + i, count - i, first + (i - seconds), second + seconds, marks + i / 8);
  return seconds;
}

void gather_two(const std::uint8_t* marks, std::size_t count, const Verdict* first,
                const Verdict* second, Verdict* verdicts) {
  std::size_t seconds = 0;
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const unsigned bits = marks[i / 8];
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX2
    // Whole bytes are dealt out to the places whose mark is set, and to those where it is not.
    const std::uint64_t places = _pdep_u64(bits, 0x0101'0101'0101'0101) * 0xFF;
    std::uint64_t of_first, of_second;
    std::memcpy(&of_first, first + (i - seconds), 8);
    std::memcpy(&of_second, second + seconds, 8);
    const std::uint64_t all = _pdep_u64(of_second, places) | _pdep_u64(of_first, ~places);
    std::memcpy(verdicts + i, &all, 8);
#else
    gather_few(bits, 8, first + (i - seconds), second + seconds, verdicts + i);
#endif
    seconds += static_cast<std::size_t>(__builtin_popcount(bits));
  }
  if (i < count)
    gather_few(marks[i / 8], count - i, first + (i - seconds), second + seconds, verdicts + i);
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {

HWY_EXPORT(sort_two);
HWY_EXPORT(gather_two);

std::size_t sort_two(const Digest* digests, std::size_t count, Digest* first, Digest* second,
                     std::uint8_t* marks) noexcept {
  return HWY_DYNAMIC_DISPATCH(sort_two)(digests, count, first, second, marks);
}

void gather_two(const std::uint8_t* marks, std::size_t count, const Verdict* first,
                const Verdict* second, Verdict* verdicts) noexcept {
  HWY_DYNAMIC_DISPATCH(gather_two)(marks, count, first, second, verdicts);
}

}  // namespace sluice::kernels
#endif  // HWY_ONCE
