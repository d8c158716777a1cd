// The layout of a snapshot, format version 1. docs/format.md describes it in words.
//
//   magic, version, header length, header, header checksum
//   chunk 0, chunk 1, …   each: payload bytes, checksum
//
// The header says how many bytes the payload has, and all chunks but the last are full: a reader
// knows how large a table may be, and that the snapshot is complete, before it reads any payload. A
// filter of ten keys is a normal case, so the fixed part is kept small.
#pragma once

#include <array>
#include <cstdint>

namespace sluice::layout {

// No text starts with 0xD3 alone.
inline constexpr std::array<std::uint8_t, 4> kMagic = {0xD3, 'S', 'L', 'U'};
inline constexpr std::array<std::uint8_t, 4> kDeltaMagic = {0xD3, 'S', 'L', 'D'};
inline constexpr std::uint8_t kVersion = 1;

inline constexpr std::uint64_t kVersionAt = 4;
inline constexpr std::uint64_t kHeaderLengthAt = 5;
inline constexpr std::uint64_t kChecksumBytes = 8;

// Chunks are checked one by one before a filter sees them: large enough to make their overhead
// negligible, small enough to stay in cache between check and copy.
inline constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kChunkStride = kChunkBytes + kChecksumBytes;

inline constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMostLabels = 1024;
inline constexpr std::uint64_t kMostLabelBytes = 65536;
inline constexpr std::uint64_t kMostSections = 64;
inline constexpr std::uint64_t kMostSectionName = 64;
// A snapshot of more than this could not be counted in 64 bits with all that is around it.
inline constexpr std::uint64_t kMostPayloadBytes = std::uint64_t{1} << 62;

constexpr std::uint64_t chunks_for(std::uint64_t payload_bytes) noexcept {
  return payload_bytes / kChunkBytes + (payload_bytes % kChunkBytes != 0);
}

// The bytes that a payload takes with its checksums.
constexpr std::uint64_t chunked_bytes(std::uint64_t payload_bytes) noexcept {
  return payload_bytes + chunks_for(payload_bytes) * kChecksumBytes;
}

}  // namespace sluice::layout
