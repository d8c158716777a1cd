#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sluice/stream/case_folding.hpp"
#include "sluice/stream/case_folding_table.hpp"
#include "tests/support/key_test_util.hpp"

namespace sluice {
namespace {

std::string fold(std::string_view text) {
  std::string out(most_folded_bytes(text.size()) + 1, '#');
  const auto size = static_cast<std::size_t>(fold_case(text, out.data()) - out.data());
  EXPECT_LE(size, most_folded_bytes(text.size()));
  EXPECT_EQ(out[most_folded_bytes(text.size())], '#') << "wrote past its room";
  out.resize(size);
  return out;
}

TEST(CaseFolding, Ascii) {
  std::string all, lower;
  for (int byte = 0; byte < 0x80; ++byte) {
    all += static_cast<char>(byte);
    lower += static_cast<char>(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
  }
  EXPECT_EQ(fold(all), lower);
  EXPECT_TRUE(may_fold(all));
  EXPECT_FALSE(may_fold(lower));
  EXPECT_EQ(fold("ABCDEFGHIJ"), "abcdefghij") << "eight at once, and the rest";
}

TEST(CaseFolding, UnicodeOneCharacterToOne) {
  EXPECT_EQ(fold("ÀÉÎÕÜ ŒŠŽ"), "àéîõü œšž");
  EXPECT_EQ(fold("ПРИВЕТ"), "привет");
  EXPECT_EQ(fold("ΣΊΣΥΦΟΣ"), fold("σίσυφος")) << "two forms of sigma";
  EXPECT_EQ(fold("ẞ"), "ß");
  EXPECT_NE(fold("ß"), fold("SS")) << "full folding would say so";
  EXPECT_EQ(fold("K"), "k") << "the sign of kelvin";
  EXPECT_EQ(fold("Ⱥ"), "ⱥ") << "two bytes become three";
  EXPECT_EQ(fold("İ"), "İ") << "has no simple folding";
  EXPECT_EQ(fold("𐐀"), "𐐨");
  EXPECT_EQ(fold("Ꭰ"), "Ꭰ");
  EXPECT_EQ(fold("ꭰ"), "Ꭰ") << "Cherokee folds to capitals";
}

TEST(CaseFolding, BytesThatAreNoUtf8Stay) {
  for (const char* bytes : {"\xff", "\xc3", "\xe2\x84", "\x80", "\xc0\x81", "\xed\xa0\x80",
                            "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe0\x80\x80"})
    EXPECT_EQ(fold(bytes), bytes);
  EXPECT_EQ(fold("\xffÀ\xc3"), "\xffà\xc3");
}

TEST(CaseFolding, TheTableIsInOrderAndIdempotent) {
  for (std::size_t i = 1; i < kFoldRanges.size(); ++i)
    EXPECT_LT(kFoldRanges[i - 1].last, kFoldRanges[i].first);
  std::size_t count = 26;
  for (const FoldRange& range : kFoldRanges)
    for (std::uint32_t code = range.first; code <= range.last; code += range.step, ++count)
      EXPECT_EQ(folded(folded(code)), folded(code));
  EXPECT_EQ(count, 1454U) << "rows of status C and S in Unicode 15.0";
}

RC_GTEST_PROP(CaseFolding, FoldingTwiceIsFoldingOnce, (const std::string& text)) {
  RC_ASSERT(fold(fold(text)) == fold(text));
  if (!may_fold(text)) RC_ASSERT(fold(text) == text);
}

std::unique_ptr<KeyExtractor> styled(Format::Kind kind, std::vector<std::string> keys, bool fold,
                                     bool trim, char delimiter = 0) {
  return make_key_extractor({.kind = kind, .header = false, .delimiter = delimiter}, keys,
                            {.ignore_case = fold, .trim = trim});
}

TEST(FoldedKeys, LinesOfOnePart) {
  const auto both = styled(Format::Kind::lines, {"2"}, true, true, ',');
  EXPECT_EQ(key_of(*both, "x, \tAnn \r\v\f,y").bytes, "ann");
  EXPECT_EQ(key_of(*both, "x,   ,y"), (Key{KeyStatus::keyed, ""}));
  EXPECT_EQ(key_of(*both, "x"), kMissing);
  EXPECT_EQ(key_of(*styled(Format::Kind::lines, {}, true, false), " A ").bytes, " a ");
  EXPECT_EQ(key_of(*styled(Format::Kind::lines, {}, false, true), " A ").bytes, "A");
}

TEST(FoldedKeys, PartsKeepTheirLengths) {
  const auto both = styled(Format::Kind::lines, {"1,2"}, true, true, ',');
  EXPECT_EQ(key_of(*both, " A ,Ⱥ").bytes, "\1a\3ⱥ");
  EXPECT_EQ(key_of(*both, std::string(200, 'X') + ", ").bytes,
            "\xc8\1" + std::string(200, 'x') + std::string(1, '\0'));
  EXPECT_NE(key_of(*both, "A,BC"), key_of(*both, "AB,C"));
  const auto parts =
      make_key_extractor({.kind = Format::Kind::lines}, std::vector<std::string>{"(a)(b)?"},
                         {.by = KeyStyle::By::regex, .ignore_case = true, .trim = true});
  EXPECT_EQ(key_of(*parts, "a").bytes, std::string("\1a\x80\0", 4)) << "absent stays absent";
}

TEST(FoldedKeys, TablesColumnByColumn) {
  const auto all = styled(Format::Kind::csv, {}, true, true);
  EXPECT_EQ(key_of(*all, " A,\"b \""), key_of(*all, "a,b"));
  EXPECT_EQ(key_of(*all, "\"x \"\"Y\"\" \",b"), key_of(*all, "\"X \"\"y\"\"\",B"));
  EXPECT_NE(key_of(*all, "a,,b"), key_of(*all, "a,b"));
  const auto tabs = styled(Format::Kind::tsv, {}, false, true);
  EXPECT_NE(key_of(*tabs, "\ta"), key_of(*tabs, "a")) << "an empty column is a column";
  const auto letter = styled(Format::Kind::csv, {}, true, false, 'X');
  EXPECT_NE(key_of(*letter, "aXb"), key_of(*letter, "axb")) << "a delimiter is no text";
  const auto one = styled(Format::Kind::csv, {"2"}, true, true);
  EXPECT_EQ(key_of(*one, "1,\" B\"\"c\"").bytes, "b\"c");
  EXPECT_EQ(key_of(*one, "1,\"b").status, KeyStatus::malformed);
}

TEST(FoldedKeys, JsonStringsAtAnyDepthButNotNames) {
  const auto all = styled(Format::Kind::json, {}, true, true);
  EXPECT_EQ(key_of(*all, R"({"a":[" X ",{"b":"Y"}],"c":null})"),
            key_of(*all, R"({"c":null,"a":["x",{"b":"y"}]})"));
  EXPECT_NE(key_of(*all, R"({"A":"x"})"), key_of(*all, R"({"a":"x"})"));
  EXPECT_NE(key_of(*all, R"({"a":{"N":"x"},"s":"x"})"), key_of(*all, R"({"a":{"n":"x"},"s":"x"})"));
  EXPECT_EQ(key_of(*all, R"({"a":{},"s":"X"})"), key_of(*all, R"({"a":{},"s":"x"})"));
  EXPECT_EQ(key_of(*all, R"({"a":[],"s":"X"})"), key_of(*all, R"({"a":[],"s":"x"})"));
  EXPECT_EQ(key_of(*all, R"([1E2,"S",true])"), key_of(*all, R"([100,"s",true])"));
  EXPECT_NE(key_of(*all, R"("1")"), key_of(*all, "1")) << "types still matter";
  const auto two = styled(Format::Kind::json, {"/k", "/n"}, true, true);
  EXPECT_EQ(key_of(*two, R"({"k":" A ","n":1.0})"), key_of(*two, R"({"k":"a","n":1})"));
  EXPECT_EQ(key_of(*two, R"({"k":"a"})"), kMissing);
}

RC_GTEST_PROP(FoldedKeys, BothEqualChangingThePartsFirst, (std::string a, std::string b)) {
  const auto plain = [](std::string& text) {
    std::erase_if(text, [](char c) { return c == ','; });
  };
  plain(a);
  plain(b);
  const auto trim = [](const std::string& text) {
    const std::string blanks = " \t\n\v\f\r";
    const auto begin = text.find_first_not_of(blanks);
    return begin == std::string::npos
               ? ""
               : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
  };
  const auto changed = styled(Format::Kind::nul, {"1,2"}, true, true, ',');
  const auto as_is = styled(Format::Kind::nul, {"1,2"}, false, false, ',');
  RC_ASSERT(key_of(*changed, a + "," + b) == key_of(*as_is, fold(trim(a)) + "," + fold(trim(b))));
}

}  // namespace
}  // namespace sluice
