#include <gtest/gtest.h>

#include "tests/support/key_test_util.hpp"

namespace sluice {
namespace {

std::unique_ptr<KeyExtractor> lines(std::vector<std::string> keys, char delimiter = 0) {
  return make_key_extractor({.kind = Format::Kind::lines, .delimiter = delimiter}, keys);
}

TEST(LineKeys, WithoutKeysTheWholeBody) {
  const auto extractor = lines({});
  const std::string odd("\0\xff a\r", 5);
  EXPECT_EQ(key_of(*extractor, odd).bytes, odd);
  EXPECT_EQ(key_of(*extractor, ""), (Key{KeyStatus::keyed, ""}));
}

TEST(LineKeys, BlanksAndTabsSeparateAsInAwk) {
  const auto second = lines({"2"});
  EXPECT_EQ(key_of(*second, "a b c").bytes, "b");
  EXPECT_EQ(key_of(*second, " \t a\t \tb\t").bytes, "b");
  EXPECT_EQ(key_of(*second, "a  "), kMissing);
  EXPECT_EQ(key_of(*second, ""), kMissing);
}

TEST(LineKeys, ADelimiterSeparatesEmptyFields) {
  const auto second = lines({"2"}, ',');
  EXPECT_EQ(key_of(*second, "a,b c,d").bytes, "b c");
  EXPECT_EQ(key_of(*second, ",,"), (Key{KeyStatus::keyed, ""}));
  EXPECT_EQ(key_of(*second, "a,"), (Key{KeyStatus::keyed, ""}));
  EXPECT_EQ(key_of(*second, "a"), kMissing);
}

TEST(LineKeys, OneFieldIsAView) {
  const auto second = lines({"2"});
  const std::string text = "a b";
  const Record record{text.data(), 3, 3};
  std::string_view key;
  KeyStatus status;
  second->extract({&record, 1}, {&key, 1}, {&status, 1});
  EXPECT_EQ(key.data(), text.data() + 2);
}

TEST(LineKeys, SeveralFieldsAreNotAmbiguous) {
  const auto both = lines({"1,2"}, ',');
  EXPECT_NE(key_of(*both, "a,bc"), key_of(*both, "ab,c"));
  EXPECT_EQ(key_of(*both, "a,b,c"), key_of(*both, "a,b,d"));
  EXPECT_EQ(key_of(*both, "a,bc").bytes, "\1a\2bc");
  EXPECT_EQ(key_of(*lines({"3", "1"}, ','), "a,b,c").bytes, "\1c\1a");
  const std::string wide(300, 'w');
  EXPECT_EQ(key_of(*both, wide + ",").bytes, "\xac\x02" + wide + std::string(1, '\0'));
}

TEST(LineKeys, BuiltKeysSurviveTheGrowthOfTheirBuffer) {
  const auto both = lines({"2,1"}, ',');
  std::vector<std::string> texts;
  for (int i = 0; i < 512; ++i) texts.push_back(std::to_string(i) + ",x");
  const std::vector<Key> keys = keys_of(*both, texts);
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(keys[i], key_of(*both, texts[i]));
}

TEST(LineKeys, BadNumbersAreExplained) {
  for (const char* key : {"0", "", "1,,2", "x", "-1", "1-2", "99999999999999999999"})
    EXPECT_NE(bad_parameters([&] { lines({key}); }).find("counted from 1"), std::string::npos);
}

}  // namespace
}  // namespace sluice
