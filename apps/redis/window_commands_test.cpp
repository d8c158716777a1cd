// Windows by the times of their events, and windows whose MEMORY is used up.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apps/redis/commands.hpp"
#include "apps/redis/testing_random.hpp"

namespace sluice::server {
namespace {

using Words = std::vector<std::string>;
constexpr std::int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute;

std::string text(std::int64_t number) {
  return std::to_string(number);
}

std::int64_t number(const std::string& reply) {
  return std::stoll(reply.substr(1));
}

// A queue that runs an hour behind.
class LaggingQueue : public testing::Test {
 protected:
  LaggingQueue() {
    EXPECT_EQ(host({"SLUICE.INSERT", "q", "WINDOW", "10m", "AT", text(event), "ITEMS", "a", "b"}),
              "[2] :1 :1");
  }
  std::string add(const std::string& item, std::int64_t at) {
    return host({"SLUICE.ADD", "q", item, "AT", text(at)});
  }
  // The window still holds what it held: nothing has moved it.
  void expect_unmoved() {
    EXPECT_EQ(add("b", event + kSecond), ":0");
    EXPECT_EQ(host({"SLUICE.INFO", "q", "items"}), ":" + text(items));
  }

  TestHost host;
  std::int64_t event = host.now - kHour;
  int items = 2;
};

TEST_F(LaggingQueue, WhatAddsNothingMovesNothing) {
  EXPECT_EQ(host({"SLUICE.FORGET", "q", "never"}), ":0");
  expect_unmoved();
  EXPECT_EQ(host({"SLUICE.FORGET", "q", "a"}), ":1");
  items = 1;
  expect_unmoved();
  EXPECT_EQ(host({"SLUICE.CONFIRM", "q", "never", "TOKEN", "t"}), ":0");
  EXPECT_EQ(host({"SLUICE.CONFIRM", "q", "b", "TOKEN", "t"}), ":2");
  expect_unmoved();
  EXPECT_EQ(host({"SLUICE.CLAIM", "q", "c", "TTL", "100", "TOKEN", "t", "AT", text(event)}), ":1");
  host.now += 200;
  EXPECT_EQ(host({"SLUICE.CONFIRM", "q", "c", "TOKEN", "t"}), ":0");
  EXPECT_EQ(host({"SLUICE.RELEASE", "q", "c", "TOKEN", "t"}), ":0");
  expect_unmoved();
}

TEST_F(LaggingQueue, IsAskedAsOfItsEvents) {
  EXPECT_EQ(host({"SLUICE.EXISTS", "q", "a"}), ":1");
  EXPECT_EQ(host({"SLUICE.MEXISTS", "q", "a", "never"}), "[2] :1 :0");
  EXPECT_EQ(host({"SLUICE.AGE", "q", "a"}), ":0");
  // Time passes for those who ask.
  host.now += 9 * kMinute;
  EXPECT_LE(std::abs(number(host({"SLUICE.AGE", "q", "a"})) - 9 * kMinute), kSecond);
  EXPECT_EQ(host({"SLUICE.EXISTS", "q", "a"}), ":1");
  host.now += 2 * kMinute;
  EXPECT_EQ(host({"SLUICE.EXISTS", "q", "a"}), ":0");
  EXPECT_EQ(host({"SLUICE.EXISTS", "q", "a", "AT", text(event + kMinute)}), ":1");
}

TEST_F(LaggingQueue, ExpiresAsMuchLaterAsItLags) {
  host.now += kHour;
  EXPECT_EQ(add("a", event + kMinute), ":0");
  host.now += 2 * kHour + 20 * kMinute;
  EXPECT_EQ(host({"SLUICE.EXISTS", "q", "a"}), ":0");
  EXPECT_EQ(host.entry("q"), nullptr);
}

TEST_F(LaggingQueue, IsTheSameAfterAReloadAndOnAReplica) {
  TestHost replica;
  for (const auto& each : host.told) replica.follow(each);
  EXPECT_EQ(bytes_of(*replica.entry("q")), bytes_of(*host.entry("q")));
  const Entry::Pointer again = entry_of(bytes_of(*host.entry("q")), host.memory(), host.now);
  EXPECT_EQ(bytes_of(*again), bytes_of(*host.entry("q")));
  EXPECT_EQ(again->due_ms(), host.entry("q")->due_ms());
}

TEST(EventTimes, InSecondsAreRefused) {
  TestHost host;
  host({"SLUICE.RESERVE", "w", "WINDOW", "10m"});
  const std::string reply = host({"SLUICE.ADD", "w", "a", "AT", text(host.now / 1000)});
  EXPECT_NE(reply.find("seems to be in seconds: give milliseconds"), std::string::npos) << reply;
  EXPECT_EQ(host({"SLUICE.ADD", "w", "a", "AT", "1000"}), ":1");
}

TEST(EventTimes, OfTheServerCountAgainAfterItemsWithoutOne) {
  TestHost host;
  host({"SLUICE.INSERT", "w", "WINDOW", "10m", "AT", text(host.now - kHour), "ITEMS", "a"});
  EXPECT_EQ(host({"SLUICE.ADD", "w", "b"}), ":1");
  host.now += 11 * kMinute;
  EXPECT_EQ(host({"SLUICE.EXISTS", "w", "b"}), ":0");
}

// MEMORY of a time window is used up, and the oldest items make room.
TEST(UsedUpMemory, ShortensTheWindow) {
  TestHost host, replica;
  host({"SLUICE.RESERVE", "w", "WINDOW", "1h", "MEMORY", "64KiB", "EXPECT", "5000", "FPR", "1%"});
  std::int64_t at = host.now - kHour;
  int next = 0;
  for (int step = 0; step < 40; ++step, at += 5 * kMinute / 10) {
    Words words{"SLUICE.INSERT", "w", "AT", text(at), "ITEMS"};
    for (int i = 0; i < 2000; ++i) words.push_back(text(next++));
    EXPECT_EQ(host.call(words).find("OOM"), std::string::npos);
    // The newest are known.
    EXPECT_EQ(host({"SLUICE.EXISTS", "w", text(next - 1), "AT", text(at)}), ":1");
    EXPECT_LE(number(host({"SLUICE.INFO", "w", "bytes"})), 65536 + 1024);
  }
  EXPECT_GT(number(host({"SLUICE.INFO", "w", "forgotten"})), 40'000);
  for (const auto& each : host.told) EXPECT_EQ(replica.follow(each), "+OK");
  EXPECT_EQ(bytes_of(*replica.entry("w")), bytes_of(*host.entry("w")));
  const Entry::Pointer again = entry_of(bytes_of(*host.entry("w")), host.memory(), host.now);
  EXPECT_EQ(bytes_of(*again), bytes_of(*host.entry("w")));
}

TEST(UsedUpMemory, HoldsWhatIsConfirmed) {
  TestHost host, replica;
  host({"SLUICE.RESERVE", "w", "WINDOW", "1h", "MEMORY", "64KiB", "EXPECT", "5000", "FPR", "1%"});
  for (int batch = 0; batch < 40; ++batch) {
    Words claim{"SLUICE.MCLAIM", "w", "TTL", "100000", "TOKEN", "t", "ITEMS"};
    Words confirm{"SLUICE.MCONFIRM", "w", "TOKEN", "t", "ITEMS"};
    for (int i = 0; i < 1000; ++i)
      for (Words* const words : {&claim, &confirm}) words->push_back(text(1000 * batch + i));
    EXPECT_EQ(host.call(claim).find("OOM"), std::string::npos);
    host.call(confirm);
    EXPECT_EQ(host({"SLUICE.EXISTS", "w", text(1000 * batch + 999)}), ":1");
    EXPECT_EQ(host({"SLUICE.INFO", "w", "pending"}), ":0");
    host.now += kSecond;
  }
  // 1000 pending items, beside the window.
  EXPECT_LE(number(host({"SLUICE.INFO", "w", "bytes"})), 65536 + 256 * 1000);
  for (const auto& each : host.told) EXPECT_EQ(replica.follow(each), "+OK");
  EXPECT_EQ(bytes_of(*replica.entry("w")), bytes_of(*host.entry("w")));
}

// Whoever handles what is refused must not handle what is known.
TEST(UsedUpMemory, RefusesOnlyNewItems) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "WINDOW", "10m"});
  host({"SLUICE.MADD", "k", "a", "b"});
  host.settings.key_memory = 1;
  const std::uint64_t before = counters().refused;
  EXPECT_EQ(host({"SLUICE.ADD", "k", "a"}), ":0");
  EXPECT_TRUE(host({"SLUICE.ADD", "k", "c"}).starts_with("-OOM"));
  const std::string many = host({"SLUICE.MADD", "k", "a", "c", "b"});
  EXPECT_TRUE(many.starts_with("[3] :0 -OOM") && many.ends_with(":0")) << many;
  EXPECT_EQ(counters().refused, before + 2);
}

