// One chunk of a delta: the XOR of two chunks, in the coding that makes it smallest.
//
// The XOR of two versions of a Bloom filter is a sparse field of independent ones. For those the
// gaps between ones, Golomb-Rice coded, come within some per cent of the entropy; zstd alone takes
// up to twice as much. Fingerprints and counters change in clumps, where zstd is the better one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sluice {

// The first byte of a coded chunk. A number is never given twice.
enum class DeltaCoding : std::uint8_t {
  zeros = 0,  // nothing follows: all bytes are zero
  plain = 1,  // the bytes themselves
  zstd = 2,   // one zstd frame
  gaps = 3,   // the number of ones, the Rice parameter, the gaps between ones
};

class DeltaChunkEncoder {
 public:
  DeltaChunkEncoder();
  ~DeltaChunkEncoder();
  // At most layout::kChunkBytes. The result, coding first, is good until the next call.
  std::span<const std::byte> encode(std::span<const std::byte> chunk);

 private:
  struct Zstd;
  std::unique_ptr<Zstd> zstd_;
  std::vector<std::byte> best_, tried_;
};

class DeltaChunkDecoder {
 public:
  DeltaChunkDecoder();
  ~DeltaChunkDecoder();
  // Fills `chunk`. Throws CorruptSnapshot unless `coded` is exactly a chunk of that size; what it
  // says of sizes is not believed, and nothing is allocated by it.
  void decode(std::span<const std::byte> coded, std::span<std::byte> chunk);

 private:
  struct Zstd;
  std::unique_ptr<Zstd> zstd_;
};

}  // namespace sluice
