#include "sluice/kernels/sample.hpp"

#include <algorithm>

// clang-format off
#include "sluice/base/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/sample.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {

#if SLUICE_PORTABLE_TARGET

std::size_t next_sampled(std::span<const Digest> digests, std::size_t from,
                         std::uint64_t threshold) {
  return next_sampled_portable(digests, from, threshold);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Tests as many keys as a vector has 32-bit lanes at once, in any order; if one may be in the
// sample, they are tested one by one.
std::size_t next_sampled(std::span<const Digest> digests, std::size_t from,
                         std::uint64_t threshold) {
  const hn::ScalableTag<std::uint32_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto odd = hn::Set(d, 0x9E3779B1u);
  const auto most = hn::Set(d, static_cast<std::uint32_t>(threshold >> 32));
  const Digest* const begin = digests.data();
  while (from < digests.size()) {
    for (; from + lanes <= digests.size(); from += lanes) {
      // Four words of 32 bits per key: the first is the low half of `lo`, the third that of `hi`.
      const auto* words = reinterpret_cast<const std::uint32_t*>(begin + from);
      const auto a = hn::LoadU(d, words);
      const auto b = hn::LoadU(d, words + lanes);
      const auto c = hn::LoadU(d, words + 2 * lanes);
      const auto e = hn::LoadU(d, words + 3 * lanes);
      const auto front = hn::ConcatEven(d, b, a);
      const auto back = hn::ConcatEven(d, e, c);
      const auto lo = hn::ConcatEven(d, back, front);
      const auto hi = hn::ConcatOdd(d, back, front);
      const auto high = hn::Add(hn::Mul(lo, odd), hi);
      if (!hn::AllFalse(d, hn::Eq(hn::Min(high, most), high))) break;
    }
    const std::size_t end = std::min(from + lanes, digests.size());
    for (; from < end; ++from)
      if (sample_word(begin[from]) <= threshold) return from;
  }
  return digests.size();
}

#endif

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {

HWY_EXPORT(next_sampled);

std::size_t next_sampled(std::span<const Digest> digests, std::size_t from,
                         std::uint64_t threshold) {
  return HWY_DYNAMIC_DISPATCH(next_sampled)(digests, from, threshold);
}

std::size_t next_sampled_portable(std::span<const Digest> digests, std::size_t from,
                                  std::uint64_t threshold) {
  while (from < digests.size() && sample_word(digests[from]) > threshold) ++from;
  return from < digests.size() ? from : digests.size();
}

}  // namespace sluice::kernels
#endif
