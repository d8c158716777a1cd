// Where things stand in a snapshot, format version 1. docs/format.md tells the same in words.
//
//   magic, version, header length, header (tagged sections), header checksum
//   chunk 0, chunk 1, …   each: length, payload bytes, checksum
//   footer: number of chunks, payload bytes, final checksum
//
// All chunks but the last are full, so the size of the whole gives the size of the payload: a
// reader knows what a table may take before it has read any of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace sluice::layout {

// No text starts with 0xD3 alone, and a transfer that rewrites line ends, stops at Ctrl-Z or strips
// the eighth bit breaks it.
inline constexpr std::array<std::uint8_t, 8> kMagic = {0xD3, 'S', 'L', 'U', '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint32_t kVersion = 1;

// Sections stand in this order, each exactly once. A number is never given twice.
enum class Section : std::uint16_t { filter = 1, hash = 2, labels = 3 };

inline constexpr std::uint64_t kVersionAt = 8;
inline constexpr std::uint64_t kHeaderLengthAt = 12;
inline constexpr std::uint64_t kHeaderAt = 16;
inline constexpr std::uint64_t kChecksumBytes = 8;
inline constexpr std::uint64_t kFooterBytes = 24;

// Chunks are checked one by one before a filter sees them: large enough that their overhead is
// nothing, small enough to stay in cache between check and copy.
inline constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kChunkOverhead = 4 + kChecksumBytes;

inline constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{1} << 20;
inline constexpr std::uint32_t kMostLabels = 1024;
inline constexpr std::uint32_t kMostLabelBytes = 65536;

constexpr std::uint64_t chunks_for(std::uint64_t payload_bytes) noexcept {
  return payload_bytes / kChunkBytes + (payload_bytes % kChunkBytes != 0);
}

// The bytes that a payload takes with its chunks around it, without the footer.
constexpr std::uint64_t chunked_bytes(std::uint64_t payload_bytes) noexcept {
  return payload_bytes + chunks_for(payload_bytes) * kChunkOverhead;
}

// The inverse of chunked_bytes; nothing when no payload takes just so many bytes.
constexpr std::optional<std::uint64_t> payload_bytes(std::uint64_t chunked) noexcept {
  constexpr std::uint64_t kStride = kChunkBytes + kChunkOverhead;
  const std::uint64_t last = chunked % kStride;
  if (last != 0 && last <= kChunkOverhead) return std::nullopt;
  return chunked / kStride * kChunkBytes + (last == 0 ? 0 : last - kChunkOverhead);
}

}  // namespace sluice::layout
