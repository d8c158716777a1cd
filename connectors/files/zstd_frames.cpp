#include "connectors/files/zstd_frames.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include "connectors/files/packing.hpp"

namespace sluice {
namespace {

std::size_t read_at(int descriptor, std::uint64_t offset, char* into, std::size_t count) {
  for (;;) {
    const ssize_t got = ::pread(descriptor, into, count, static_cast<off_t>(offset));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return 0;
  }
}

std::uint32_t little_endian(const char* bytes, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value |= std::uint32_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
  return value;
}

constexpr std::uint32_t kFrame = 0xfd2fb528;
constexpr std::uint32_t kSkipped = 0x184d2a50;  // and the 15 numbers after it

// RFC 8878, 3.1.1.1: magic number, descriptor, window, dictionary, size of the contents.
std::size_t header_bytes(std::uint8_t flags) {
  constexpr std::array<std::size_t, 4> kDictionary = {0, 1, 2, 4}, kContents = {0, 2, 4, 8};
  const bool single_segment = (flags & 0x20) != 0;
  const std::size_t contents = (flags >> 6) == 0 && single_segment ? 1 : kContents[flags >> 6];
  return 5 + (single_segment ? 0 : 1) + kDictionary[flags & 3] + contents;
}

}  // namespace

ZstdFrames zstd_frames(int descriptor, std::uint64_t offset, std::uint64_t most_heads) {
  // Sizes in a file are at most 2^32, so that offsets cannot wrap around in that many steps.
  constexpr std::uint64_t kLastOffset = std::uint64_t{1} << 62;
  ZstdFrames frames;
  std::uint64_t heads = 0;
  for (std::uint64_t frame = 1; offset < kLastOffset; ++frame) {
    if (heads++ == most_heads) return frames;
    char head[kZstdHeadBytes];
    const std::size_t got = read_at(descriptor, offset, head, sizeof head);
    const std::uint32_t magic = got < 8 ? 0 : little_endian(head, 4);
    if ((magic & 0xfffffff0) == kSkipped) {
      offset += 8 + std::uint64_t{little_endian(head + 4, 4)};
      continue;
    }
    if (magic != kFrame) break;
    const std::uint64_t window = zstd_window({head, got});
    if (window > frames.window) {
      frames.window = window;
      frames.frame = frame;
    }
    const auto flags = static_cast<std::uint8_t>(head[4]);
    offset += header_bytes(flags);
    for (bool last = false; !last;) {
      if (heads++ == most_heads) return frames;
      if (read_at(descriptor, offset, head, 3) < 3) {
        frames.complete = true;
        return frames;
      }
      const std::uint32_t block = little_endian(head, 3);
      last = (block & 1) != 0;
      const bool repeated_byte = ((block >> 1) & 3) == 1;
      offset += 3 + std::uint64_t{repeated_byte ? 1 : block >> 3};
    }
    if ((flags & 4) != 0) offset += 4;  // a checksum
  }
  frames.complete = true;
  return frames;
}

}  // namespace sluice
