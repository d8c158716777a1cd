#include "sluice/cluster/layout.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <functional>
#include <limits>
#include <string>

#include "sluice/base/random.hpp"

namespace sluice::cluster {
namespace {

constexpr WindowSpec kTenMinutes = {WindowSpec::Kind::time, 600'000'000'000};

Layout filters(std::uint32_t sites = 3) {
  Layout layout;
  layout.identity = 0x0123456789abcdef;
  layout.version = 7;
  layout.made_ms = 1'700'000'000'000;
  layout.changed_ms = 1'700'000'123'456;
  layout.secret = Secret::from_seed(1);
  layout.slicing.slices = sites;
  layout.window = kTenMinutes;
  layout.slack = 1.0 / 24;
  layout.fpr = 1e-6;
  layout.rate = 5000;
  layout.words = {"WINDOW", "10m", "RATE", "1667/s"};
  for (std::uint32_t i = 0; i < sites; ++i)
    layout.slices.push_back({.turn = i * 3, .placed = 1 + i % 7, .incarnation = 1000 + i});
  return layout;
}

Layout cells() {
  Layout layout = filters(0);
  layout.kind = Layout::Kind::cells;
  layout.hash = HashKind::xxh3;
  layout.window.reset();
  layout.slack = 0;
  layout.words.clear();
  layout.slicing = {.slicing = Slicing::horizontal_vertical,
                    .bits = 1'000'003,
                    .probes = 14,
                    .slices = 4,
                    .inner = 5};
  layout.slices.resize(20);
  layout.servers = 3;
  return layout;
}

std::string sealed(std::string bytes) {
  const std::size_t end = bytes.size() - 8;
  const std::uint64_t sum = XXH3_64bits(bytes.data(), end);
  for (unsigned i = 0; i < 8; ++i) bytes[end + i] = static_cast<char>(sum >> (8 * i));
  return bytes;
}

std::string refusal(const Layout& layout) {
  try {
    layout.check();
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "";
}

TEST(Layout, RoundTrips) {
  Layout moving = filters();
  moving.move = {.site = 1, .turn = 42};
  Layout dropped = filters();
  dropped.dropped = true;
  Layout forever = filters();
  forever.window.reset();
  Layout counts = filters(1);
  counts.window = WindowSpec{WindowSpec::Kind::count, 1000};
  counts.anchor = Anchor::refreshed;
  Layout most = filters(SliceMap::kMostSites);
  most.version = std::numeric_limits<std::uint64_t>::max();
  for (Layout::Slice& slice : most.slices)
    slice = {.turn = 0xffff'ffff, .placed = most.version, .incarnation = most.version};
  most.words.assign(Layout::kMostWords, std::string(Layout::kMostWordBytes, 'w'));
  for (const Layout& layout : {filters(), cells(), moving, dropped, forever, counts, most}) {
    const std::string bytes = encode(layout);
    EXPECT_LE(bytes.size(), Layout::kMostBytes);
    EXPECT_EQ(decode_layout(bytes), layout);
  }
}

// Servers hold these bytes: what differs would be refused, or read wrongly.
TEST(Layout, BytesDoNotChange) {
  std::string hex;
  for (const char byte : encode(filters()))
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  EXPECT_EQ(hex,
            "736c756963656c61790100ac0000000100efcdab896745230107000000000000000068e5cf8b01000040"
            "4ae7cf8b0100000002c15c0289ec2d0a9167ec8e65a18debbe5e5532fbeea293f80bc942ee9086c17100"
            "0000030101020070c9b28b00000000555555555555a53f8dedb5a0f7c6b03e000000000088b340000000"
            "0000000000040657494e444f570331306d045241544506313636372f73030001e8030000000000000302"
            "e9030000000000000603ea03000000000000006957792cea6015fe");
}

TEST(Layout, TheNextVersionIsOfTheSameFilter) {
  const Layout layout = filters();
  Layout next = layout.next(1'800'000'000'000);
  EXPECT_EQ(next.version, 8u);
  EXPECT_EQ(next.changed_ms, 1'800'000'000'000);
  next.slices[0].turn = 99;
  next.move = {.site = 2, .turn = 5};
  EXPECT_TRUE(next.same_filter(layout));
  // A clock that was set back.
  EXPECT_EQ(layout.next(5).changed_ms, layout.changed_ms);
  Layout other = layout;
  ++other.identity;
  EXPECT_FALSE(other.same_filter(layout));
  other = layout;
  other.secret = Secret::from_seed(2);
  EXPECT_FALSE(other.same_filter(layout));
}

TEST(Layout, WhatCannotWorkIsRefusedWithAReason) {
  const auto changed = [](Layout layout, const std::function<void(Layout&)>& change) {
    change(layout);
    return refusal(layout);
  };
  EXPECT_EQ(refusal(filters()), "");
  EXPECT_EQ(refusal(cells()), "");
  EXPECT_EQ(changed(filters(),
                    [](Layout& l) {
                      l.window = {WindowSpec::Kind::count, 1000};
                    }),
            "layout: a `window` of a count over 3 sites: each would count only its own part of the "
            "stream; give a `window` of time, or one site");
  EXPECT_EQ(changed(filters(1), [](Layout& l) { l.window = {WindowSpec::Kind::count, 1000}; }), "");
  const std::pair<const char*, std::function<void(Layout&)>> wrong[] = {
      {"version 0", [](Layout& l) { l.version = 0; }},
      {"0 sites", [](Layout& l) { l.slices.clear(); }},
      {"one per site", [](Layout& l) { l.slices.pop_back(); }},
      {"one per site", [](Layout& l) { l.slicing.slicing = Slicing::vertical; }},
      {"a slice of version 8", [](Layout& l) { l.slices[1].placed = 8; }},
      {"a slice of version 0", [](Layout& l) { l.slices[1].placed = 0; }},
      {"slice 3 of 3", [](Layout& l) { l.move = {.site = 3}; }},
      {"a `window` of 0", [](Layout& l) { l.window->size = 0; }},
      {"a `slack` of 2", [](Layout& l) { l.slack = 2; }},
      {"an `fpr` of 1", [](Layout& l) { l.fpr = 1; }},
      {"a `rate` of", [](Layout& l) { l.rate = std::numeric_limits<double>::infinity(); }},
      {"`refresh` without", [](Layout& l) { l.window.reset(), l.anchor = Anchor::refreshed; }},
      {"1001 servers", [](Layout& l) { l.servers = 1001; }},
      {"65 words", [](Layout& l) { l.words.resize(65, "x"); }},
      {"a word of 0 bytes", [](Layout& l) { l.words[0].clear(); }},
  };
  for (const auto& [sentence, change] : wrong) {
    EXPECT_NE(changed(filters(), change).find(sentence), std::string::npos)
        << sentence << ": " << changed(filters(), change);
  }
  EXPECT_NE(changed(cells(), [](Layout& l) { l.slices.pop_back(); }).find("19 slices where"),
            std::string::npos);
  EXPECT_NE(changed(cells(), [](Layout& l) { l.slicing.probes = 0; }).find("0 probes"),
            std::string::npos);
  EXPECT_NE(changed(cells(), [](Layout& l) { l.words = {"WINDOW"}; }).find("cell slices"),
            std::string::npos);
}

std::string error_of(const std::string& bytes) {
  try {
    decode_layout(bytes);
  } catch (const CorruptLayout& error) {
    return error.what();
  }
  return "";
}

TEST(Layout, DamageIsNamed) {
  const std::string bytes = encode(filters());
  EXPECT_NE(error_of("hello").find("it begins otherwise"), std::string::npos);
  EXPECT_NE(error_of(bytes.substr(0, 12)).find("it is cut off"), std::string::npos);
  EXPECT_NE(error_of(bytes + "x").find("bytes where it says"), std::string::npos);
  std::string other = bytes;
  other[9] = 2;
  EXPECT_NE(error_of(other).find("it has format 2, and this sluice reads format 1"),
            std::string::npos);
  other = bytes;
  other[20] ^= 1;
  EXPECT_NE(error_of(other).find("checksum"), std::string::npos);
  EXPECT_NE(error_of(bytes + std::string(Layout::kMostBytes, '\0')).find("has at most"),
            std::string::npos);
}

// Truncated, changed and sealed again: refused, or a layout that passes its check. Nothing else
// happens, and little is allocated.
TEST(Layout, HostileBytesAreRefused) {
  SplitMix64 random(17);
  std::size_t read = 0, refused = 0;
  for (const Layout& layout : {filters(), cells()}) {
    const std::string whole = encode(layout);
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_NE(error_of(whole.substr(0, size)), "");
    // The length of what is left, too.
    for (std::size_t size = 24; size < whole.size(); ++size) {
      std::string cut = whole.substr(0, size);
      for (unsigned i = 0; i < 4; ++i) cut[11 + i] = static_cast<char>((size - 15 - 8) >> (8 * i));
      EXPECT_NE(error_of(sealed(cut)), "") << size;
    }
    for (unsigned turn = 0; turn < 20'000; ++turn) {
      std::string bytes = whole;
      for (std::uint64_t changes = 1 + random.next() % 3; changes > 0; --changes) {
        // After the magic, the format and the length.
        const std::size_t at = 15 + random.next() % (bytes.size() - 15 - 8);
        bytes[at] = static_cast<char>(random.next() % 3 == 0 ? 0xff : random.next());
      }
      try {
        const Layout changed = decode_layout(sealed(bytes));
        EXPECT_EQ(refusal(changed), "");
        // Whoever replaces it compares bytes.
        EXPECT_EQ(encode(changed), sealed(bytes));
        ++read;
      } catch (const CorruptLayout&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(read, 1000u);
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace sluice::cluster
