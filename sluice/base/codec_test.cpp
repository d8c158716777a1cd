#include "sluice/base/codec.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

TEST(Codec, FieldsAreLittleEndianAndOfFixedWidth) {
  BytesEncoder to;
  to.u8(0x01);
  to.u32(0x05040302);
  to.u64(0x0D0C0B0A09080706);
  to.f64(1.0);
  const std::vector<std::byte> bytes = to.take();
  ASSERT_EQ(bytes.size(), 1u + 4 + 8 + 8);
  for (std::size_t i = 0; i < 13; ++i) EXPECT_EQ(bytes[i], static_cast<std::byte>(i + 1));
  // 1.0 is 0x3FF0000000000000.
  EXPECT_EQ(bytes[20], std::byte{0x3F});
  EXPECT_EQ(bytes[19], std::byte{0xF0});
}

TEST(Codec, RoundTrip) {
  BytesEncoder to;
  to.u64(~0ULL);
  to.u8(255);
  to.f64(-std::numeric_limits<double>::infinity());
  to.u32(~0U);
  const std::vector<std::byte> bytes = to.take();
  BytesDecoder from(bytes);
  EXPECT_EQ(from.remaining(), bytes.size());
  EXPECT_EQ(from.u64(), ~0ULL);
  EXPECT_EQ(from.u8(), 255);
  EXPECT_EQ(from.f64(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(from.u32(), ~0U);
  EXPECT_EQ(from.remaining(), 0u);
}

TEST(Codec, AFieldThatIsCutOffIsCorrupt) {
  const std::byte bytes[7] = {};
  BytesDecoder from(bytes);
  try {
    from.u64();
    FAIL();
  } catch (const CorruptSnapshot& error) {
    EXPECT_EQ(std::string(error.what()), "the bytes end where 8 more should be");
  }
  EXPECT_EQ(from.remaining(), 7u) << "a refused read takes nothing";
  EXPECT_EQ(from.u32(), 0u);
}

TEST(Codec, ATableOfAnotherSizeIsCorrupt) {
  const std::byte bytes[10] = {};
  const BytesDecoder from(bytes);
  EXPECT_NO_THROW(from.expect_remaining(10, "the table"));
  EXPECT_THROW(from.expect_remaining(9, "the table"), CorruptSnapshot);
  try {
    from.expect_remaining(1ULL << 60, "the table");
    FAIL();
  } catch (const CorruptSnapshot& error) {
    EXPECT_EQ(std::string(error.what()),
              "the table should take 1152921504606846976 bytes, but 10 are there");
  }
}

}  // namespace
}  // namespace sluice
