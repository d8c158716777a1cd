// Where the bytes that matter stand in a record, as bits: bit i of word w is byte 64 w + i. What
// reads fields looks at these words instead of at bytes.
//
// Cost     64 bytes per step, a compare and a mask for each kind of byte. The instruction set is
//          chosen at run time.
//
// All of them read whole steps: up to 63 bytes behind the record, which kPaddingBytes of a read
// buffer allow. Bits behind the record are zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/kernels/scan.hpp"

namespace sluice {

inline constexpr std::size_t kMarkBytes = 64;
constexpr std::size_t mark_words(std::size_t bytes) noexcept {
  return (bytes + kMarkBytes - 1) / kMarkBytes;
}

// Fills mark_words(size) words of each; returns whether the second needle is there at all.
using MarkNeedles = bool (*)(const char* data, std::size_t size, Needles needles,
                             std::uint64_t* first, std::uint64_t* second);

struct JsonBytes {
  bool odd;   // a backslash or a control character is there
  bool high;  // a byte above 127 is there
};
using MarkJson = JsonBytes (*)(const char* data, std::size_t size, std::uint64_t* quotes,
                               std::uint64_t* digits);

// Those of the instruction set in use. To be asked for once per batch: that costs as much as a short
// record.
MarkNeedles needle_marker() noexcept;
MarkJson json_marker() noexcept;

}  // namespace sluice
