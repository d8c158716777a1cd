#include "connectors/files/zstd_frames.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "connectors/files/packing.hpp"
#include "tests/support/packed.hpp"

namespace sluice {
namespace {

using namespace std::string_literals;
using testing_support::packed;
using testing_support::some_text;
using testing_support::zstd_with_window;

ZstdFrames frames_of(const std::string& bytes, std::uint64_t offset = 0,
                     std::uint64_t most_heads = 1000) {
  std::FILE* const file = std::tmpfile();
  EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  std::fflush(file);
  const ZstdFrames frames = zstd_frames(fileno(file), offset, most_heads);
  std::fclose(file);
  return frames;
}

TEST(ZstdFrames, TheWidestOfAllIsFound) {
  const std::string small = zstd_with_window("text\n", 19), wide = zstd_with_window("text\n", 27);
  const std::string skipped = "\x5a\x2a\x4d\x18\x04\0\0\0abcd"s;
  const ZstdFrames first = frames_of(wide + small);
  EXPECT_EQ(first.window, std::uint64_t{1} << 27);
  EXPECT_EQ(first.frame, 1U);
  EXPECT_TRUE(first.complete);
  // Frames with blocks of all kinds, and checksums.
  const std::string long_one = packed(Packing::zstd, some_text(1'000'000));
  const std::string zeros = packed(Packing::zstd, std::string(1'000'000, '\0'));
  const ZstdFrames last = frames_of(small + skipped + long_one + zeros + wide);
  EXPECT_EQ(last.window, std::uint64_t{1} << 27);
  EXPECT_EQ(last.frame, 5U);
  EXPECT_TRUE(last.complete);
  EXPECT_EQ(frames_of(wide + small, wide.size()).window, std::uint64_t{1} << 19);
}

TEST(ZstdFrames, TheWalkEndsAtWhatIsNoFrame) {
  const std::string wide = zstd_with_window("text\n", 27);
  for (const std::string& bytes : {""s, "text"s, "\x1f\x8b\x08 and more"s}) {
    EXPECT_EQ(frames_of(bytes).window, 0U);
    EXPECT_TRUE(frames_of(bytes).complete);
  }
  EXPECT_EQ(frames_of(wide + "garbage, long enough for a head").window, std::uint64_t{1} << 27);
  for (std::size_t size = 0; size < wide.size(); ++size)
    EXPECT_TRUE(frames_of(wide.substr(0, size)).complete) << size;
  // A frame to skip that ends after the file does.
  EXPECT_TRUE(frames_of("\x5a\x2a\x4d\x18\xff\xff\xff\xff"s).complete);
}

TEST(ZstdFrames, ManyAreNotAllLookedAt) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += zstd_with_window("text\n", 19);
  bytes += zstd_with_window("text\n", 27);
  const ZstdFrames few = frames_of(bytes, 0, 100);
  EXPECT_EQ(few.window, std::uint64_t{1} << 19);
  EXPECT_FALSE(few.complete);
  EXPECT_TRUE(frames_of(bytes, 0, 203).complete);
}

}  // namespace
}  // namespace sluice
