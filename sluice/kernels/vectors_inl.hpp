// What Highway lacks, or does in more steps than necessary. Compiled once per target. clang-format
// off
#if defined(SLUICE_KERNELS_VECTORS) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_KERNELS_VECTORS
#undef SLUICE_KERNELS_VECTORS
#else
#define SLUICE_KERNELS_VECTORS
#endif
// clang-format on

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if !SLUICE_PORTABLE_TARGET

#if HWY_TARGET == HWY_AVX3

// Forces a mask into a general register. Without this, gcc 12 may spill a mask of 16 bits and
// reload it as 64 bits when it runs out of registers: the other bits are then garbage.
template <class Raw>
HWY_INLINE Raw in_register(Raw mask) {
  asm("" : "+r"(mask));
  return mask;
}

#endif

// One bit per lane.
template <class D>
HWY_INLINE std::uint64_t bits_of(D d, hn::Mask<D> mask) {
#if HWY_TARGET == HWY_AVX3
  static_cast<void>(d);
  static_assert(hn::MaxLanes(D()) >= 8, "all bits of the mask are lanes");
  return in_register(mask.raw);
#else
  constexpr std::size_t kBytes = (hn::MaxLanes(D()) + 7) / 8;
  std::uint8_t bytes[8];
  hn::StoreMaskBits(d, mask, bytes);
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, kBytes);
  return bits;
#endif
}

template <class D>
HWY_INLINE bool is_zero(D d, hn::Vec<D> v) {
#if HWY_TARGET == HWY_AVX2
  static_cast<void>(d);
  return _mm256_testz_si256(v.raw, v.raw) != 0;
#else
  return hn::AllTrue(d, hn::Eq(v, hn::Zero(d)));
#endif
}

#endif

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
