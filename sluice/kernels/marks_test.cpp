#include "sluice/kernels/marks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice {
namespace {

using Words = std::array<std::uint64_t, 4>;

template <class Is>
Words bits_where(std::string_view text, Is is) {
  Words words = {};
  for (std::size_t i = 0; i < text.size(); ++i)
    if (is(static_cast<unsigned char>(text[i]))) words[i / 64] |= std::uint64_t{1} << i % 64;
  return words;
}

// Every level against a byte at a time. Behind the record stand bytes of every kind that counts.
TEST(Marks, AreThoseOfABytesLoopOnEveryLevel) {
  const std::string before(simd_level());
  const std::string bytes = "a\",0759/:\\\x1f\x20\x7f\x80\xff\n";
  for (const std::string_view level : simd_levels()) {
    force_simd_level(level);
    SplitMix64 random(3);
    for (std::size_t size = 0; size <= 200; ++size) {
      std::string block(size, 'x');
      for (char& byte : block)
        if (random.next() % 4 == 0) byte = bytes[random.next() % bytes.size()];
      const std::string text = block;
      for (std::size_t i = 0; i < 64; ++i) block += bytes[i % bytes.size()];
      Words first = {}, second = {}, quotes = {}, digits = {};
      const bool any =
          needle_marker()(block.data(), size, {',', '\xff'}, first.data(), second.data());
      const Words wanted = bits_where(text, [](unsigned char byte) { return byte == 0xff; });
      EXPECT_EQ(first, bits_where(text, [](unsigned char byte) { return byte == ','; })) << level;
      EXPECT_EQ(second, wanted) << level;
      EXPECT_EQ(any, wanted != Words{}) << level;
      const JsonBytes found = json_marker()(block.data(), size, quotes.data(), digits.data());
      const auto is_odd = [](unsigned char byte) { return byte < 0x20 || byte == '\\'; };
      const auto is_digit = [](unsigned char byte) { return byte >= '0' && byte <= '9'; };
      EXPECT_EQ(quotes, bits_where(text, [](unsigned char byte) { return byte == '"'; })) << level;
      EXPECT_EQ(digits, bits_where(text, is_digit)) << level;
      EXPECT_EQ(found.odd, bits_where(text, is_odd) != Words{}) << level;
      EXPECT_EQ(found.high,
                bits_where(text, [](unsigned char byte) { return byte >= 0x80; }) != Words{})
          << level;
    }
  }
  force_simd_level(before);
}

}  // namespace
}  // namespace sluice
