#include "sluice/snapshot/chunks.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>

#include "sluice/snapshot/layout.hpp"

namespace sluice {

std::uint64_t checksum_of(std::span<const std::byte> data) noexcept {
  return XXH3_64bits(data.data(), data.size());
}

std::uint64_t chunk_checksum(std::uint64_t number, std::span<const std::byte> data) noexcept {
  return XXH3_64bits_withSeed(data.data(), data.size(), number);
}

void ChecksumChain::add(std::uint64_t word) noexcept {
  std::array<std::byte, 16> pair;
  for (std::size_t i = 0; i < 8; ++i) {
    pair[i] = static_cast<std::byte>(link_ >> (8 * i));
    pair[8 + i] = static_cast<std::byte>(word >> (8 * i));
  }
  link_ = checksum_of(pair);
}

ChunkEncoder::ChunkEncoder(Encoder& to, std::uint64_t header_checksum)
    : to_(to), chain_(header_checksum) {}

void ChunkEncoder::bytes(std::span<const std::byte> data) {
  while (!data.empty()) {
    // A table hands over gigabytes in one span: whole chunks go out without being copied.
    if (partial_.empty() && data.size() >= layout::kChunkBytes) {
      write_chunk(data.first(layout::kChunkBytes));
      data = data.subspan(layout::kChunkBytes);
      continue;
    }
    const std::size_t taken =
        std::min<std::size_t>(data.size(), layout::kChunkBytes - partial_.size());
    partial_.insert(partial_.end(), data.begin(),
                    data.begin() + static_cast<std::ptrdiff_t>(taken));
    data = data.subspan(taken);
    if (partial_.size() == layout::kChunkBytes) {
      write_chunk(partial_);
      partial_.clear();
    }
  }
}

void ChunkEncoder::write_chunk(std::span<const std::byte> data) {
  const std::uint64_t checksum = chunk_checksum(chunks_, data);
  to_.u32(static_cast<std::uint32_t>(data.size()));
  to_.bytes(data);
  to_.u64(checksum);
  chain_.add(checksum);
  ++chunks_;
  payload_bytes_ += data.size();
}

void ChunkEncoder::finish() {
  if (!partial_.empty()) write_chunk(partial_);
  partial_.clear();
  chain_.add(chunks_);
  chain_.add(payload_bytes_);
  to_.u64(chunks_);
  to_.u64(payload_bytes_);
  to_.u64(chain_.value());
}

ChunkDecoder::ChunkDecoder(Decoder& from, std::uint64_t offset, std::uint64_t header_checksum)
    : from_(from), offset_(offset), chain_(header_checksum) {
  const std::uint64_t left = from.remaining();
  if (left < layout::kFooterBytes)
    throw CorruptAt("the snapshot is cut off: it ends before its footer", offset + left);
  const auto payload = layout::payload_bytes(left - layout::kFooterBytes);
  if (!payload)
    throw CorruptAt("the snapshot is cut off or has bytes added: no payload fills " +
                        std::to_string(left) + " bytes with its chunks and footer",
                    offset);
  payload_bytes_ = *payload;
}

void ChunkDecoder::read_chunk() {
  const std::uint64_t expected = std::min(layout::kChunkBytes, payload_bytes_ - fetched_);
  const std::string name = "chunk " + std::to_string(chunks_);
  const std::uint64_t length = from_.u32();
  if (length != expected)
    throw CorruptAt(name + " says that it holds " + std::to_string(length) + " bytes, but " +
                        std::to_string(expected) + " are right for a snapshot of this size",
                    offset_);
  chunk_.resize(static_cast<std::size_t>(expected));
  from_.bytes(chunk_);
  const std::uint64_t checksum = from_.u64();
  if (checksum != chunk_checksum(chunks_, chunk_))
    throw CorruptAt(name + " is damaged or not in its place: its checksum does not match", offset_);
  chain_.add(checksum);
  offset_ += layout::kChunkOverhead + length;
  ++chunks_;
  fetched_ += length;
  chunk_position_ = 0;
}

void ChunkDecoder::bytes(std::span<std::byte> out) {
  if (out.size() > remaining())
    throw CorruptAt(std::to_string(out.size()) + " bytes of payload were expected, but only " +
                        std::to_string(remaining()) + " are left",
                    offset_);
  while (!out.empty()) {
    if (chunk_position_ == chunk_.size()) read_chunk();
    const std::size_t taken = std::min(out.size(), chunk_.size() - chunk_position_);
    std::copy_n(chunk_.begin() + static_cast<std::ptrdiff_t>(chunk_position_), taken, out.begin());
    chunk_position_ += taken;
    consumed_ += taken;
    out = out.subspan(taken);
  }
}

void ChunkDecoder::finish() {
  if (remaining() != 0)
    throw CorruptAt(
        "the payload is " + std::to_string(remaining()) + " bytes longer than its filter", offset_);
  if (const std::uint64_t chunks = from_.u64(); chunks != chunks_)
    throw CorruptAt("the footer counts " + std::to_string(chunks) + " chunks, but there are " +
                        std::to_string(chunks_),
                    offset_);
  if (const std::uint64_t payload = from_.u64(); payload != payload_bytes_)
    throw CorruptAt("the footer counts " + std::to_string(payload) + " bytes of payload, but " +
                        std::to_string(payload_bytes_) + " are there",
                    offset_ + 8);
  chain_.add(chunks_);
  chain_.add(payload_bytes_);
  if (from_.u64() != chain_.value())
    throw CorruptAt("the final checksum does not match: header and payload do not belong together",
                    offset_ + 16);
}

}  // namespace sluice
