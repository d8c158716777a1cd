#include <gtest/gtest.h>

#include "tests/support/key_test_util.hpp"

namespace sluice {
namespace {

std::unique_ptr<KeyExtractor> bytes(const std::string& ranges) {
  return make_key_extractor({.kind = Format::Kind::lines}, std::vector{ranges},
                            {.by = KeyStyle::By::bytes});
}

TEST(ByteKeys, RangesCountFromOneAndIncludeTheirEnds) {
  EXPECT_EQ(key_of(*bytes("1-3"), "abcdef").bytes, "abc");
  EXPECT_EQ(key_of(*bytes("4"), "abcdef").bytes, "d");
  EXPECT_EQ(key_of(*bytes("4-"), "abcdef").bytes, "def");
  EXPECT_EQ(key_of(*bytes("5-6,1-2"), "abcdef").bytes, "\2ef\2ab");
  EXPECT_EQ(key_of(*bytes("2-3,2-"), std::string("a\0\xff"
                                                 "d",
                                                 4))
                .bytes,
            std::string("\2\0\xff\3\0\xff"
                        "d",
                        7));
}

TEST(ByteKeys, AShorterRecordHasNoKey) {
  const auto keys = bytes("1-3");
  EXPECT_EQ(key_of(*keys, "abc").bytes, "abc");
  EXPECT_EQ(key_of(*keys, "ab"), kMissing);
  EXPECT_EQ(key_of(*bytes("4-"), "abc"), (Key{KeyStatus::keyed, ""})) << "it ends just before";
  EXPECT_EQ(key_of(*bytes("4-"), "ab"), kMissing);
  EXPECT_EQ(key_of(*bytes("1-2,4-"), "ab"), kMissing);
  const std::string text = "ab";
  EXPECT_EQ(keys->why_not({text.data(), 2, 2}),
            "there are only 2 bytes, and 3 are needed, in 'ab'");
}

TEST(ByteKeys, BadRangesAreExplained) {
  for (const char* range :
       {"0", "0-3", "3-1", "-3", "a", "1-b", "1,,2", "1-2-3", "1:3", " 1", "99999999999999999999"})
    EXPECT_NE(bad_parameters([&] { bytes(range); }).find("counted from 1"), std::string::npos)
        << range;
}

}  // namespace
}  // namespace sluice
