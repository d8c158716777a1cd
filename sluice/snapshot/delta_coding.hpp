// One chunk of a delta: the XOR of two chunks, in the coding that makes it smallest.
//
// The XOR of two versions of a Bloom filter has few, independent ones. The gaps between them,
// Golomb-Rice coded, take only a few percent more than the entropy; zstd alone takes up to twice as
// much. Fingerprints and counters change in clusters, for which zstd is better.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sluice {

// The first byte of a coded chunk. Numbers are never reused.
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
  // Fills `chunk`. Throws CorruptSnapshot unless `coded` is exactly a chunk of that size; sizes in
  // it are not trusted, and nothing is allocated according to them.
  void decode(std::span<const std::byte> coded, std::span<std::byte> chunk);

 private:
  struct Zstd;
  std::unique_ptr<Zstd> zstd_;
};

}  // namespace sluice
