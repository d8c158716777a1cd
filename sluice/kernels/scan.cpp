#include "sluice/kernels/scan.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

// clang-format off
#include "sluice/base/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/scan.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {

#if SLUICE_PORTABLE_TARGET

Scan find_all(const char* data, std::size_t size, Needles needles, std::size_t most,
              std::uint32_t* positions) {
  return find_all_portable(data, size, needles, most, positions);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kStepBytes = 64;

// Bit i: byte i of the 64 is a needle.
HWY_INLINE std::uint64_t step_bits(const char* data, Needles needles) {
  const hn::CappedTag<std::uint8_t, kStepBytes> d;
  const auto first = hn::Set(d, static_cast<std::uint8_t>(needles.first));
  const auto second = hn::Set(d, static_cast<std::uint8_t>(needles.second));
  std::uint64_t bits = 0;
  for (std::size_t at = 0; at < kStepBytes; at += hn::Lanes(d)) {
    const auto bytes = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(data) + at);
    std::uint64_t part = 0;
    hn::StoreMaskBits(d, hn::Or(hn::Eq(bytes, first), hn::Eq(bytes, second)),
                      reinterpret_cast<std::uint8_t*>(&part));
    bits |= part << at;
  }
  return bits;
}

// Four at a time: how many hits 64 bytes of text hold is not predictable, that they are at most
// four nearly always is. The trailing zeros of an empty mask are 64, a harmless position.
HWY_INLINE std::size_t write_positions(std::uint64_t bits, std::size_t base, std::uint32_t* to) {
  const auto count = static_cast<std::size_t>(std::popcount(bits));
  do {
    for (int i = 0; i < 4; ++i) {
      *to++ = static_cast<std::uint32_t>(base + static_cast<std::size_t>(std::countr_zero(bits)));
      bits &= bits - 1;
    }
  } while (bits != 0);
  return count;
}

Scan find_all(const char* data, std::size_t size, Needles needles, std::size_t most,
              std::uint32_t* positions) {
  size = std::min(size, kScanMostBytes);
  std::size_t found = 0;
  for (std::size_t at = 0; at < size && found < most; at += kStepBytes) {
    std::uint64_t bits;
    if (size - at >= kStepBytes) {
      bits = step_bits(data + at, needles);
    } else {
      char rest[kStepBytes] = {};
      std::memcpy(rest, data + at, size - at);
      bits = step_bits(rest, needles) & ((std::uint64_t{1} << (size - at)) - 1);
    }
    if (bits != 0) found += write_positions(bits, at, positions + found);
  }
  if (found < most) return {found, size};
  return {most, most == 0 ? 0 : positions[most - 1] + std::size_t{1}};
}

#endif

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(find_all);

Scan find_all(const char* data, std::size_t size, Needles needles, std::size_t most,
              std::uint32_t* positions) {
  return HWY_DYNAMIC_DISPATCH(find_all)(data, size, needles, most, positions);
}

Scan find_all_portable(const char* data, std::size_t size, Needles needles, std::size_t most,
                       std::uint32_t* positions) {
  size = std::min(size, kScanMostBytes);
  std::size_t found = 0;
  std::size_t at = 0;
  for (; at < size && found < most; ++at)
    if (data[at] == needles.first || data[at] == needles.second)
      positions[found++] = static_cast<std::uint32_t>(at);
  return {found, at};
}

}  // namespace sluice
#endif
