#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sluice/stream/json_tree.hpp"
#include "tests/support/key_test_util.hpp"

namespace sluice {
namespace {

std::unique_ptr<KeyExtractor> json(std::vector<std::string> keys = {}) {
  return make_key_extractor({.kind = Format::Kind::json}, keys);
}

Key whole(const std::string& text) {
  return key_of(*json(), text);
}

// What the slow path alone says.
Key exact(const std::string& text, const std::vector<JsonPointer>& pointers) {
  JsonTree tree;
  if (!tree.parse(text)) return kMalformed;
  JsonKeyWriter<JsonTree::Value> writer;
  Key key;
  key.status = writer.append_key(tree.root(), pointers, key.bytes).value();
  if (key.status != KeyStatus::keyed) key.bytes.clear();
  return key;
}

// Digests of these bytes are in snapshots: see key_form.hpp.
TEST(JsonKeys, FormsArePinned) {
  EXPECT_EQ(whole("null").bytes, "n");
  EXPECT_EQ(whole("[true,false]").bytes, "[tf]");
  EXPECT_EQ(whole("-120").bytes, "d-12e1;");
  EXPECT_EQ(whole("0.5").bytes, "d5e-1;");
  EXPECT_EQ(whole("-0").bytes, "d0;");
  EXPECT_EQ(whole("\"1\"").bytes, "s\0011");
  EXPECT_EQ(whole(" {\"b\" : [] , \"aa\":0, \"a\":{}} ").bytes, "{s\1a{}s\1b[]s\2aad0;}");
}

TEST(JsonKeys, EqualNumbersHaveOneKey) {
  const std::vector<std::vector<std::string>> classes = {
      {"1", "1.0", "1e0", "10e-1", "0.1E+1", "1000e-3", "1e-0"},
      {"0", "-0", "0.0", "-0e5", "0e99999999999999999999999"},
      {"\"1\""},
      {"-1", "-1.0"},
      {"10", "1e1", "1E+01"},
      {"9007199254740993", "9007199254740993.0", "9007199254740.993e3"},
      {"9007199254740992"},
      {"18446744073709551615", "1844674407370955161.5e1"},
      {"18446744073709551616", "18446744073709551616.0"},
      {"-9223372036854775808", "-9223372036854775808.0"},
      {"-9223372036854775809", "-9.223372036854775809e18"},
      {"123456789012345678901234567890", "12345678901234567890123456789e1"},
      {"0.1", "1e-1", "0.10"},
      {"0.10000000000000000001"},
      {"1e400", "10e399", "0.1e401"},
      {"1e999999999999999999", "0.1e1000000000000000000"},
      {"1e1000000000000000000", "10e999999999999999999"},
      {"1e-1000000000000000000", "10e-1000000000000000001", "0.1e-999999999999999999"},
      {"1e100000000000000000000000", "1000e99999999999999999999997"},
      {"1e-100000000000000000000000"}};
  std::vector<Key> keys;
  for (const auto& same : classes) {
    const Key first = whole(same[0]);
    EXPECT_EQ(first.status, KeyStatus::keyed) << same[0];
    for (const std::string& text : same) EXPECT_EQ(whole(text), first) << text;
    for (const Key& other : keys) EXPECT_NE(other, first) << same[0];
    keys.push_back(first);
  }
}

TEST(JsonKeys, OrderSpacesAndEscapesOfObjectsDoNotCount) {
  EXPECT_EQ(whole("{\"a\":1,\"b\":[1,2]}"), whole(" { \"\\u0062\" : [1.0, 2] ,\t\"a\":1e0}\r"));
  EXPECT_NE(whole("[1,2]"), whole("[2,1]"));
  EXPECT_NE(whole("{\"a\":{}}"), whole("{\"a\":[]}"));
  EXPECT_NE(whole("[\"ab\",\"c\"]"), whole("[\"a\",\"bc\"]"));
  EXPECT_EQ(whole("\"\\ud83d\\ude00\\/\\n\""), whole("\"\xF0\x9F\x98\x80/\\u000a\""));
}

TEST(JsonKeys, TheFirstOfARepeatedNameWins) {
  EXPECT_EQ(whole("{\"a\":1,\"a\":2}"), whole("{\"a\":1}"));
  EXPECT_EQ(whole("{\"a\":1,\"b\":0.5,\"a\":2}"), whole("{\"b\":0.5,\"a\":1}"));
  EXPECT_EQ(key_of(*json({"/a"}), "{\"a\":1,\"a\":2}"), whole("1"));
  EXPECT_EQ(key_of(*json({"/a"}), "{\"a\":0.5,\"a\":2}"), whole("0.5"));
}

TEST(JsonKeys, APointerMayComeTwice) {
  const auto twice = json({"/a,/b,/a"});
  const std::string text = R"({"a":"x","b":2})";
  for (const Key& key : keys_of(*twice, {text, text})) EXPECT_EQ(key.bytes, "s\1xd2;s\1x");
}

TEST(JsonKeys, PointersChoose) {
  const std::string text = R"({"user":{"id":7,"~/":null},"ad":"x","a,b":[1,[2.5,true]],"":3})";
  EXPECT_EQ(key_of(*json({"/user/id"}), text), whole("7"));
  EXPECT_EQ(key_of(*json({"/user/~0~1"}), text), whole("null"));
  EXPECT_EQ(key_of(*json({"/a,b/1/0"}), text), whole("2.5"));
  EXPECT_EQ(key_of(*json({"/a,b/1"}), text), whole("[2.5,true]"));
  EXPECT_EQ(key_of(*json({"/"}), text), whole("3"));
  EXPECT_EQ(key_of(*json({""}), text), whole(text));
  EXPECT_EQ(key_of(*json({"/user/id,/ad"}), text).bytes, "d7;s\1x");
  EXPECT_EQ(key_of(*json({"/ad", "/user/id"}), text).bytes, "s\1xd7;");
  for (const char* absent : {"/no", "/user/no", "/a,b/2", "/a,b/00", "/a,b/-", "/a,b/x", "/ad/x"})
    EXPECT_EQ(key_of(*json({absent}), text), kMissing) << absent;
  EXPECT_EQ(key_of(*json({"/a,b/1/0,/no"}), text), kMissing);
}

TEST(JsonKeys, MalformedDocumentsHaveNoKeyEvenIfThePartIsReadable) {
  const auto a = json({"/a"});
  for (const std::string text : {"",
                                 " ",
                                 "{\"a\":1",
                                 "{\"a\":1}x",
                                 "{\"a\":1}{}",
                                 "{\"a\":1,}",
                                 "{\"a\":1,\"b\":\"\\x\"}",
                                 "{\"a\":1,\"b\":\"\xff\"}",
                                 "{\"a\":1,\"b\":\"\xed\xa0\x80\"}",
                                 "{\"a\":1,\"b\":01}",
                                 "{\"a\":1,\"b\":1.}",
                                 "{\"a\":1,\"b\":\"\\ud800\"}",
                                 "{\"a\":1,\"b\":tru}",
                                 "{\"a\":1,\"b\":\"\t\"}",
                                 "{\"a\":1 \"b\":2}",
                                 "{a:1}",
                                 "{\"a\":123456789012345678901234",
                                 "{\"a\":1}\v",
                                 "nul",
                                 "\"",
                                 "-",
                                 "1e",
                                 "[1}"}) {
    EXPECT_EQ(key_of(*a, text), kMalformed) << text;
    EXPECT_EQ(exact(text, {}), kMalformed) << text;
  }
}

TEST(JsonKeys, NestingIsLimited) {
  const auto nested = [](std::size_t depth, const std::string& core) {
    return std::string(depth, '[') + core + std::string(depth, ']');
  };
  for (const char* core : {"", "1", "0.5", "{\"a\":2}"}) {
    const std::size_t own = core[0] == '{' ? 1 : 0;
    EXPECT_EQ(whole(nested(kJsonMostDepth - own, core)).status, KeyStatus::keyed) << core;
    EXPECT_EQ(whole(nested(kJsonMostDepth - own + 1, core)), kMalformed) << core;
  }
  EXPECT_EQ(whole(std::string(1000000, '[')), kMalformed);
}

TEST(JsonKeys, LongDocumentsTakeTheSlowPath) {
  const std::string text = "{\"a\":1,\"b\":\"" + std::string(std::size_t{17} << 20, 'x') + "\"}";
  EXPECT_EQ(key_of(*json({"/a"}), text), whole("1"));
}

TEST(JsonKeys, BadPointersAreExplained) {
  EXPECT_NE(bad_parameters([] { json({"user"}); }).find("did you mean '/user'?"),
            std::string::npos);
  EXPECT_NE(bad_parameters([] { json({"user.id"}); }).find("'/user/id'"), std::string::npos);
  EXPECT_NE(bad_parameters([] { json({"/a~"}); }).find("'~0'"), std::string::npos);
  bad_parameters([] { json({"/a~2"}); });
}

// Random documents, spelled in random ways.
rc::Gen<std::string> any_document(int depth);

rc::Gen<std::string> joined(const char* open, rc::Gen<std::string> part, const char* close) {
  return rc::gen::map(rc::gen::resize(4, rc::gen::container<std::vector<std::string>>(part)),
                      [=](const std::vector<std::string>& parts) {
                        std::string text = open;
                        for (const auto& one : parts) text += (text == open ? "" : ",") + one;
                        return text + close;
                      });
}

rc::Gen<std::string> any_document(int depth) {
  const auto scalar = rc::gen::element<std::string>(
      "null", "true", " false", "0", "-0", "7", "-70", "1e2", "0.5", "1.50", "1e400", "2e-400",
      "18446744073709551615", "18446744073709551616", "-9223372036854775808",
      "-9223372036854775809", "100000000000000000000000", "\"\"", "\"a\"", "\"\\u0061\"",
      "\"\\\\\\\"\"", "\"\\uD83D\\uDE00\"", "\"\xC3\xA9\"", "\"\\u0000\"", "1.0 ", "\t5");
  if (depth == 0) return scalar;
  const auto member = rc::gen::map(
      rc::gen::pair(
          rc::gen::element<std::string>("\"a\":", "\"b\":", "\"\\u0061\" :", "\"ab\": ", "\"\":"),
          any_document(depth - 1)),
      [](const auto& pair) { return pair.first + pair.second; });
  return rc::gen::weightedOneOf<std::string>({{2, scalar},
                                              {3, joined("[", any_document(depth - 1), " ]")},
                                              {4, joined("{", member, "}")}});
}

RC_GTEST_PROP(JsonKeysProperty, FastEqualsExact, ()) {
  std::string text = *any_document(4);
  const std::string sound = text;
  // Half of the documents are broken somewhere: both paths must agree on what is no JSON.
  if (!text.empty() && *rc::gen::arbitrary<bool>()) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    const char byte = *rc::gen::oneOf(
        rc::gen::element('"', '\\', ',', '}', ']', '0', '.', 'e', '\0', '\r', ' ', '\x80'),
        rc::gen::arbitrary<char>());
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        text[at] = byte;
        break;
      case 1:
        text.insert(at, 1, byte);
        break;
      default:
        text.resize(at);
    }
  }
  RC_ASSERT(whole(text) == exact(text, {JsonPointer{}}));
  RC_ASSERT(key_of(*json({"/a"}), text) == exact(text, {{{"a"}}}));
  RC_ASSERT(key_of(*json({"/a/b,/b"}), text) == exact(text, {{{"a", "b"}}, {{"b"}}}));
  RC_ASSERT(key_of(*json({"/1/a"}), text) == exact(text, {{{"1", "a"}}}));
  // Records of one batch: what was seen of one must not show in another.
  const std::string object = "{\"a\":" + sound + ",\"b\":1}";
  const std::vector<std::string> batch = {sound, text, sound, object, object, text};
  const std::vector<Key> keys = keys_of(*json({"/a,/b"}), batch);
  for (std::size_t i = 0; i < batch.size(); ++i)
    RC_ASSERT(keys[i] == exact(batch[i], {{{"a"}}, {{"b"}}}));
}

}  // namespace
}  // namespace sluice
