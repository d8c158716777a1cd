// The windows that the frames of a zstd file ask for, without unpacking it.
#pragma once

#include <cstdint>

namespace sluice {

struct ZstdFrames {
  std::uint64_t window = 0;  // the largest; 0: no frame was found
  std::uint64_t frame = 0;   // the first that needs it, from 1, as Unpacker::member() counts
  bool complete = false;     // all frames were looked at
};

// Of a regular file from `offset` on. Reads the heads of frames and blocks, at most `most_heads` of them. What
// is damaged or cut off ends the walk: unpacking it will say so.
ZstdFrames zstd_frames(int descriptor, std::uint64_t offset,
                       std::uint64_t most_heads = std::uint64_t{1} << 17);

}  // namespace sluice
