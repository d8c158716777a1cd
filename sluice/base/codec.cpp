#include "sluice/base/codec.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "sluice/base/error.hpp"

namespace sluice {

// Tables are written as they lie in memory.
static_assert(std::endian::native == std::endian::little);

namespace {

template <class Word>
void put(Encoder& to, Word value) {
  std::byte raw[sizeof(Word)];
  for (std::size_t i = 0; i < sizeof(Word); ++i) raw[i] = static_cast<std::byte>(value >> (8 * i));
  to.bytes(raw);
}

template <class Word>
Word get(Decoder& from) {
  std::byte raw[sizeof(Word)];
  from.bytes(raw);
  Word value = 0;
  for (std::size_t i = 0; i < sizeof(Word); ++i)
    value = static_cast<Word>(value | (static_cast<Word>(raw[i]) << (8 * i)));
  return value;
}

}  // namespace

void Encoder::u8(std::uint8_t value) {
  bytes(std::as_bytes(std::span(&value, 1)));
}
void Encoder::u16(std::uint16_t value) {
  put(*this, value);
}
void Encoder::u32(std::uint32_t value) {
  put(*this, value);
}
void Encoder::u64(std::uint64_t value) {
  put(*this, value);
}
void Encoder::f64(double value) {
  put(*this, std::bit_cast<std::uint64_t>(value));
}
void Encoder::varint(std::uint64_t value) {
  std::byte raw[10];
  std::size_t size = 0;
  for (; value >= 0x80; value >>= 7) raw[size++] = static_cast<std::byte>(value | 0x80);
  raw[size++] = static_cast<std::byte>(value);
  bytes(std::span(raw).first(size));
}

std::uint8_t Decoder::u8() {
  std::uint8_t value = 0;
  bytes(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}
std::uint16_t Decoder::u16() {
  return get<std::uint16_t>(*this);
}
std::uint32_t Decoder::u32() {
  return get<std::uint32_t>(*this);
}
std::uint64_t Decoder::u64() {
  return get<std::uint64_t>(*this);
}
double Decoder::f64() {
  return std::bit_cast<double>(get<std::uint64_t>(*this));
}

std::uint64_t Decoder::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint64_t part = u8();
    const std::uint64_t bits = part & 0x7F;
    if ((bits << shift) >> shift != bits || (part == 0 && shift != 0)) break;
    value |= bits << shift;
    if (part < 0x80) return value;
  }
  throw CorruptSnapshot("a number is written as no encoder writes it");
}

void Decoder::expect_remaining(std::uint64_t expected, const char* what) const {
  if (remaining() != expected)
    throw CorruptSnapshot(std::string(what) + " should take " + std::to_string(expected) +
                          " bytes, but " + std::to_string(remaining()) + " are there");
}

void BytesEncoder::bytes(std::span<const std::byte> data) {
  bytes_.insert(bytes_.end(), data.begin(), data.end());
}

std::span<const std::byte> BytesDecoder::view(std::uint64_t size) {
  if (size > data_.size())
    throw CorruptSnapshot("the bytes end where " + std::to_string(size) + " more should be");
  const auto seen = data_.first(static_cast<std::size_t>(size));
  data_ = data_.subspan(seen.size());
  return seen;
}

void BytesDecoder::bytes(std::span<std::byte> out) {
  std::ranges::copy(view(out.size()), out.begin());
}

void PartDecoder::bytes(std::span<std::byte> out) {
  if (out.size() > left_)
    throw CorruptSnapshot("a filter within the filter ends " + std::to_string(out.size() - left_) +
                          " bytes too early");
  left_ -= out.size();
  whole_.bytes(out);
}

}  // namespace sluice
