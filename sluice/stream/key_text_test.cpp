#include "sluice/stream/key_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/stream/key_extractor.hpp"

namespace sluice {
namespace {

std::string form_of(const Format& format, const std::vector<std::string>& keys,
                    const std::string& text) {
  const std::string padded = text + std::string(kPaddingBytes, '\0');
  const auto extractor = make_key_extractor(format, keys);
  const Record record{padded.data(), text.size(), text.size()};
  std::string_view key;
  KeyStatus status{};
  EXPECT_EQ(extractor->extract({&record, 1}, {&key, 1}, {&status, 1}), 1U);
  return std::string(key);
}

TEST(KeyText, JsonAgain) {
  const Format json{.kind = Format::Kind::json};
  for (const char* text :
       {R"({"a":1,"b":[1,"x",{"y":null}],"c":{}})", R"([true,false,[],-120,0.5,1e300])",
        R"("a \"quoted\" \\ text")", "0", "12.25", "-0.001"})
    EXPECT_EQ(key_text(json.kind, 1, form_of(json, {}, text)),
              std::string(text) == R"([true,false,[],-120,0.5,1e300])"
                  ? "[true,false,[],-120,0.5,1e300]"
                  : text);
  EXPECT_EQ(key_text(json.kind, 2, form_of(json, {"/a,/b"}, R"({"b":"x","a":10})")), "10,\"x\"");
}

TEST(KeyText, FieldsOfLines) {
  const Format lines;
  EXPECT_EQ(key_text(lines.kind, 1, form_of(lines, {"2"}, "a bc d")), "bc");
  EXPECT_EQ(key_text(lines.kind, 2, form_of(lines, {"3", "1"}, "a bc d")), "d,a");
  const std::string longer(300, 'x');
  EXPECT_EQ(key_text(lines.kind, 2, form_of(lines, {"1,2"}, longer + " y")), longer + ",y");
}

// A form may be cut anywhere.
TEST(KeyText, TheBeginningOfAForm) {
  const Format json{.kind = Format::Kind::json}, lines;
  const std::string nested = form_of(json, {}, R"({"a":[1,{"b":"some text"}],"c":-12.5})");
  for (std::size_t size = 0; size <= nested.size(); ++size)
    key_text(json.kind, 1, std::string(nested, 0, size));
  std::string line(300, 'x');
  line += " y";
  const std::string fields = form_of(lines, {"1,2"}, line);
  for (std::size_t size = 0; size <= fields.size(); ++size)
    EXPECT_LE(key_text(lines.kind, 2, std::string(fields, 0, size)).size(), size + 1);
}

}  // namespace
}  // namespace sluice
