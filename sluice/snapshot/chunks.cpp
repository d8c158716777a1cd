#include "sluice/snapshot/chunks.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "sluice/snapshot/layout.hpp"

namespace sluice {

std::uint64_t checksum_of(std::span<const std::byte> data) noexcept {
  return XXH3_64bits(data.data(), data.size());
}

std::uint64_t chunk_checksum(std::uint64_t before, std::span<const std::byte> data) noexcept {
  return XXH3_64bits_withSeed(data.data(), data.size(), before);
}

ChunkDecoder::ChunkDecoder(Decoder& from, std::uint64_t offset, std::uint64_t header_checksum,
                           std::uint64_t payload_bytes)
    : from_(from), offset_(offset), checksum_(header_checksum), payload_bytes_(payload_bytes) {
  const std::uint64_t expected = layout::chunked_bytes(payload_bytes);
  if (from.remaining() != expected)
    throw CorruptAt(fmt::format("the snapshot is cut off or has bytes added: {} bytes should "
                                "follow the header, but {} are there",
                                expected, from.remaining()),
                    offset + std::min(expected, from.remaining()));
}

void ChunkDecoder::read_chunk(std::span<std::byte> into) {
  from_.bytes(into);
  checksum_ = chunk_checksum(checksum_, into);
  if (from_.u64() != checksum_)
    throw CorruptAt(fmt::format("chunk {} is damaged, not in its place or of another snapshot: its "
                                "checksum does not match",
                                chunks_),
                    offset_);
  offset_ += into.size() + layout::kChecksumBytes;
  fetched_ += into.size();
  ++chunks_;
}

void ChunkDecoder::bytes(std::span<std::byte> out) {
  if (out.size() > remaining())
    throw CorruptAt(fmt::format("{} bytes of payload were expected, but only {} are left",
                                out.size(), remaining()),
                    offset_);
  while (!out.empty()) {
    std::size_t taken = std::min(out.size(), chunk_.size() - chunk_position_);
    if (taken != 0) {
      std::copy_n(chunk_.begin() + static_cast<std::ptrdiff_t>(chunk_position_), taken,
                  out.begin());
      chunk_position_ += taken;
    } else {
      const std::uint64_t next = std::min(layout::kChunkBytes, payload_bytes_ - fetched_);
      // A table takes whole chunks where it is, without a copy.
      if (out.size() >= next) {
        taken = static_cast<std::size_t>(next);
        read_chunk(out.first(taken));
      } else {
        chunk_.resize(static_cast<std::size_t>(next));
        chunk_position_ = 0;
        read_chunk(chunk_);
      }
    }
    consumed_ += taken;
    out = out.subspan(taken);
  }
}

void ChunkDecoder::finish() const {
  if (remaining() != 0)
    throw CorruptAt(fmt::format("the payload is {} bytes longer than its filter", remaining()),
                    offset_);
}

}  // namespace sluice
