#include "sluice/snapshot/delta_coding.hpp"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <new>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"
#include "sluice/snapshot/layout.hpp"

namespace sluice {
namespace {

// zstd's own default: higher levels find no more in what is nearly random.
constexpr int kLevel = 3;
constexpr unsigned kMostRice = 23;  // a chunk has 2^23 bits
// With more ones than this share, gaps are no shorter than the bytes.
constexpr std::uint64_t kSparse = 6;

std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
  return word;
}

std::uint64_t count_ones(std::span<const std::byte> bytes) {
  std::uint64_t ones = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 8)
    ones += static_cast<std::uint64_t>(std::popcount(word_at(bytes, at)));
  return ones;
}

// Low bits first.
class BitWriter {
 public:
  explicit BitWriter(std::vector<std::byte>& to) : to_(to) {}
  // At most 32 bits.
  void put(std::uint64_t bits, unsigned count) {
    held_ |= bits << filled_;
    filled_ += count;
    for (; filled_ >= 8; filled_ -= 8, held_ >>= 8) to_.push_back(static_cast<std::byte>(held_));
  }
  // q ones and a zero.
  void put_unary(std::uint64_t q) {
    for (; q >= 32; q -= 32) put(0xFFFF'FFFF, 32);
    put((std::uint64_t{1} << q) - 1, static_cast<unsigned>(q) + 1);
  }
  void finish() {
    if (filled_ > 0) to_.push_back(static_cast<std::byte>(held_));
  }

 private:
  std::vector<std::byte>& to_;
  std::uint64_t held_ = 0;
  unsigned filled_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> from) : from_(from) {}
  unsigned bit() {
    if (at_ == 8 * from_.size()) throw CorruptSnapshot("the gaps of a delta's chunk end too early");
    const unsigned value = std::to_integer<unsigned>(from_[at_ / 8]) >> (at_ % 8) & 1;
    ++at_;
    return value;
  }
  std::uint64_t bits(unsigned count) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < count; ++i) value |= std::uint64_t{bit()} << i;
    return value;
  }
  // Nothing is left but the rest of the last byte, which is zero.
  bool at_end() {
    if (8 * from_.size() - at_ >= 8) return false;
    while (at_ < 8 * from_.size())
      if (bit() != 0) return false;
    return true;
  }

 private:
  std::span<const std::byte> from_;
  std::size_t at_ = 0;
};

// The parameter whose code is shortest for geometric gaps of this mean: 2^r near mean · ln 2.
unsigned rice_parameter(std::uint64_t bits, std::uint64_t ones) {
  const double step = 0.693147 * static_cast<double>(bits) / static_cast<double>(ones);
  unsigned parameter = 0;
  while (parameter < kMostRice && static_cast<double>(std::uint64_t{2} << parameter) * 0.75 < step)
    ++parameter;
  return parameter;
}

void encode_gaps(std::span<const std::byte> chunk, std::uint64_t ones, std::vector<std::byte>& to) {
  const unsigned rice = rice_parameter(8 * chunk.size(), ones);
  BytesEncoder head;
  head.u8(static_cast<std::uint8_t>(DeltaCoding::gaps));
  head.u32(static_cast<std::uint32_t>(ones));
  head.u8(static_cast<std::uint8_t>(rice));
  to.assign(head.written().begin(), head.written().end());
  BitWriter bits(to);
  std::uint64_t next = 0;  // the first place where the next one may be
  for (std::size_t at = 0; at < chunk.size(); at += 8) {
    for (std::uint64_t word = word_at(chunk, at); word != 0; word &= word - 1) {
      const std::uint64_t place = 8 * at + static_cast<unsigned>(std::countr_zero(word));
      const std::uint64_t gap = place - next;
      bits.put_unary(gap >> rice);
      bits.put(gap & ((std::uint64_t{1} << rice) - 1), rice);
      next = place + 1;
    }
  }
  bits.finish();
}

