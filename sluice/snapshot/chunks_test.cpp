#include "sluice/snapshot/chunks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "sluice/snapshot/layout.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kBeyond = (std::uint64_t{1} << 32) + layout::kChunkBytes + 5;
constexpr std::uint64_t kHeaderChecksum = 42;

// A payload of zeros with its checksums, made as it is read: it answers the reads of a ChunkDecoder
// in their order (data, checksum).
class Zeros final : public Decoder {
 public:
  explicit Zeros(std::uint64_t payload)
      : left_(layout::chunked_bytes(payload)), payload_(payload) {}

  std::uint64_t remaining() const override { return left_; }

  void bytes(std::span<std::byte> out) override {
    left_ -= out.size();
    if (out.size() == std::min(payload_, layout::kChunkBytes)) {
      std::memset(out.data(), 0, out.size());
      checksum_ = chunk_checksum(checksum_, out);
      payload_ -= out.size();
    } else {
      BytesEncoder word;
      word.u64(checksum_);
      std::ranges::copy(word.written(), out.begin());
    }
  }

 private:
  std::uint64_t left_, payload_, checksum_ = kHeaderChecksum;
};

TEST(Chunks, PayloadsBeyondFourGibibytesStream) {
  // Of a size that does not divide a chunk: some chunks are handed out in two pieces.
  std::vector<std::byte> piece(3 * layout::kChunkBytes + 1000);
  Zeros zeros(kBeyond);
  ChunkDecoder from(zeros, 0, kHeaderChecksum, kBeyond);
  ASSERT_EQ(from.remaining(), kBeyond);
  while (from.remaining() != 0)
    from.bytes(std::span(piece).first(std::min<std::uint64_t>(from.remaining(), piece.size())));
  EXPECT_NO_THROW(from.finish());
  EXPECT_EQ(zeros.remaining(), 0u);
}

TEST(Chunks, WhatIsLeftUnreadIsRefused) {
  BytesEncoder to;
  to.u64(1);
  to.u64(chunk_checksum(kHeaderChecksum, to.written()));
  BytesDecoder bytes(to.written());
  ChunkDecoder from(bytes, 100, kHeaderChecksum, 8);
  from.u32();
  EXPECT_THROW(from.finish(), CorruptSnapshot);
  EXPECT_THROW(from.u64(), CorruptSnapshot);
}

TEST(Chunks, AnotherNumberOfBytesIsRefusedBeforeAnyIsRead) {
  const std::vector<std::byte> bytes(100);
  for (const std::uint64_t payload : {0u, 91u, 93u, 100u}) {
    BytesDecoder from(bytes);
    EXPECT_THROW(ChunkDecoder(from, 0, kHeaderChecksum, payload), CorruptSnapshot) << payload;
    EXPECT_EQ(from.remaining(), 100u);
  }
}

}  // namespace
}  // namespace sluice
