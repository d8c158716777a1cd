#include "connectors/files/packing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/packed.hpp"

namespace sluice {
namespace {

using namespace std::string_literals;
using testing_support::packed;
using testing_support::some_text;

constexpr Packing kBoth[] = {Packing::gzip, Packing::zstd};

struct Unpacked {
  std::string text;
  std::optional<PackingFault> fault;
  bool whole;
  std::uint64_t member;
};

// In pieces of `in` bytes, to buffers of `out` bytes.
Unpacked unpacked(Packing packing, const std::string& bytes, std::size_t in = 1000,
                  std::size_t out = 1000, std::uint64_t most_window = kMostWindow) {
  const auto unpacker = Unpacker::make(packing, most_window);
  std::string text;
  std::vector<char> buffer(out);
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t count = std::min(in, bytes.size() - at);
    Unpacker::Step step;
    std::size_t used = 0;
    do {
      step = unpacker->unpack(std::span(bytes).subspan(at + used, count - used), buffer);
      text.append(buffer.data(), step.made);
      used += step.used;
      if (step.fault) return {text, step.fault, false, unpacker->member()};
    } while (step.made == out || used < count);
    at += used;
  }
  return {text, std::nullopt, unpacker->between(), unpacker->member()};
}

TEST(Packing, IsToldByFirstBytesAndByName) {
  EXPECT_EQ(packing_of(packed(Packing::gzip, "a")), Packing::gzip);
  EXPECT_EQ(packing_of(packed(Packing::zstd, "a")), Packing::zstd);
  EXPECT_EQ(packing_of("\x5e\x2a\x4d\x18\0\0\0\0"s), Packing::zstd);
  for (const std::string& text : {""s, "a"s, "\x1f"s, "\x1f\x8b"s, "P*M\n"s})
    EXPECT_EQ(packing_of(text), Packing::none) << text;
  EXPECT_EQ(packing_of_name("a.csv.gz"), Packing::gzip);
  EXPECT_EQ(packing_of_name("a.zst"), Packing::zstd);
  EXPECT_EQ(packing_of_name("a.gzip"), Packing::none);
  EXPECT_EQ(packing_of_name("-"), Packing::none);
}

TEST(Packing, ComesBackInPiecesOfAnySize) {
  const std::string text = some_text(300'000);
  for (const Packing packing : kBoth) {
    const std::string bytes = packed(packing, text);
    EXPECT_LT(bytes.size(), text.size());
    for (const std::size_t in : {1ul, 7ul, 4096ul, bytes.size()})
      for (const std::size_t out : {1ul, 100ul, 300'000ul, 400'000ul}) {
        if (in * out < 100) continue;
        const Unpacked result = unpacked(packing, bytes, in, out);
        EXPECT_EQ(result.text, text) << in << " " << out;
        EXPECT_TRUE(result.whole);
        EXPECT_EQ(result.member, 1u);
      }
  }
}

TEST(Packing, MembersFollowEachOther) {
  for (const Packing packing : kBoth) {
    const std::string bytes =
        packed(packing, "one\n") + packed(packing, "") + packed(packing, "two\n");
    for (const std::size_t in : {1ul, 10ul, 1000ul}) {
      const Unpacked result = unpacked(packing, bytes, in);
      EXPECT_EQ(result.text, "one\ntwo\n");
      EXPECT_TRUE(result.whole);
      EXPECT_EQ(result.member, 3u);
    }
  }
  const std::string skipped = "\x50\x2a\x4d\x18\x03\0\0\0abc"s;
  const std::string frame = packed(Packing::zstd, "text\n");
  const Unpacked result = unpacked(Packing::zstd, skipped + frame + skipped, 5);
  EXPECT_EQ(result.text, "text\n");
  EXPECT_TRUE(result.whole);
}

TEST(Packing, ZerosMayFollowGzipAndNothingElseMay) {
  const std::string bytes = packed(Packing::gzip, "text\n");
  EXPECT_TRUE(unpacked(Packing::gzip, bytes + std::string(5000, '\0')).whole);
  for (const std::string& rest : {"x"s, "\0x"s, "\n"s, "\0\0"s + bytes}) {
    const Unpacked result = unpacked(Packing::gzip, bytes + rest);
    EXPECT_EQ(result.text, "text\n");
    ASSERT_TRUE(result.fault) << rest;
    EXPECT_EQ(result.fault->kind, PackingFault::Kind::garbage);
  }
  // The last two are heads of frames as zstd 0.5 and 0.7 wrote them.
  for (const std::string& rest : {"x"s, "xxxxx"s, "\0\0\0\0\0"s, "\x25\xb5\x2f\xfd\x04 and more"s,
                                  "\x27\xb5\x2f\xfd\x04 and more"s})
    for (const std::size_t in : {1ul, 3ul, 1000ul}) {
      const Unpacked result = unpacked(Packing::zstd, packed(Packing::zstd, "text\n") + rest, in);
      EXPECT_EQ(result.text, "text\n");
      ASSERT_TRUE(result.fault) << rest;
      EXPECT_EQ(result.fault->kind, PackingFault::Kind::garbage);
    }
}

TEST(Packing, ATruncatedFileIsNotWholeWhereverItIsCut) {
  for (const Packing packing : kBoth) {
    const std::string bytes = packed(packing, some_text(2000));
    for (std::size_t size = 1; size < bytes.size(); ++size) {
      const Unpacked result = unpacked(packing, bytes.substr(0, size));
      EXPECT_FALSE(result.fault) << size;
      EXPECT_FALSE(result.whole) << size;
      EXPECT_TRUE(some_text(2000).starts_with(result.text));
    }
  }
}

// A changed byte is found, or changes nothing (the name or the time in a header): checksums see to it.
TEST(Packing, AnyChangedByteIsFound) {
  const std::string text = some_text(500);
  for (const Packing packing : kBoth) {
    const std::string bytes = packed(packing, text);
    std::size_t found = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at)
      for (const char change : {'\x01', '\x80'}) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ change);
        const Unpacked result = unpacked(packing, changed, 100, 100);
        if (result.fault || !result.whole)
          ++found;
        else
          EXPECT_EQ(result.text, text) << at;
      }
    EXPECT_GT(found, bytes.size());
  }
}