// What a plan shows is what is made.
TEST(Plans, OfNamedFiltersTellTheirErrors) {
  TestHost host;
  for (const Words& options :
       {Words{"EXPECT", "10k", "FILTER", "bloom", "bytes", "8KiB"},
        Words{"FPR", "1%", "FILTER", "stable", "bytes", "8KiB"},
        Words{"EXPECT", "10k", "FPR", "1%", "FILTER", "reservoir"}, Words{"FILTER", "growing"}}) {
    Words words{"SLUICE.PLAN"};
    words.insert(words.end(), options.begin(), options.end());
    const std::string reply = host.call(words);
    EXPECT_EQ(reply.find("'items' :0"), std::string::npos) << reply;
    EXPECT_EQ(reply.find("'parameters' ''"), std::string::npos) << reply;
    EXPECT_EQ(reply.find("'fpr' ,0 "), std::string::npos) << reply;
  }
}

TEST(Plans, OfWindowsWithoutANumberAreOfTheirFirstTable) {
  TestHost host;
  const std::string plan = host({"SLUICE.PLAN", "WINDOW", "10m"});
  EXPECT_NE(plan.find("'items' :1024"), std::string::npos) << plan;
  EXPECT_EQ(host({"SLUICE.PLAN", "WINDOW", "DAY"}), host({"SLUICE.PLAN", "WINDOW", "day"}));
  EXPECT_EQ(host({"SLUICE.PLAN", "FILTER", "BLOOM", "EXPECT", "10"}),
            host({"SLUICE.PLAN", "FILTER", "bloom", "EXPECT", "10"}));
  EXPECT_NE(host({"SLUICE.PLAN", "WINDOW", "1M"}), host({"SLUICE.PLAN", "WINDOW", "1m"}));
}

