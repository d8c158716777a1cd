#include "sluice/stream/json_glance.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "sluice/stream/record.hpp"

namespace sluice {
namespace {

using Seen = std::optional<std::vector<std::string>>;

Seen read(JsonGlance& reader, const std::string& text, const std::string& behind) {
  std::string padded = text;
  while (padded.size() < text.size() + kPaddingBytes) padded += behind;
  std::vector<std::string_view> values(2);
  if (!reader.read(std::string_view(padded).substr(0, text.size()), values)) return {};
  return std::vector<std::string>(values.begin(), values.end());
}

// The values of /a and /b, or nothing if a full parser is needed: the same for any bytes after the
// text, and after any previous record.
Seen glance(const std::string& text) {
  JsonGlance first({"a", "b"});
  const Seen seen = read(first, text, "\n");
  for (const char* behind : {"\"", "}", "]", "0", " ", ",\"a\":1}", "ue}", "\":1}"}) {
    for (const char* before :
         {R"({"a":1,"b":"x"})", R"({"a":"x","b":2} )", R"({"a":true})", "{}"}) {
      JsonGlance reader({"a", "b"});
      EXPECT_TRUE(read(reader, before, "\n"));
      EXPECT_EQ(read(reader, text, behind), seen) << text << " before " << behind;
      EXPECT_EQ(read(reader, text, behind), seen) << text << " twice before " << behind;
    }
  }
  return seen;
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

// What stood between the values before must stand there again, to the byte and to the end.
TEST(JsonGlance, FollowsTheObjectBefore) {
  JsonGlance reader({"a", "b"});
  const auto next = [&](const std::string& text) { return read(reader, text, "}"); };
  EXPECT_EQ(next(R"({"a":"x","some name in between":-1.5,"b":7})"), (Values{"\"x\"", "7"}));
  EXPECT_EQ(next(R"({"a":"","some name in between":0,"b":true})"), (Values{"\"\"", "true"}));
  EXPECT_EQ(next(R"({"a":"","some name in between":"","b":"x"})"), (Values{"\"\"", "\"x\""}));
  for (const char* broken :
       {R"({"a":"x","some name in between":1,"b":7)",
        R"({"a":"x","some name in between":1,"b":7}})",
        R"({"a":"x","some name in between":,"b":7})", R"({"a":"x","some name in between":1,"b":})",
        R"({"a":"x","some name in between":1.,"b":7})", R"({"a":"x)", R"({"a":")",
        R"({"a":"x","some name in between":1x,"b":7})",
        R"({"a":"x"y,"some name in between":1,"b":7})",
        R"({"a":"x","some name in between":01,"b":7})"}) {
    EXPECT_EQ(next(broken), std::nullopt) << broken;
    EXPECT_EQ(next(R"({"a":"y","some name in between":3,"b":9})"), (Values{"\"y\"", "9"}));
  }
  EXPECT_EQ(next(R"({"a":"y","some name in BETWEEN":3,"b":9})"), (Values{"\"y\"", "9"}));
  EXPECT_EQ(next(R"({"b":"y","some name in BETWEEN":3,"a":9})"), (Values{"9", "\"y\""}));
  EXPECT_EQ(next(R"({"b":"y","some name in BETWEEN":3,"b":9})"), (Values{"", "\"y\""}));
  EXPECT_EQ(next(R"({"b":"y","some name in BETWEEN":3,"b":[9]})"), (Values{"", "\"y\""}));
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
