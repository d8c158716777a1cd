// The payload of a snapshot, cut into checksummed chunks and put together again.
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
// Depends on the chunk's number too, so that chunks cannot change places.
std::uint64_t chunk_checksum(std::uint64_t number, std::span<const std::byte> data) noexcept;

// The final checksum: starts from the header's, is fed each chunk's, ends with the counts. It ties
// all parts to each other: a payload under another snapshot's header is found out.
class ChecksumChain {
 public:
  explicit ChecksumChain(std::uint64_t header_checksum) noexcept : link_(header_checksum) {}
  void add(std::uint64_t word) noexcept;
  std::uint64_t value() const noexcept { return link_; }

 private:
  std::uint64_t link_;
};

class ChunkEncoder final : public Encoder {
 public:
  ChunkEncoder(Encoder& to, std::uint64_t header_checksum);

  void bytes(std::span<const std::byte> data) override;
  // Writes what is left and the footer; nothing may be written afterwards.
  void finish();
  // When finished: the final checksum, by which a version of a snapshot is known.
  std::uint64_t identity() const noexcept { return chain_.value(); }

 private:
  void write_chunk(std::span<const std::byte> data);

  Encoder& to_;
  ChecksumChain chain_;
  std::vector<std::byte> partial_;
  std::uint64_t chunks_ = 0;
  std::uint64_t payload_bytes_ = 0;
};

// Hands out only bytes whose chunk has been checked.
class ChunkDecoder final : public Decoder {
 public:
  // All that is left in `from` is chunks and footer; its next byte is number `offset` of the
  // snapshot. Throws CorruptSnapshot when it cannot be.
  ChunkDecoder(Decoder& from, std::uint64_t offset, std::uint64_t header_checksum);

  void bytes(std::span<std::byte> out) override;
  std::uint64_t remaining() const override { return payload_bytes_ - consumed_; }
  // Checks that the payload was read to its end, and the footer.
  void finish();

  // Where the payload's next byte, or what is wrong with it, stands in the snapshot.
  std::uint64_t offset() const noexcept { return offset_; }
  bool started() const noexcept { return consumed_ != 0; }

 private:
  void read_chunk();

  Decoder& from_;
  std::uint64_t offset_;
  ChecksumChain chain_;
  std::vector<std::byte> chunk_;
  std::size_t chunk_position_ = 0;
  std::uint64_t chunks_ = 0;
  std::uint64_t payload_bytes_ = 0;
  std::uint64_t fetched_ = 0;   // payload bytes in chunks read so far
  std::uint64_t consumed_ = 0;  // payload bytes handed out
};

}  // namespace sluice