TEST(Packing, HostileBytesEndInTime) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const Packing packing = kBoth[trial % 2];
    std::string bytes = packed(packing, some_text(1000));
    for (int change = 0; change < 3; ++change)
      bytes[4 + random() % (bytes.size() - 4)] = static_cast<char>(random());
    unpacked(packing, bytes, 1 + random() % 500, 1 + random() % 500, 1 << 20);
  }
}

TEST(Packing, AZstdWindowIsLimited) {
  const std::string frame = testing_support::zstd_with_window(some_text(100), 22);
  EXPECT_EQ(zstd_window(frame), std::uint64_t{1} << 22);
  EXPECT_EQ(unpacked(Packing::zstd, frame).text, some_text(100));
  for (const std::size_t in : {1ul, 1000ul}) {
    const Unpacked result = unpacked(Packing::zstd, frame, in, 1000, 1 << 21);
    ASSERT_TRUE(result.fault);
    EXPECT_EQ(result.fault->kind, PackingFault::Kind::window);
    EXPECT_EQ(result.fault->window, std::uint64_t{1} << 22);
  }
  // A frame that is a single segment has the size of its contents.
  EXPECT_EQ(zstd_window("\x28\xb5\x2f\xfd\x20\x07"s), 7u);
  EXPECT_EQ(zstd_window("\x28\xb5\x2f\xfd\x60\x07\x01"s), 256u + 7 + 256);
  EXPECT_EQ(zstd_window("\x28\xb5\x2f\xfd\xa0\x07"s), 0u);
}

TEST(Packing, AFrameThatNeedsADictionaryIsToldApart) {
  // The header says: a dictionary of number 5, and a single segment of 4 bytes.
  const Unpacked result = unpacked(Packing::zstd, "\x28\xb5\x2f\xfd\x21\x05\x04\x21\0\0"s + "text");
  ASSERT_TRUE(result.fault);
  EXPECT_EQ(result.fault->kind, PackingFault::Kind::dictionary);
}

TEST(Packing, WhatIsFlushedCanBeUnpackedBeforeTheEnd) {
  for (const Packing packing : kBoth) {
    const auto packer = Packer::make(packing);
    std::string bytes;
    const auto take = [&](std::string_view made) { bytes += made; };
    packer->pack("first\n", Packer::Until::taken, take);
    packer->pack("", Packer::Until::flushed, take);
    EXPECT_EQ(unpacked(packing, bytes).text, "first\n");
    EXPECT_FALSE(unpacked(packing, bytes).whole);
    packer->pack("second\n", Packer::Until::ended, take);
    EXPECT_EQ(unpacked(packing, bytes).text, "first\nsecond\n");
    EXPECT_TRUE(unpacked(packing, bytes).whole);
    packer->pack("", Packer::Until::ended, take);
    packer->pack(some_text(1'000'000), Packer::Until::taken, take);
    packer->pack("", Packer::Until::ended, take);
    const Unpacked result = unpacked(packing, bytes);
    EXPECT_EQ(result.text, "first\nsecond\n" + some_text(1'000'000));
    EXPECT_EQ(result.member, 3u);
  }
}

}  // namespace
}  // namespace sluice
