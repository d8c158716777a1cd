#include "sluice/stream/json_glance.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "sluice/stream/record.hpp"

namespace sluice {
namespace {

// The values of /a and /b, or nothing when a full parser is to be asked.
std::optional<std::vector<std::string>> glance(const std::string& text) {
  // Behind the text stands what would go on with it.
  for (const char* behind : {"\"", "}", "]", "0", " ", ",\"a\":1}", "ue}"}) {
    std::string padded = text;
    while (padded.size() < text.size() + kPaddingBytes) padded += behind;
    const std::vector<GlanceName> names = {GlanceName("a"), GlanceName("b")};
    std::vector<std::string_view> values(2);
    const bool sure = glance_at_json(json_marker(), std::string_view(padded).substr(0, text.size()),
                                     names, values);
    if (behind[0] != 'u') {
      if (sure) continue;
      return {};
    }
    if (sure) return std::vector<std::string>(values.begin(), values.end());
  }
  return {};
}

using Values = std::vector<std::string>;

// Only what is not seen here goes the long way, so that a test of keys alone would not tell.
TEST(JsonGlance, SeesPlainObjects) {
  EXPECT_EQ(glance(R"({"a":1,"b":"x"})"), (Values{"1", "\"x\""}));
  EXPECT_EQ(glance(R"( { "b" : -0.5e+10 , "c":[ ] , "a" : null } )"), (Values{"null", "-0.5e+10"}));
  EXPECT_EQ(glance("{\"a\":true}\r"), (Values{"true", ""}));
  EXPECT_EQ(glance("{}"), (Values{"", ""}));
  EXPECT_EQ(glance(R"({"a":"","c":{"a":[1,{"b":2},"]"]},"b":false})"), (Values{"\"\"", "false"}));
  EXPECT_EQ(glance(R"({"a":1,"a":2})"), (Values{"1", ""})) << "the first wins";
  EXPECT_EQ(glance("{\"a\":\"\xC3\xA9\",\"b\":0}"), (Values{"\"\xC3\xA9\"", "0"}));
  EXPECT_EQ(glance(R"({"a":{"x":1},"b":[]})"), (Values{R"({"x":1})", "[]"}));
}

TEST(JsonGlance, SeesTokensThatCrossWords) {
  for (std::size_t shift = 0; shift < 140; ++shift) {
    const std::string digits(70, '7'), name(shift, 'n');
    EXPECT_EQ(glance("{\"" + name + "x\":[0],\"a\":" + digits + ",\"b\":\"" + name + "\"}"),
              (Values{digits, "\"" + name + "\""}))
        << shift;
  }
}

TEST(JsonGlance, LeavesTheRestToAParser) {
  for (const char* text : {"",
                           " ",
                           "1",
                           "[]",
                           "\"a\"",
                           "{",
                           "{\"a\"",
                           "{\"a\":",
                           "{\"a\":1",
                           "{\"a\":1,",
                           "{\"a\":1,}",
                           "{\"a\":1}x",
                           "{\"a\":1}{}",
                           "{\"a\":01}",
                           "{\"a\":1.}",
                           "{\"a\":.5}",
                           "{\"a\":-}",
                           "{\"a\":1e}",
                           "{\"a\":+1}",
                           "{\"a\":tru}",
                           "{\"a\":tr",
                           "{\"a\":nulll}",
                           "{a:1}",
                           "{\"a\" 1}",
                           "{\"a\":\"x}",
                           "{\"a\":\"\\n\"}",
                           "{\"a\":\"\t\"}",
                           "{\t\"a\":1}",
                           "{\"a\":\"\xff\"}",
                           "{\"a\":1 \"b\":2}",
                           "{\"a\":[1}",
                           "{\"a\":[1,]}",
                           "{\"a\":{]}",
                           "{,}",
                           "{\"a\":1}}",
                           "{\"a\":\"x\"y\"}",
                           "{\"a\":\"x\" \"\"}"})
    EXPECT_EQ(glance(text), std::nullopt) << text;
  EXPECT_EQ(glance("{\"a\":" + std::string(40, '[') + std::string(40, ']') + "}"), std::nullopt);
  EXPECT_EQ(glance("{\"a\":\"" + std::string(kGlanceMostBytes, 'x') + "\"}"), std::nullopt);
}

}  // namespace
}  // namespace sluice