void decode_gaps(std::span<const std::byte> coded, std::span<std::byte> chunk) {
  BytesDecoder head(coded);
  const std::uint64_t ones = head.u32();
  const unsigned rice = head.u8();
  const std::uint64_t all = 8 * chunk.size();
  if (ones == 0 || ones > all || rice > kMostRice)
    throw CorruptSnapshot("the gaps of a delta's chunk have parameters that none has");
  std::ranges::fill(chunk, std::byte{0});
  BitReader bits(head.view(head.remaining()));
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < ones; ++i) {
    std::uint64_t high = 0;
    while (bits.bit() == 1) ++high;  // ends with the bits at the latest
    next += (high << rice) + bits.bits(rice);
    if (next >= all) throw CorruptSnapshot("the gaps of a delta's chunk lead out of it");
    chunk[next / 8] |= static_cast<std::byte>(1u << (next % 8));
    ++next;
  }
  if (!bits.at_end()) throw CorruptSnapshot("bytes follow the gaps of a delta's chunk");
}

}  // namespace

struct DeltaChunkEncoder::Zstd {
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context{ZSTD_createCCtx(), &ZSTD_freeCCtx};
};

DeltaChunkEncoder::DeltaChunkEncoder() : zstd_(std::make_unique<Zstd>()) {
  if (!zstd_->context) throw std::bad_alloc();
}
DeltaChunkEncoder::~DeltaChunkEncoder() = default;

std::span<const std::byte> DeltaChunkEncoder::encode(std::span<const std::byte> chunk) {
  assert(chunk.size() <= layout::kChunkBytes);
  const std::uint64_t ones = count_ones(chunk);
  if (ones == 0) {
    best_.assign(1, static_cast<std::byte>(DeltaCoding::zeros));
    return best_;
  }
  best_.resize(1 + chunk.size());
  best_[0] = static_cast<std::byte>(DeltaCoding::plain);
  std::ranges::copy(chunk, best_.begin() + 1);

  tried_.resize(1 + ZSTD_compressBound(chunk.size()));
  tried_[0] = static_cast<std::byte>(DeltaCoding::zstd);
  const std::size_t size = ZSTD_compressCCtx(zstd_->context.get(), tried_.data() + 1,
                                             tried_.size() - 1, chunk.data(), chunk.size(), kLevel);
  if (ZSTD_isError(size) == 0 && 1 + size < best_.size()) {
    tried_.resize(1 + size);
    best_.swap(tried_);
  }
  if (ones < 8 * chunk.size() / kSparse) {
    encode_gaps(chunk, ones, tried_);
    if (tried_.size() < best_.size()) best_.swap(tried_);
  }
  return best_;
}

struct DeltaChunkDecoder::Zstd {
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context{ZSTD_createDCtx(), &ZSTD_freeDCtx};
};

DeltaChunkDecoder::DeltaChunkDecoder() : zstd_(std::make_unique<Zstd>()) {
  if (!zstd_->context) throw std::bad_alloc();
}
DeltaChunkDecoder::~DeltaChunkDecoder() = default;

void DeltaChunkDecoder::decode(std::span<const std::byte> coded, std::span<std::byte> chunk) {
  if (coded.empty()) throw CorruptSnapshot("a delta's chunk is empty");
  const auto coding = static_cast<DeltaCoding>(coded[0]);
  const auto rest = coded.subspan(1);
  const auto refuse_unless = [](bool fits) {
    if (!fits) throw CorruptSnapshot("a delta's chunk does not have the size that it should have");
  };
  switch (coding) {
    case DeltaCoding::zeros:
      refuse_unless(rest.empty());
      std::ranges::fill(chunk, std::byte{0});
      return;
    case DeltaCoding::plain:
      refuse_unless(rest.size() == chunk.size());
      std::ranges::copy(rest, chunk.begin());
      return;
    case DeltaCoding::zstd: {
      // Limited by the size of the output, whatever the frame claims.
      const std::size_t size = ZSTD_decompressDCtx(zstd_->context.get(), chunk.data(), chunk.size(),
                                                   rest.data(), rest.size());
      refuse_unless(ZSTD_isError(size) == 0 && size == chunk.size());
      return;
    }
    case DeltaCoding::gaps:
      decode_gaps(rest, chunk);
      return;
  }
  throw CorruptSnapshot("a delta's chunk has the unknown coding " +
                        std::to_string(std::to_integer<unsigned>(coded[0])) +
                        ": was it written by a newer sluice?");
}

}  // namespace sluice