// A size that is named is that of the first stage: others are as large as the stream needs them.
TEST(NamedSizes, DoNotMakeAsManyStagesAsItems) {
  TestHost host;
  for (const char* const filter : {"timing", "timer", "cohort", "apbf", "apbbf", "exact-window"}) {
    host.keys.clear();
    host({"SLUICE.RESERVE", "k", "WINDOW", "10m", "FILTER", filter, "keys", "1"});
    for (int batch = 0; batch < 8; ++batch) {
      Words words{"SLUICE.MADD", "k"};
      for (int i = 0; i < 500; ++i) words.push_back(text(500 * batch + i));
      host.call(words);
    }
    EXPECT_LE(number(host({"SLUICE.INFO", "k", "growths"})), 130) << filter;
    EXPECT_NO_THROW(entry_of(bytes_of(*host.entry("k")), host.memory())) << filter;
  }
}

// What cannot be read back would keep the server from starting again.
TEST(Filters, ThatCanBeMadeCanBeRead) {
  TestHost host;
  host.settings.key_memory = 4 << 20;
  std::size_t made = 0;
  for (const char* const window : {"50", "1000", "20k", "10m"})
    for (const char* const filter : {"timing", "timer", "cohort", "apbf", "apbbf", "exact-window"})
      for (const Words& parameters :
           {Words{}, Words{"probes", "1"}, Words{"probes", "2"}, Words{"bytes", "1KiB"},
            Words{"bytes", "64KiB"}, Words{"bytes", "1MiB"}, Words{"keys", "1"}})
        for (const Words& options : {Words{}, Words{"FPR", "1%"}, Words{"RATE", "5k/s"}}) {
          host.keys.clear();
          Words words{"SLUICE.RESERVE", "k", "WINDOW", window};
          words.insert(words.end(), options.begin(), options.end());
          words.insert(words.end(), {"FILTER", filter});
          words.insert(words.end(), parameters.begin(), parameters.end());
          if (host.call(words) != "+OK") continue;
          ++made;
          for (int round = 0; round < 2; ++round) {
            EXPECT_NO_THROW(entry_of(bytes_of(*host.entry("k")), host.memory())) << text_of(words);
            host({"SLUICE.ADD", "k", "a"});
          }
        }
  EXPECT_GT(made, 100u);
}

