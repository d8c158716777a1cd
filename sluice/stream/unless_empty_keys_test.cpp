#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/key_test_util.hpp"

namespace sluice {
namespace {

std::unique_ptr<KeyExtractor> unless_empty(Format::Kind kind, std::vector<std::string> keys,
                                           KeyStyle style = {}, char delimiter = 0) {
  style.unless_empty = true;
  return make_key_extractor({.kind = kind, .header = false, .delimiter = delimiter}, keys, style);
}

std::string why_not(KeyExtractor& extractor, std::string text) {
  const std::size_t size = text.size();
  text.resize(size + kPaddingBytes);
  return extractor.why_not({text.data(), size, size});
}

TEST(UnlessEmptyKeys, OneField) {
  const auto csv = unless_empty(Format::Kind::csv, {"1"});
  EXPECT_EQ(key_of(*csv, ",b"), kMissing);
  EXPECT_EQ(key_of(*csv, "\"\",b"), kMissing);
  EXPECT_EQ(key_of(*csv, "a,b").bytes, "a");
  EXPECT_EQ(key_of(*csv, " ,b").bytes, " ");
  EXPECT_EQ(why_not(*csv, ",b"), "the key (column 1) is empty in ',b'");
  EXPECT_EQ(why_not(*csv, "a,b"), "");
  EXPECT_EQ(key_of(*unless_empty(Format::Kind::csv, {"1"}, {.trim = true}), " ,b"), kMissing);
  EXPECT_EQ(key_of(*unless_empty(Format::Kind::lines, {"2"}, {}, ','), "a,"), kMissing);
}

TEST(UnlessEmptyKeys, SeveralFieldsMustAllBeEmpty) {
  for (const KeyStyle& style : {KeyStyle{}, KeyStyle{.ignore_case = true, .trim = true}}) {
    const auto csv = unless_empty(Format::Kind::csv, {"1,2"}, style);
    EXPECT_EQ(key_of(*csv, ",,c"), kMissing);
    EXPECT_NE(key_of(*csv, "a,,c"), kMissing);
    EXPECT_NE(key_of(*csv, ",a,c"), kMissing);
    // The form of a key that is not empty may have bytes like those of one that is.
    EXPECT_NE(key_of(*csv, std::string("\"\0\",", 4)), kMissing);
    EXPECT_EQ(csv->parts(), 2U);
  }
}

TEST(UnlessEmptyKeys, GroupsThatTookNoPart) {
  const auto regex = unless_empty(Format::Kind::lines, {"x(a*)(b)?"}, {.by = KeyStyle::By::regex});
  EXPECT_EQ(key_of(*regex, "x"), kMissing);
  EXPECT_NE(key_of(*regex, "xa"), kMissing);
  EXPECT_NE(key_of(*regex, "xb"), kMissing);
  EXPECT_EQ(key_of(*regex, "y"), kMissing);
  EXPECT_EQ(why_not(*regex, "y"), "the expression does not match 'y'");
}

TEST(UnlessEmptyKeys, StringsAndNullsOfJson) {
  const auto one = unless_empty(Format::Kind::json, {"/a"});
  for (const char* text : {R"({"a":""})", R"({"a":null})"})
    EXPECT_EQ(key_of(*one, text), kMissing) << text;
  for (const char* text : {R"({"a":0})", R"({"a":false})", R"({"a":[]})", R"({"a":{}})",
                           R"({"a":[null]})", R"({"a":"n"})", R"({"a":"\u0000"})", R"({"a":" "})"})
    EXPECT_NE(key_of(*one, text), kMissing) << text;
  const auto two = unless_empty(Format::Kind::json, {"/a,/b"});
  EXPECT_EQ(key_of(*two, R"({"a":null,"b":""})"), kMissing);
  EXPECT_NE(key_of(*two, R"({"a":null,"b":1})"), kMissing);
}

TEST(UnlessEmptyKeys, WholeRecordsMayBeEmpty) {
  EXPECT_EQ(key_of(*unless_empty(Format::Kind::lines, {}), ""), (Key{KeyStatus::keyed, ""}));
  EXPECT_EQ(key_of(*unless_empty(Format::Kind::csv, {}), ",").status, KeyStatus::keyed);
  EXPECT_EQ(key_of(*unless_empty(Format::Kind::csv, {}, {.trim = true}), ",").status,
            KeyStatus::keyed);
}

}  // namespace
}  // namespace sluice
