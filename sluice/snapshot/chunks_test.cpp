#include "sluice/snapshot/chunks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "sluice/snapshot/layout.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kBeyond = (std::uint64_t{1} << 32) + layout::kChunkBytes + 5;
constexpr std::uint64_t kHeaderChecksum = 42;

// Keeps the last 24 bytes, a footer's worth, and counts the rest.
class FooterKeeper final : public Encoder {
 public:
  void bytes(std::span<const std::byte> data) override {
    total += data.size();
    const std::size_t kept = std::min(data.size(), last.size());
    std::shift_left(last.begin(), last.end(), static_cast<std::ptrdiff_t>(kept));
    std::copy(data.end() - static_cast<std::ptrdiff_t>(kept), data.end(),
              last.end() - static_cast<std::ptrdiff_t>(kept));
  }

  std::uint64_t total = 0;
  std::array<std::byte, layout::kFooterBytes> last{};
};

// A payload of zeros with its chunks around it and the given footer, made as it is read: it answers
// the reads of a ChunkDecoder in their order (length, data, checksum).
class Zeros final : public Decoder {
 public:
  Zeros(std::uint64_t payload, std::span<const std::byte> footer)
      : left_(layout::chunked_bytes(payload) + footer.size()), payload_(payload), footer_(footer) {}

  std::uint64_t remaining() const override { return left_; }

  void bytes(std::span<std::byte> out) override {
    left_ -= out.size();
    const std::uint64_t length = std::min(payload_, layout::kChunkBytes);
    BytesEncoder word;
    if (length == 0) {
      std::copy_n(footer_.begin(), out.size(), out.begin());
      footer_ = footer_.subspan(out.size());
      return;
    }
    if (out.size() == length) {
      std::memset(out.data(), 0, out.size());
      checksum_ = chunk_checksum(chunk_, out);
      return;
    }
    if (out.size() == sizeof(std::uint32_t)) {
      word.u32(static_cast<std::uint32_t>(length));
    } else {
      word.u64(checksum_);
      payload_ -= length;
      ++chunk_;
    }
    std::ranges::copy(word.written(), out.begin());
  }

 private:
  std::uint64_t left_, payload_, chunk_ = 0, checksum_ = 0;
  std::span<const std::byte> footer_;
};

TEST(Chunks, PayloadsBeyondFourGibibytesStream) {
  // Of a size that does not divide a chunk: some chunks are put together of two pieces.
  std::vector<std::byte> piece(3 * layout::kChunkBytes + 1000);
  FooterKeeper written;
  ChunkEncoder to(written, kHeaderChecksum);
  for (std::uint64_t left = kBeyond; left != 0;) {
    const std::uint64_t size = std::min<std::uint64_t>(left, piece.size());
    to.bytes(std::span(piece).first(size));
    left -= size;
  }
  to.finish();
  EXPECT_EQ(written.total, layout::chunked_bytes(kBeyond) + layout::kFooterBytes);
  BytesDecoder footer(written.last);
  EXPECT_EQ(footer.u64(), 4098u);
  EXPECT_EQ(footer.u64(), kBeyond);

  Zeros zeros(kBeyond, written.last);
  ChunkDecoder from(zeros, 0, kHeaderChecksum);
  ASSERT_EQ(from.remaining(), kBeyond);
  while (from.remaining() != 0)
    from.bytes(std::span(piece).first(std::min<std::uint64_t>(from.remaining(), piece.size())));
  EXPECT_NO_THROW(from.finish());
  EXPECT_EQ(zeros.remaining(), 0u);
}

TEST(Chunks, WhatIsLeftUnreadIsRefused) {
  BytesEncoder to;
  ChunkEncoder chunks(to, kHeaderChecksum);
  chunks.u64(1);
  chunks.finish();
  BytesDecoder bytes(to.written());
  ChunkDecoder from(bytes, 100, kHeaderChecksum);
  from.u32();
  EXPECT_THROW(from.finish(), CorruptSnapshot);
  EXPECT_THROW(from.u64(), CorruptSnapshot);
}

}  // namespace
}  // namespace sluice
