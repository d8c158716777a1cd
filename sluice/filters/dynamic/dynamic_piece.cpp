#include "sluice/filters/dynamic/dynamic_piece.hpp"

#include <cassert>
#include <functional>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/filters/bloom/bloom_family.hpp"
#include "sluice/filters/nibbles.hpp"
#include "sluice/model/bloom.hpp"

namespace sluice {

const char* what_is_wrong(const DynamicShape& shape) noexcept {
  if (shape.bits == 0 || shape.bits % 64 != 0 || shape.bits > std::uint64_t{1} << 49 ||
      shape.bytes() > kMostDynamicBytes)
    return "takes filters of 8 bytes to 64 TiB each, in whole words of 64 bits or counters";
  if (shape.probes == 0 || shape.probes > model::kMostProbes) return "takes 1 to 64 probes";
  if (shape.capacity == 0 || shape.capacity > kMostBloomKeys)
    return "takes filters of 1 to 2^44 keys each";
  return nullptr;
}

DynamicPiece DynamicPiece::copy(MemoryResource& memory) const {
  DynamicPiece same = make(shape, memory);
  same.keys = keys;
  join_words(same.table, table, std::bit_or<>{});
  return same;
}

void DynamicPiece::write(ProbeWords& words) noexcept {
  with_words(table, [&](auto table_words) {
    for (unsigned probe = 0; probe < shape.probes; ++probe) {
      const std::uint64_t at = scale_to(words[probe], shape.bits);
      if (shape.counted)
        nibbles::raise(table_words, at);
      else
        table_words.at(at / 64) |= std::uint64_t{1} << (at % 64);
    }
  });
}

void DynamicPiece::erase(ProbeWords& words) noexcept {
  assert(shape.counted);
  with_words(table, [&](auto table_words) {
    for (unsigned probe = 0; probe < shape.probes; ++probe)
      nibbles::lower(table_words, scale_to(words[probe], shape.bits));
  });
}

void DynamicPiece::join(const DynamicPiece& other) noexcept {
  assert(shape == other.shape);
  shape.counted ? join_words(table, other.table, nibbles::sum)
                : join_words(table, other.table, std::bit_or<>{});
}

void DynamicPiece::meet(const DynamicPiece& other) noexcept {
  assert(shape == other.shape && !shape.counted);
  join_words(table, other.table, std::bit_and<>{});
}

void encode_piece_fields(const DynamicPiece& piece, Encoder& to) {
  to.u64(piece.shape.bits);
  to.u32(piece.shape.probes);
  to.u64(piece.shape.capacity);
  to.u64(piece.keys);
}

DynamicPiece decode_piece(Decoder& from, bool counted, MemoryResource& memory) {
  DynamicShape shape{.counted = counted};
  shape.bits = from.u64();
  shape.probes = from.u32();
  shape.capacity = from.u64();
  const std::uint64_t keys = from.u64();
  if (const char* wrong = what_is_wrong(shape))
    throw CorruptSnapshot(std::string("filter 'dynamic' ") + wrong);
  if (keys > shape.capacity)
    throw CorruptSnapshot("a filter of a 'dynamic' series claims more keys than it has room for");
  if (from.remaining() < shape.bytes())
    throw CorruptSnapshot("a filter of a 'dynamic' series is larger than what is left of it");
  DynamicPiece piece = DynamicPiece::make(shape, memory);
  piece.keys = keys;
  piece.table.decode(from);
  return piece;
}

}  // namespace sluice
