#include "connectors/redis/slot_map.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sluice/base/random.hpp"

namespace sluice::redis {
namespace {

const Endpoint kFrom{"10.0.0.9", 7009};

Reply reply_of(std::string_view bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  Reply* reply = reader.next();
  return reply != nullptr ? *reply : Reply{};
}

Reply number(std::int64_t value) {
  return {.kind = Reply::Kind::integer, .integer = value};
}
Reply text(std::string value) {
  return {.kind = Reply::Kind::text, .text = std::move(value)};
}
Reply list(std::vector<Reply> elements) {
  return {.kind = Reply::Kind::array, .elements = std::move(elements)};
}
Reply range(std::int64_t first, std::int64_t last, Reply host, std::int64_t port) {
  return list({number(first), number(last), list({std::move(host), number(port), text("id")})});
}

// As CLUSTER KEYSLOT of Redis 7.0 answers.
TEST(SlotMap, SlotsOfKnownKeys) {
  const std::map<std::string, unsigned> slots = {
      {"", 0},           {"foo", 12182},         {"bar", 5061},      {"123456789", 12739},
      {"{foo}x", 12182}, {"x{foo}{bar}", 12182}, {"user1000", 3443}, {"{user1000}.following", 3443},
  };
  for (const auto& [key, slot] : slots) EXPECT_EQ(slot_of(key), slot) << key;
  // No tag: empty, not closed, or closed before it is open.
  EXPECT_EQ(slot_of("foo{}{bar}"), 8363);
  EXPECT_NE(slot_of("{}foo"), slot_of("foo"));
  EXPECT_NE(slot_of("{foo"), slot_of("foo"));
  EXPECT_NE(slot_of("}foo{"), slot_of("foo"));
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
}

TEST(SlotMap, TagsAreSpreadEvenly) {
  for (const std::uint32_t parts : {1u, 3u, 12u, 100u}) {
    std::set<std::string> tags;
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::string tag = tag_of("clicks", part, parts);
      EXPECT_EQ(tag, tag_of("clicks", part, parts));
      EXPECT_EQ(std::uint64_t{slot_of("{" + tag + "}:x")} * parts / kSlots, part);
      tags.insert(tag);
    }
    EXPECT_EQ(tags.size(), parts);
  }
  EXPECT_FALSE(tag_of("clicks", 40000, 65536).empty());
}

TEST(SlotMap, ServersThatKnowNothingOfEachOtherShareTheSlots) {
  const std::vector<Endpoint> endpoints = {{"a", 1}, {"b", 2}, {"c", 3}};
  const SlotMap map = SlotMap::even(endpoints);
  std::map<Endpoint, int> slots;
  for (unsigned slot = 0; slot < kSlots; ++slot) ++slots[*map.at(static_cast<std::uint16_t>(slot))];
  for (const Endpoint& endpoint : endpoints) EXPECT_NEAR(slots[endpoint], kSlots / 3, 1);
  EXPECT_EQ(SlotMap().at(7), nullptr);
  EXPECT_TRUE(SlotMap::even({}).empty());
}

TEST(SlotMap, ReadsWhatServersSay) {
  const Reply reply = reply_of(
      "*3\r\n"
      "*4\r\n:0\r\n:5460\r\n*4\r\n$8\r\n10.0.0.1\r\n:7000\r\n$2\r\nid\r\n*0\r\n"
      "*4\r\n$8\r\n10.0.0.4\r\n:7003\r\n$2\r\nid\r\n*0\r\n"
      "*3\r\n:5461\r\n:10922\r\n*2\r\n$-1\r\n:7001\r\n"
      "*3\r\n:16000\r\n:16383\r\n*2\r\n$0\r\n\r\n:7001\r\n");
  std::string problem;
  const SlotMap map = SlotMap::read(reply, kFrom, problem);
  EXPECT_EQ(problem, "");
  EXPECT_EQ(*map.at(0), (Endpoint{"10.0.0.1", 7000}));
  EXPECT_EQ(*map.at(5460), (Endpoint{"10.0.0.1", 7000}));
  EXPECT_EQ(*map.at(5461), (Endpoint{"10.0.0.9", 7001}));
  EXPECT_EQ(*map.at(16383), (Endpoint{"10.0.0.9", 7001}));
  EXPECT_EQ(map.at(11000), nullptr);
  EXPECT_EQ(map.endpoints().size(), 2u);
  // A host that is not known yet is nobody's.
  EXPECT_EQ(
      SlotMap::read(list({range(0, 9, text("?"), 1), range(10, 19, text("a"), 1)}), kFrom, problem)
          .at(5),
      nullptr);
  EXPECT_EQ(problem, "");
}

TEST(SlotMap, RefusesWhatCannotBe) {
  const Reply good = range(0, 100, text("a"), 1);
  const std::vector<Reply> bad = {
      {},
      number(1),
      list({}),
      {.kind = Reply::Kind::error, .text = "ERR This instance has cluster support disabled"},
      list({number(1)}),
      list({list({})}),
      list({list({number(0), number(1)})}),
      list({list({number(0), number(1), number(2)})}),
      list({list({number(0), number(1), list({text("a")})})}),
      list({list({text("0"), number(1), list({text("a"), number(1)})})}),
      list({range(-1, 1, text("a"), 1)}),
      list({range(5, 4, text("a"), 1)}),
      list({range(0, 16384, text("a"), 1)}),
      list({range(0, INT64_MAX, text("a"), 1)}),
      list({range(0, 1, text("a"), 0)}),
      list({range(0, 1, text("a"), 65536)}),
      list({range(0, 1, text("a b"), 1)}),
      list({range(0, 1, text(std::string(254, 'a')), 1)}),
      list({range(0, 1, number(5), 1)}),
      list({good, range(100, 200, text("b"), 1)}),
  };
  for (const Reply& reply : bad) {
    std::string problem;
    EXPECT_TRUE(SlotMap::read(reply, kFrom, problem).empty());
    EXPECT_NE(problem.find("10.0.0.9:7009"), std::string::npos) << problem;
  }
}

TEST(SlotMap, Advice) {
  using Kind = Advice::Kind;
  const auto advice = [](std::string said) {
    return read_advice({.kind = Reply::Kind::error, .text = std::move(said)}, kFrom);
  };
  EXPECT_EQ(advice("MOVED 3999 127.0.0.1:6381").kind, Kind::moved);
  EXPECT_EQ(advice("MOVED 3999 127.0.0.1:6381").to, (Endpoint{"127.0.0.1", 6381}));
  EXPECT_EQ(advice("ASK 3999 fd00::2:6381").kind, Kind::ask);
  EXPECT_EQ(advice("ASK 3999 fd00::2:6381").to, (Endpoint{"fd00::2", 6381}));
  EXPECT_EQ(advice("MOVED 3999 :6381").to, (Endpoint{"10.0.0.9", 6381}));
  for (const char* said :
       {"TRYAGAIN Multiple keys", "CLUSTERDOWN The cluster is down", "LOADING Redis"})
    EXPECT_EQ(advice(said).kind, Kind::wait) << said;
  for (const char* said :
       {"", "ERR", "MOVED", "MOVED ", "MOVED 1", "MOVED 1 a:b", "MOVED 1 a", "ASK 1 :0",
        "ASK 1 a b:99999", "MOVEDX 1 a:1", "NOAUTH Authentication required."})
    EXPECT_EQ(advice(said).kind, Kind::none) << said;
}

// A good reply with one part replaced: a map or a problem, never both, never a crash.
TEST(SlotMap, RandomReplies) {
  SplitMix64 random(5);
  const Reply good = list({range(0, 99, text("a"), 1), range(100, 199, text("b"), 2)});
  const std::vector<Reply> parts = {
      {},
      number(-1),
      number(0),
      number(7),
      number(150),
      number(1 << 20),
      text(""),
      text("c"),
      text(std::string("\0 x", 3)),
      list({}),
      list({text("c"), number(3)}),
      good,
  };
  int maps = 0, problems = 0;
  for (int round = 0; round < 5000; ++round) {
    Reply reply = good;
    Reply* at = &reply;
    while (!at->elements.empty() && random.next() % 8 != 0)
      at = &at->elements[random.next() % at->elements.size()];
    *at = parts[random.next() % parts.size()];
    std::string problem;
    const bool empty = SlotMap::read(reply, kFrom, problem).empty();
    ASSERT_EQ(empty, !problem.empty());
    ++(empty ? problems : maps);
  }
  EXPECT_GT(maps, 500);
  EXPECT_GT(problems, 500);
}

}  // namespace
}  // namespace sluice::redis