// The times of a window begin with its first item.
TEST(EventTimes, OfAnEmptyWindowAreNotTheServers) {
  for (const Words& first : {Words{"SLUICE.FORGET", "f", "x"}, Words{"SLUICE.MFORGET", "f", "x"},
                             Words{"SLUICE.CONFIRM", "f", "x", "TOKEN", "t"}}) {
    TestHost host;
    host({"SLUICE.RESERVE", "f", "WINDOW", "10m"});
    host.call(first);
    EXPECT_EQ(host({"SLUICE.ADD", "f", "a", "AT", text(host.now - kHour)}), ":1");
    EXPECT_EQ(host({"SLUICE.ADD", "f", "a", "AT", text(host.now - kHour)}), ":0") << text_of(first);
  }
}

TEST(EventTimes, DoNotPassWithItemsThatArePending) {
  TestHost host;
  const std::string event = text(host.now - kHour);
  host({"SLUICE.INSERT", "k", "WINDOW", "10m", "AT", event, "ITEMS", "a"});
  host({"SLUICE.CLAIM", "k", "p", "TTL", "60000", "TOKEN", "t", "AT", event});
  EXPECT_EQ(host({"SLUICE.ADD", "k", "p"}), ":2");
  EXPECT_EQ(host({"SLUICE.AGE", "k", "a"}), ":0");
}

TEST(UsedUpMemory, IsNotUsedUpByAList) {
  for (const char* const memory : {"4KiB", "5KiB", "6KiB", "8KiB", "12KiB"})
    for (const char* const expect : {"1", "10", "50", "100"}) {
      TestHost host;
      const Words options{"WINDOW", "1m", "EXPECT", expect, "MEMORY", memory};
      Words words{"SLUICE.RESERVE", "k"};
      words.insert(words.end(), options.begin(), options.end());
      if (host.call(words) != "+OK") continue;
      Words add{"SLUICE.MADD", "k"};
      for (int i = 0; i < 1500; ++i) add.push_back(text(i));
      EXPECT_EQ(host.call(add).find("OOM"), std::string::npos) << text_of(words);
    }
}

TEST(Filters, ThatTakeLongToPlanAreRefused) {
  TestHost host;
  EXPECT_NE(host({"SLUICE.PLAN", "WINDOW", "100", "FILTER", "timer", "probes", "64", "generations",
                  "5000", "equal", "60"})
                .find("because the server would wait"),
            std::string::npos);
  EXPECT_EQ(
      host({"SLUICE.RESERVE", "t", "WINDOW", "1000", "FPR", "1%", "FILTER", "timer", "equal", "2"}),
      "+OK");
}

}  // namespace
}  // namespace sluice::server
