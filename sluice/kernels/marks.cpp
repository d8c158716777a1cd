#include "sluice/kernels/marks.hpp"

#include <cstring>

// clang-format off
#include "sluice/base/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sluice/kernels/marks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {

// The bits of a word that stand for bytes of a record with `left` bytes from there on.
HWY_INLINE std::uint64_t inside(std::size_t left) {
  return left >= kMarkBytes ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
}

struct NeedleWords {
  std::uint64_t first, second;
};
struct JsonWords {
  std::uint64_t quotes, digits, odd, high;
};

#if SLUICE_PORTABLE_TARGET

// Bit i: is(byte i).
template <class Is>
std::uint64_t step_bits(const char* data, Is is) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kMarkBytes; ++i)
    bits |= std::uint64_t{is(static_cast<unsigned char>(data[i]))} << i;
  return bits;
}

NeedleWords needle_words(const char* data, Needles needles) {
  const auto first = static_cast<unsigned char>(needles.first);
  const auto second = static_cast<unsigned char>(needles.second);
  return {step_bits(data, [=](unsigned char byte) { return byte == first; }),
          step_bits(data, [=](unsigned char byte) { return byte == second; })};
}

JsonWords json_words(const char* data) {
  return {step_bits(data, [](unsigned char byte) { return byte == '"'; }),
          step_bits(data, [](unsigned char byte) { return byte >= '0' && byte <= '9'; }),
          step_bits(data, [](unsigned char byte) { return byte < 0x20 || byte == '\\'; }),
          step_bits(data, [](unsigned char byte) { return byte >= 0x80; })};
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using Bytes = hn::CappedTag<std::uint8_t, kMarkBytes>;

HWY_INLINE std::uint64_t bits_of(hn::Mask<Bytes> mask) {
  std::uint64_t bits = 0;
  hn::StoreMaskBits(Bytes(), mask, reinterpret_cast<std::uint8_t*>(&bits));
  return bits;
}

HWY_INLINE NeedleWords needle_words(const char* data, Needles needles) {
  const Bytes d;
  const auto first = hn::Set(d, static_cast<std::uint8_t>(needles.first));
  const auto second = hn::Set(d, static_cast<std::uint8_t>(needles.second));
  NeedleWords words{0, 0};
  for (std::size_t at = 0; at < kMarkBytes; at += hn::MaxLanes(d)) {
    const auto bytes = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(data) + at);
    words.first |= bits_of(hn::Eq(bytes, first)) << at;
    words.second |= bits_of(hn::Eq(bytes, second)) << at;
  }
  return words;
}

HWY_INLINE JsonWords json_words(const char* data) {
  const Bytes d;
  JsonWords words{0, 0, 0, 0};
  for (std::size_t at = 0; at < kMarkBytes; at += hn::MaxLanes(d)) {
    const auto bytes = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(data) + at);
    const auto from_zero = hn::Sub(bytes, hn::Set(d, '0'));
    // x <= y as min(x, y) = x: of unsigned bytes AVX2 has a minimum and no order.
    const auto digit = hn::Eq(hn::Min(from_zero, hn::Set(d, 9)), from_zero);
    const auto control = hn::Eq(hn::Min(bytes, hn::Set(d, 0x1F)), bytes);
    words.quotes |= bits_of(hn::Eq(bytes, hn::Set(d, '"'))) << at;
    words.digits |= bits_of(digit) << at;
    words.odd |= bits_of(hn::Or(control, hn::Eq(bytes, hn::Set(d, '\\')))) << at;
    words.high |= bits_of(hn::TestBit(bytes, hn::Set(d, 0x80))) << at;
  }
  return words;
}

#endif

bool mark_needles(const char* data, std::size_t size, Needles needles, std::uint64_t* first,
                  std::uint64_t* second) {
  std::uint64_t seconds = 0;
  for (std::size_t word = 0, at = 0; at < size; ++word, at += kMarkBytes) {
    const NeedleWords words = needle_words(data + at, needles);
    first[word] = words.first & inside(size - at);
    second[word] = words.second & inside(size - at);
    seconds |= second[word];
  }
  return seconds != 0;
}

JsonBytes mark_json(const char* data, std::size_t size, std::uint64_t* quotes,
                    std::uint64_t* digits) {
  std::uint64_t odd = 0, high = 0;
  for (std::size_t word = 0, at = 0; at < size; ++word, at += kMarkBytes) {
    const JsonWords words = json_words(data + at);
    const std::uint64_t ours = inside(size - at);
    quotes[word] = words.quotes & ours;
    digits[word] = words.digits & ours;
    odd |= words.odd & ours;
    high |= words.high & ours;
  }
  return {odd != 0, high != 0};
}

MarkNeedles needle_marker() {
  return mark_needles;
}

MarkJson json_marker() {
  return mark_json;
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(needle_marker);
HWY_EXPORT(json_marker);

MarkNeedles needle_marker() noexcept {
  return HWY_DYNAMIC_DISPATCH(needle_marker)();
}

MarkJson json_marker() noexcept {
  return HWY_DYNAMIC_DISPATCH(json_marker)();
}

}  // namespace sluice
#endif
