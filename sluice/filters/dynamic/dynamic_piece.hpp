// One filter of the series that `dynamic` is: bits, or counters of four bits, with the number of
// keys in it. A snapshot of `dynamic` is read one piece at a time.
#pragma once

#include "sluice/base/codec.hpp"
#include "sluice/base/line_table.hpp"
#include "sluice/hash/probe.hpp"

namespace sluice {

inline constexpr std::uint64_t kMostDynamicBytes = std::uint64_t{1} << 46;

struct DynamicShape {
  std::uint64_t bits = 0;      // m: positions, a multiple of 64
  unsigned probes = 0;         // k
  std::uint64_t capacity = 0;  // c: keys until it is full
  bool counted = false;        // four bits per position instead of one

  std::uint64_t bytes() const noexcept { return counted ? bits / 2 : bits / 8; }
  friend bool operator==(const DynamicShape&, const DynamicShape&) = default;
};

// What makes a shape impossible, as the end of "filter 'dynamic' …"; nullptr when nothing does.
const char* what_is_wrong(const DynamicShape& shape) noexcept;

struct DynamicPiece {
  DynamicShape shape;
  std::uint64_t keys = 0;  // n_r
  LineTable table;         // empty where the bits lie in a matrix
  // After a merge: about how many of the keys are counted twice, and the error that filters before
  // this one make on the same keys (dynamic_overlap.cpp).
  std::uint64_t doubles = 0;
  double shared_fpr = 0;

  // With a table of zeros. Throws NoMemory.
  static DynamicPiece make(const DynamicShape& shape, MemoryResource& memory) {
    return {shape, 0, LineTable(shape.bytes(), memory)};
  }
  // Throws NoMemory.
  DynamicPiece copy(MemoryResource& memory) const;

  bool full() const noexcept { return keys >= shape.capacity; }
  bool may_contain(const Digest& digest) const noexcept {
    ProbeWords words(digest);
    return claims(words);
  }

  bool claims(ProbeWords& words) const noexcept {
    return with_words(table, [&](auto table_words) { return claims(table_words, words); });
  }
  const void* address(std::uint64_t word) const noexcept {
    const std::uint64_t at = scale_to(word, shape.bits) / (shape.counted ? 16 : 64);
    return with_words(table, [&](auto table_words) { return table_words.address(at); });
  }
  void write(ProbeWords& words) noexcept;
  // Only where there are counters.
  void erase(ProbeWords& words) noexcept;
  // The union with, or the intersection with (bits only), a piece of the same shape.
  void join(const DynamicPiece& other) noexcept;
  void meet(const DynamicPiece& other) noexcept;

 private:
  template <class Words>
  bool claims(Words table_words, ProbeWords& words) const noexcept {
    // A word has sixteen counters of four bits, or 64 bits.
    const unsigned shift = shape.counted ? 4 : 6;
    const std::uint64_t mask = shape.counted ? 15 : 1;
    for (unsigned probe = 0; probe < shape.probes; ++probe) {
      const std::uint64_t at = scale_to(words[probe], shape.bits);
      const std::uint64_t place = (at << (6 - shift)) % 64;
      if ((table_words.get(at >> shift) >> place & mask) == 0) return false;
    }
    return true;
  }
};

// The fields before a piece's table in a snapshot, and their size in bytes.
inline constexpr std::uint64_t kDynamicPieceFields = 28;
void encode_piece_fields(const DynamicPiece& piece, Encoder& to);
// The piece that comes next, its table included. Throws CorruptSnapshot, before it allocates.
DynamicPiece decode_piece(Decoder& from, bool counted, MemoryResource& memory);

}  // namespace sluice
