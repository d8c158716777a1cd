#include "connectors/redis/reply.hpp"

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"

namespace sluice::redis {
namespace {

using Kind = Reply::Kind;

// All that a reader makes of bytes that come `at_once` at a time.
std::vector<Reply> read(std::string_view bytes, std::size_t at_once, ReplyReader& reader) {
  std::vector<Reply> replies;
  for (std::size_t at = 0; at < bytes.size(); at += at_once) {
    if (!reader.feed(bytes.substr(at, at_once))) break;
    while (Reply* reply = reader.next()) replies.push_back(std::move(*reply));
  }
  return replies;
}

TEST(RedisReply, EveryKindInPiecesOfEverySize) {
  const std::string_view bytes =
      "+OK\r\n-ERR "
      "no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*0\r\n*-1\r\n*3\r\n:1\r\n*2\r\n$0\r\n\r\n+x\r\n:2\r\n:"
      "9\r\n";
  for (const std::size_t at_once : {1u, 2u, 3u, 7u, 1000u}) {
    ReplyReader reader;
    const std::vector<Reply> replies = read(bytes, at_once, reader);
    ASSERT_EQ(replies.size(), 9u) << reader.error();
    EXPECT_TRUE(replies[0].is(Kind::status));
    EXPECT_EQ(replies[0].text, "OK");
    EXPECT_TRUE(replies[1].is(Kind::error));
    EXPECT_EQ(replies[1].text, "ERR no");
    EXPECT_EQ(replies[2].integer, -7);
    EXPECT_TRUE(replies[3].is(Kind::text));
    EXPECT_EQ(replies[3].text, "a\r\n");
    EXPECT_TRUE(replies[4].is(Kind::nil));
    EXPECT_TRUE(replies[5].is(Kind::array));
    EXPECT_TRUE(replies[6].is(Kind::nil));
    ASSERT_EQ(replies[7].elements.size(), 3u);
    ASSERT_EQ(replies[7].elements[1].elements.size(), 2u);
    EXPECT_EQ(replies[7].elements[1].elements[1].text, "x");
    EXPECT_EQ(replies[7].elements[2].integer, 2);
    EXPECT_EQ(replies[8].integer, 9);
  }
}

TEST(RedisReply, WhatIsTooLargeIsRefusedBeforeItIsAllocated) {
  const ReplyLimits limits{.bytes = 1000, .elements = 10};
  const std::string nine = "*9\r\n", text = "$300\r\n" + std::string(300, 'x') + "\r\n";
  for (const std::string& bytes : {
           std::string("*2147483647\r\n"),
           std::string("*11\r\n"),
           nine + "*2\r\n",
           "$2147483647\r\n" + std::string(2000, 'x'),
           "+" + std::string(2000, 'x'),
           "*4\r\n" + text + text + text + text,
       }) {
    ReplyReader reader(limits);
    EXPECT_TRUE(read(bytes, 100, reader).empty());
    EXPECT_NE(reader.error().find("more than"), std::string::npos) << reader.error();
    EXPECT_FALSE(reader.feed(":1\r\n"));
    EXPECT_EQ(reader.next(), nullptr);
  }
  // Each reply by itself.
  ReplyReader reader(limits);
  std::string good;
  for (int i = 0; i < 100; ++i) good += "*3\r\n" + text + text + text;
  EXPECT_EQ(read(good, 100, reader).size(), 100u);
}

TEST(RedisReply, WhatIsNoneIsRefused) {
  for (const char* bytes :
       {"HTTP/1.1 400 Bad Request\r\n", "*x\r\n", "$-2\r\n", "*-2\r\n", "\r\n", "%1\r\n"}) {
    ReplyReader reader;
    EXPECT_TRUE(read(bytes, 100, reader).empty()) << bytes;
    EXPECT_FALSE(reader.error().empty()) << bytes;
  }
  std::string deep;
  for (int i = 0; i < 50; ++i) deep += "*1\r\n";
  ReplyReader reader;
  EXPECT_TRUE(read(deep, 100, reader).empty());
  EXPECT_FALSE(reader.error().empty());
}

// Bytes that look like replies, damaged: never more than the limits, never a crash.
TEST(RedisReply, RandomBytes) {
  SplitMix64 random(3);
  const std::string_view alphabet = "*$:+-0123456789\r\n\r\n\r\na";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (std::uint64_t i = random.next() % 60; i > 0; --i)
      bytes +=
          random.next() % 4 == 0 ? "\r\n" : alphabet.substr(random.next() % alphabet.size(), 1);
    ReplyReader reader({.bytes = 100, .elements = 20});
    for (const Reply& reply : read(bytes, 1 + random.next() % 60, reader))
      EXPECT_LE(reply.elements.size(), 20u);
  }
}

}  // namespace
}  // namespace sluice::redis
