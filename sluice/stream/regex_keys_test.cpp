#include <gtest/gtest.h>

#include "sluice/stream/event_time.hpp"
#include "tests/support/key_test_util.hpp"

namespace sluice {
namespace {

std::unique_ptr<KeyExtractor> regex(const std::string& expression) {
  return make_key_extractor({.kind = Format::Kind::lines}, std::vector{expression},
                            {.by = KeyStyle::By::regex});
}

std::string refusal(const std::string& expression) {
  return bad_parameters([&] { regex(expression); });
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The text of the time in a record's key.
std::string time_of(KeyExtractor& extractor, const std::string& text) {
  const std::string padded = text + std::string(kPaddingBytes, ' ');
  const Record record{padded.data(), text.size(), text.size()};
  std::string_view key;
  KeyStatus status{};
  extractor.extract({&record, 1}, {&key, 1}, {&status, 1});
  return std::string(extractor.times()[0]);
}

TEST(RegexKeys, GroupsAreThePartsInTheirOrder) {
  const auto two = regex(R"(user=(\w+) .* path=(\S+))");
  EXPECT_EQ(two->parts(), 2U);
  EXPECT_EQ(key_of(*two, "1 user=ann x path=/a y").bytes, "\3ann\2/a");
  EXPECT_EQ(key_of(*two, "1 user=ann path=/a"), kMissing) << "one blank for two";
  const auto named = regex(R"((?P<b>\w+)=(?P<a>\w+))");
  EXPECT_EQ(key_of(*named, "x y=z").bytes, "\1y\1z");
}

TEST(RegexKeys, OneGroupOrNoneIsAViewOfTheRecord) {
  EXPECT_EQ(key_of(*regex(R"(id=(\d+))"), "a id=17;").bytes, "17");
  EXPECT_EQ(key_of(*regex(R"(id=\d+)"), "a id=17;").bytes, "id=17");
  EXPECT_EQ(key_of(*regex(R"(id=(\d*))"), "a id=;"), (Key{KeyStatus::keyed, ""}));
  EXPECT_EQ(key_of(*regex("^(.*)$"), ""), (Key{KeyStatus::keyed, ""}));
  EXPECT_EQ(key_of(*regex("^(.*)$"), "a b").bytes, "a b");
}

TEST(RegexKeys, AGroupThatTookNoPartDiffersFromAnEmptyOne) {
  const auto either = regex(R"(id=(\d*)(?:;to=(\w*))?)");
  const Key absent = key_of(*either, "id=1"), empty = key_of(*either, "id=1;to=");
  EXPECT_EQ(absent.bytes, std::string("\1"
                                      "1\x80\0",
                                      4));
  EXPECT_EQ(empty.bytes, std::string("\1"
                                     "1\0",
                                     3));
  const auto one = regex(R"(id=(\d+)|uuid=(\w+))");
  EXPECT_NE(key_of(*one, "id=1"), key_of(*one, "uuid=1"));
  EXPECT_EQ(key_of(*regex("x(y)?"), "x"), kMissing) << "none of the groups took part";
  EXPECT_EQ(key_of(*regex("x(y)?(z)?"), "x"), kMissing);
}

TEST(RegexKeys, WorkOnBytes) {
  const std::string bytes("a\0\xff\xc3\xa9 b", 7);
  EXPECT_EQ(key_of(*regex(R"(^(\S+) b)"), bytes).bytes, bytes.substr(0, 5));
  EXPECT_EQ(key_of(*regex("a(.)(.)"), bytes).bytes, std::string("\1\0\1\xff", 4));
  EXPECT_EQ(key_of(*regex("(é) b"), bytes).bytes, "é");
  EXPECT_EQ(key_of(*regex(R"((\w+))"), "\xc3\xa9t\xc3\xa9").bytes, "t") << "ASCII letters";
}

TEST(RegexKeys, TheGroupTimeIsNoPartOfTheKey) {
  const std::string expression = R"(^(?P<time>\S+ \S+) (\w+)(?: (\w+))?)";
  const auto keys = regex(expression);
  EXPECT_EQ(keys->parts(), 2U);
  EXPECT_EQ(key_of(*keys, "2026-01-01 10:00:00 ann x").bytes, "\3ann\1x");
  EXPECT_EQ(time_of(*keys, "2026-01-01 10:00:00 ann x"), "2026-01-01 10:00:00");
  EXPECT_TRUE(has_time_group(expression));
  EXPECT_FALSE(has_time_group("(?P<times>x)(time)"));
  const auto times = make_key_extractor({.kind = Format::Kind::lines}, std::vector{expression},
                                        {.by = KeyStyle::By::time_group});
  EXPECT_EQ(key_of(*times, "2026-01-01 10:00:00 ann").bytes, "2026-01-01 10:00:00");
  EXPECT_TRUE(holds(refusal("(?P<time>[0-9]+) x"), "there is no other group"));
}

TEST(RegexKeys, ReasonsQuoteTheRecord) {
  const auto keys = regex("id=([0-9]+)(?: at=(?P<time>[0-9]+))?");
  const std::string none = "no such thing", timeless = "id=1";
  EXPECT_EQ(keys->why_not({none.data(), none.size(), none.size()}),
            "the expression does not match 'no such thing'");
  EXPECT_EQ(keys->why_not({timeless.data(), timeless.size(), timeless.size()}), "");
  EXPECT_EQ(key_of(*keys, timeless).bytes, "1");
  EXPECT_EQ(time_of(*keys, timeless), "");
}

TEST(RegexKeys, BadExpressionsAreExplained) {
  EXPECT_TRUE(holds(refusal("a(b"), "missing"));
  EXPECT_TRUE(holds(refusal("("), "missing ) after a group")) << refusal("(");
  EXPECT_TRUE(refusal("[").ends_with("missing ]")) << refusal("[");
  EXPECT_TRUE(holds(refusal("ab)"), "unexpected )"));
  EXPECT_TRUE(holds(refusal("id=[z-a]"), "z-a (at byte 5)")) << refusal("id=[z-a]");
  EXPECT_TRUE(holds(refusal(R"((\w)\1)"), "backreferences are not supported"));
  EXPECT_TRUE(holds(refusal("a(?=b)"), "lookahead is not supported")) << refusal("a(?=b)");
  EXPECT_TRUE(holds(refusal("(?<=a)b"), "lookbehind is not supported")) << refusal("(?<=a)b");
  EXPECT_TRUE(holds(refusal("(?<!a)b"), "lookbehind is not supported")) << refusal("(?<!a)b");
  EXPECT_TRUE(holds(refusal("(?<x>a)b"), "(?P<name>")) << refusal("(?<x>a)b");
  EXPECT_TRUE(holds(refusal("a**"), "bad repetition operator: **"));
  EXPECT_TRUE(holds(refusal("(a{100}){100}"), "multiply to at most 1000"));
  std::string large;
  for (int i = 0; i < 20; ++i) large += "\\w{1000}";
  EXPECT_TRUE(holds(refusal(large), "too large"));
  EXPECT_TRUE(holds(refusal("[é]"), "work on bytes"));
  EXPECT_TRUE(holds(refusal("é+"), "work on bytes"));
  EXPECT_TRUE(holds(refusal("\\pL+"), "work on bytes"));
  EXPECT_EQ(key_of(*regex("[]a]x|(?:é)+y"), "ééy").bytes, "ééy");
}

TEST(RegexKeys, AnExpressionThatMatchesNothingEverywhereIsRefused) {
  for (const char* expression : {R"(\d*)", R"((\d*))", R"(^(\w*))", "(a?)(b?)", "x*|y"})
    EXPECT_TRUE(holds(refusal(expression), "same empty key")) << expression;
  for (const char* expression : {"^(.*)$", ".*", R"((?:id=(\d+))?)", R"(id=(\d*))"})
    EXPECT_NO_THROW(regex(expression)) << expression;
}

TEST(RegexKeys, AreForLines) {
  for (const auto kind : {Format::Kind::csv, Format::Kind::tsv, Format::Kind::json})
    EXPECT_TRUE(holds(bad_parameters([&] {
                        make_key_extractor({.kind = kind}, std::vector<std::string>{"a"},
                                           {.by = KeyStyle::By::regex});
                      }),
                      "for lines"));
}

TEST(RegexKeys, BatchesGiveWhatSingleRecordsGive) {
  const auto keys = regex(R"((\w+)(?:-(\w*))?;)");
  std::vector<std::string> texts;
  for (int i = 0; i < 512; ++i)
    texts.push_back(std::string(static_cast<std::size_t>(i % 70), 'a') + (i % 3 ? "-b" : "") +
                    (i % 5 ? ";" : ""));
  const std::vector<Key> found = keys_of(*keys, texts);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], key_of(*keys, texts[i]));
}

}  // namespace
}  // namespace sluice
