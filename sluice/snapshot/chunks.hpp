// The payload of a snapshot, cut into checksummed chunks and put together again.
//
// Each checksum is seeded with the one before it, the first with the header's: this ties header and
// chunks together in their order, and the last checksum covers the whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"

namespace sluice {

// A CorruptSnapshot whose message already names the byte.
class CorruptAt : public CorruptSnapshot {
 public:
  CorruptAt(const std::string& what, std::uint64_t offset)
      : CorruptSnapshot(what + ", at byte " + std::to_string(offset)) {}
};

std::uint64_t checksum_of(std::span<const std::byte> data) noexcept;
std::uint64_t chunk_checksum(std::uint64_t before, std::span<const std::byte> data) noexcept;

// Hands out only bytes whose chunk has been checked.
class ChunkDecoder final : public Decoder {
 public:
  // The rest of `from` must be chunks of `payload_bytes`; its next byte is number `offset` of the
  // snapshot. Throws CorruptSnapshot if that is impossible.
  ChunkDecoder(Decoder& from, std::uint64_t offset, std::uint64_t header_checksum,
               std::uint64_t payload_bytes);

  void bytes(std::span<std::byte> out) override;
  std::uint64_t remaining() const override { return payload_bytes_ - consumed_; }
  // Checks that the payload was read to its end.
  void finish() const;

  // The offset in the snapshot of the payload's next byte, or of the error in it.
  std::uint64_t offset() const noexcept { return offset_; }
  bool started() const noexcept { return consumed_ != 0; }
  // Checksum of the last chunk read; at the end it is the snapshot's identity.
  std::uint64_t checksum() const noexcept { return checksum_; }

 private:
  void read_chunk(std::span<std::byte> into);

  Decoder& from_;
  std::uint64_t offset_;
  std::uint64_t checksum_;
  std::vector<std::byte> chunk_;
  std::size_t chunk_position_ = 0;
  std::uint64_t chunks_ = 0;
  std::uint64_t payload_bytes_;
  std::uint64_t fetched_ = 0;   // payload bytes in chunks read so far
  std::uint64_t consumed_ = 0;  // payload bytes handed out
};

}  // namespace sluice
