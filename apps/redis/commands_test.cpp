#include "apps/redis/commands.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "apps/redis/effects.hpp"
#include "apps/redis/testing_random.hpp"
#include "sluice/seen.hpp"
#include "tests/support/counts.hpp"

namespace sluice::server {
namespace {

using Words = std::vector<std::string>;

// One sentence in the words of the command: no field of the library, no flag of the command line.
void expect_sentence(const std::string& reply, const Words& words) {
  if (!reply.starts_with("-")) return;
  EXPECT_TRUE(reply.starts_with("-ERR ") || reply.starts_with("-OOM ") ||
              reply.starts_with("-WRONGTYPE "))
      << reply;
  for (const char* const foreign : {"`", " --", "\n", "\r"})
    EXPECT_EQ(reply.find(foreign), std::string::npos) << text_of(words) << " -> " << reply;
  EXPECT_LT(reply.size(), 1'000u) << text_of(words);
}

TEST(Commands, Answers) {
  TestHost host;
  EXPECT_EQ(host({"SLUICE.RESERVE", "k", "WINDOW", "10m"}), "+OK");
  EXPECT_EQ(host({"sluice.add", "k", "a"}), ":1");
  EXPECT_EQ(host({"SLUICE.ADD", "k", "a"}), ":0");
  EXPECT_EQ(host({"SLUICE.MADD", "k", "a", "b", "b"}), "[3] :0 :1 :0");
  EXPECT_EQ(host({"SLUICE.EXISTS", "k", "b"}), ":1");
  EXPECT_EQ(host({"SLUICE.MEXISTS", "k", "b", "c"}), "[2] :1 :0");
  EXPECT_EQ(host({"SLUICE.EXISTS", "missing", "b"}), ":0");
  EXPECT_EQ(host({"SLUICE.FORGET", "k", "b"}), ":1");
  EXPECT_EQ(host({"SLUICE.MFORGET", "k", "b", "a"}), "[2] :0 :1");
  EXPECT_EQ(host({"SLUICE.CLAIM", "k", "x", "TTL", "100", "TOKEN", "t"}), ":1");
  EXPECT_EQ(host({"SLUICE.CLAIM", "k", "x", "TOKEN", "u", "TTL", "100"}), ":2");
  EXPECT_EQ(host({"SLUICE.ADD", "k", "x"}), ":2");
  EXPECT_EQ(host({"SLUICE.EXISTS", "k", "x"}), ":2");
  EXPECT_EQ(host({"SLUICE.CONFIRM", "k", "x", "TOKEN", "u"}), ":0");
  EXPECT_EQ(host({"SLUICE.CONFIRM", "k", "x", "TOKEN", "t"}), ":1");
  EXPECT_EQ(host({"SLUICE.CONFIRM", "k", "x", "TOKEN", "t"}), ":2");
  EXPECT_EQ(host({"SLUICE.MCLAIM", "k", "TTL", "100", "TOKEN", "t", "ITEMS", "x", "y"}),
            "[2] :0 :1");
  EXPECT_EQ(host({"SLUICE.RELEASE", "k", "y", "TOKEN", "u"}), ":0");
  EXPECT_EQ(host({"SLUICE.MRELEASE", "k", "TOKEN", "t", "ITEMS", "y", "y"}), "[2] :1 :0");
  EXPECT_EQ(host({"SLUICE.INFO", "k", "items"}), ":1");
  EXPECT_EQ(host({"SLUICE.INFO", "k", "window"}), "'the last 10 minutes'");
  EXPECT_EQ(host({"SLUICE.INSERT", "new", "FPR", "0.01", "ITEMS", "a", "a"}), "[2] :1 :0");
  EXPECT_EQ(host({"SLUICE.MERGE", "copy", "new"}), "+OK");
  EXPECT_EQ(host({"SLUICE.EXISTS", "copy", "a"}), ":1");
  EXPECT_TRUE(host({"SLUICE.PLAN", "EXPECT", "1M"}).starts_with("{11} 'filter'"));
}

TEST(Commands, SeedsAreKeptOutOfLogs) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "FPR", "0.1", "SEED", "17"});
  host({"SLUICE.INSERT", "j", "SEED", "18", "ITEMS", "19"});
  EXPECT_EQ(host.redacted, (Words{"17", "18"}));
}

TEST(Commands, Errors) {
  TestHost host;
  host.keys["other"] = {};
  host({"SLUICE.RESERVE", "k"});
  host({"SLUICE.RESERVE", "w", "WINDOW", "10s"});
  host({"SLUICE.RESERVE", "bloom", "FILTER", "bloom", "EXPECT", "100"});
  const std::vector<std::pair<Words, std::string>> cases{
      {{"SLUICE.ADD", "k"}, "wrong number of arguments"},
      {{"SLUICE.ADD", "missing", "a"}, "SLUICE.INSERT"},
      {{"SLUICE.CLAIM", "missing", "a", "TTL", "1", "TOKEN", "t"}, "SLUICE.RESERVE"},
      {{"SLUICE.ADD", "other", "a"}, "WRONGTYPE"},
      {{"SLUICE.EXISTS", "other", "a"}, "WRONGTYPE"},
      {{"SLUICE.INFO", "other"}, "WRONGTYPE"},
      {{"SLUICE.INFO", "missing"}, "there is no such key"},
      {{"SLUICE.INFO", "k", "colour"}, "there is no field 'colour'"},
      {{"SLUICE.ADD", "k", "a", "b"}, "'b' is not expected here: SLUICE.MADD takes several items"},
      {{"SLUICE.EXISTS", "k", "a", "b"}, "SLUICE.MEXISTS takes several items"},
      {{"SLUICE.ADD", "k", "a", "AT"}, "the value of AT is missing"},
      {{"SLUICE.ADD", "k", "a", "AT", "1"}, "AT is for a WINDOW of time"},
      {{"SLUICE.ADD", "w", "a", "AT", "soon"}, "AT, in ms since 1970, must be a whole number"},
      {{"SLUICE.ADD", "w", "a", "AT", "1700000010000"}, "a window or more ahead"},
      {{"SLUICE.RESERVE", "k"}, "exists already"},
      {{"sluice.reserve", "new", "SIZE", "5"},
       "'SIZE' is no option of SLUICE.RESERVE: its options are WINDOW, FPR, EXPECT, RATE, MEMORY, "
       "SLACK, FILTER, REFRESH, SEED, AUDIT"},
      {{"SLUICE.INSERT", "new", "WINDW", "5", "ITEMS", "a"}, "AUDIT, NOCREATE, AT, and ITEMS"},
      {{"SLUICE.RESERVE", "new", "WINDOW", "1m", "RATE", "5k/min"}, "5k/m"},
      {{"SLUICE.RESERVE", "new", "SLACK", "0.1"}, "SLACK says how long past a WINDOW an item"},
      {{"SLUICE.RESERVE", "new", "FPR"}, "the value of FPR is missing"},
      {{"SLUICE.RESERVE", "new", "FPR", "0.1", "FPR", "0.1"}, "FPR is given twice"},
      {{"SLUICE.RESERVE", "new", "WINDOW", "1m", "WINDOW", "1m"}, "WINDOW is given twice"},
      {{"SLUICE.RESERVE", "new", "WINDOW", "FOREVER", "WINDOW", "1m"}, "WINDOW is given twice"},
      {{"SLUICE.RESERVE", "new", "REFRESH"}, "REFRESH needs a WINDOW"},
      {{"SLUICE.RESERVE", "new", "FILTER", "sieve"}, "sieve"},
      {{"SLUICE.RESERVE", "new", "AUDIT", "2/3"}, "such as 1/1024"},
      {{"SLUICE.RESERVE", "new", "WINDOW", "1m", "MEMORY", "1MB"}, "needs EXPECT"},
      {{"SLUICE.RESERVE", "new", "FILTER", "bloom", "MEMORY", "1MB"}, "MEMORY goes to the planner"},
      {{"SLUICE.INSERT", "new", "FPR", "0.1"}, "ITEMS is missing"},
      {{"SLUICE.INSERT", "new", "FPR", "0.1", "ITEMS"}, "at least one item"},
      {{"SLUICE.INSERT", "new", "NOCREATE", "ITEMS", "a"},
       "there is no such key: leave NOCREATE out"},
      {{"SLUICE.CONFIRM", "missing", "a", "TOKEN", "t"}, "so claim the item again"},
      {{"SLUICE.RELEASE", "missing", "a", "TOKEN", "t"}, "so claim the item again"},
      {{"SLUICE.INSERT", "new", "AT", "1", "ITEMS", "a"}, "AT is for a WINDOW of time"},
      {{"SLUICE.INSERT", "w", "AT", "1", "AT", "2", "ITEMS", "a"}, "AT is given twice"},
      {{"SLUICE.FORGET", "bloom", "a"}, "cannot take items back"},
      {{"SLUICE.CLAIM", "k", "a", "TTL", "0", "TOKEN", "t"},
       "TTL, in ms, must be a whole number from 1"},
      {{"SLUICE.CLAIM", "k", "a", "TTL", "1", "TTL", "1", "TOKEN", "t"}, "TTL is given twice"},
      {{"SLUICE.CLAIM", "k", "a", "TTL", "1", "AT", "1", "AT", "1"}, "AT is given twice"},
      {{"SLUICE.CLAIM", "k", "a", "TOKEN", "t", "TOKEN", "t"}, "TOKEN is given twice"},
      {{"SLUICE.MCLAIM", "k", "TTL", "1", "TOKEN", "t", "ITEMS"}, "ITEMS is missing"},
      {{"SLUICE.MCLAIM", "k", "TTL", "1", "TOKEN", "t", "AT", "1"}, "ITEMS is missing"},
      {{"SLUICE.CONFIRM", "k", "a", "TTL", "1"},
       "'TTL' is no option of SLUICE.CONFIRM: its options are TOKEN, AT"},
      {{"SLUICE.MCLAIM", "k", "ITEMS", "a", "b", "TTL", "100", "TOKEN", "t"},
       "options come before ITEMS"},
      {{"SLUICE.RELEASE", "k", "a", "TOKEN"}, "the value of TOKEN is missing"},
      {{"SLUICE.MERGE", "k", "missing"}, "the source 'missing' does not exist"},
      {{"SLUICE.MERGE", "k", "bloom"}, ""},
      {{"SLUICE.MERGE", "w", "w2"}, "does not exist"},
      {{"SLUICE.EFFECT", "k", "x"}, "not for clients"},
  };
  for (const auto& [words, expected] : cases) {
    const std::string reply = host.call(words);
    EXPECT_TRUE(reply.starts_with("-")) << text_of(words) << " -> " << reply;
    EXPECT_NE(reply.find(expected), std::string::npos) << text_of(words) << " -> " << reply;
    expect_sentence(reply, words);
  }
  EXPECT_EQ(host.entry("new"), nullptr);
}

Words values() {
  Words all{"0",          "1",
            "-1",         "2147483647",
            "2147483648", "2147483649",
            "4294967295", "4294967296",
            "4294967297", "9223372036854775807",
            "NaN",        "inf",
            "1e-300",     "9223372036854775808",
            "",           "-inf",
            "1e300",      "0.5",
            "1/0",        "1/4294967296"};
  all.push_back(std::string(1 << 20, '9'));
  all.push_back(std::string("\0\xff\r\n", 4));
  return all;
}

// An error or success, and the server goes on.
TEST(Commands, EveryValueOfEveryOption) {
  TestHost host;
  host.room_left = 8 << 20;
  host.settings.key_memory = 8 << 20;
  std::vector<Words> options;
  for (const char* const option :
       {"WINDOW", "FPR", "EXPECT", "RATE", "MEMORY", "SLACK", "SEED", "AUDIT", "FILTER"})
    for (const Words& beside : std::vector<Words>{
             {}, {"WINDOW", "10s"}, {"WINDOW", "1000"}, {"WINDOW", "1m", "EXPECT", "1000"}}) {
      if (!beside.empty() && std::string_view(option) == "WINDOW") continue;
      Words words = beside;
      words.insert(words.end(), {option, "?"});
      options.push_back(words);
    }
  for (const FilterInfo& filter : catalogue())
    for (const ParameterInfo& parameter : filter.parameters)
      for (const Words& beside : std::vector<Words>{{}, {"WINDOW", "1m"}}) {
        Words words = beside;
        words.insert(words.end(),
                     {"FILTER", std::string(filter.name), std::string(parameter.name), "?"});
        options.push_back(words);
      }
  for (const Words& option : options)
    for (const std::string& value : values())
      for (const Words& command : std::vector<Words>{{"SLUICE.PLAN"}, {"SLUICE.RESERVE", "k"}}) {
        Words words = command;
        words.insert(words.end(), option.begin(), option.end());
        words.back() = value;
        const std::string reply = host.call(words);
        ASSERT_FALSE(reply.starts_with("not one reply")) << text_of(words) << reply;
        expect_sentence(reply, words);
        host.keys.clear();
        host.told.clear();
        ASSERT_LT(host.memory().taken(), 1u);
      }
  host({"SLUICE.RESERVE", "w", "WINDOW", "10s"});
  for (const std::string& value : values())
    for (Words words : std::vector<Words>{{"SLUICE.ADD", "w", "a", "AT", "?"},
                                          {"SLUICE.EXISTS", "w", "a", "AT", "?"},
                                          {"SLUICE.CLAIM", "w", "a", "TOKEN", "t", "TTL", "?"},
                                          {"SLUICE.CLAIM", "w", "a", "TTL", "9", "TOKEN", "?"},
                                          {"SLUICE.CONFIRM", "w", "a", "TOKEN", "t", "AT", "?"},
                                          {"SLUICE.ADD", "w", "?"},
                                          {"SLUICE.INFO", "w", "?"},
                                          {"SLUICE.INSERT", "w", "AT", "1", "ITEMS", "?"}}) {
      std::ranges::replace(words, "?", value);
      const std::string reply = host.call(words);
      ASSERT_FALSE(reply.starts_with("not one reply")) << text_of(words) << reply;
      expect_sentence(reply, words);
    }
}

TEST(Commands, ReserveBeyondMaxmemoryTakesNothing) {
  TestHost host;
  host.room_left = 1 << 20;
  FailingMalloc::calls = 0;
  EXPECT_TRUE(host({"SLUICE.RESERVE", "k", "EXPECT", "1G"}).starts_with("-OOM this takes "));
  EXPECT_EQ(FailingMalloc::calls, 0u);
}

// A nearest request is named once.
TEST(Commands, WhatCannotBeHadIsSaidOnce) {
  TestHost host;
  const std::string reply =
      host({"SLUICE.RESERVE", "k", "WINDOW", "1M", "MEMORY", "1MiB", "FPR", "1e-9"});
  ASSERT_TRUE(reply.starts_with("-ERR no filter can do ")) << reply;
  EXPECT_NE(reply.find("the nearest requests that can be met"), std::string::npos) << reply;
  EXPECT_EQ(reply.find("would do"), std::string::npos) << reply;
}

TEST(Commands, ALimitOfAKeyHoldsWithinABatch) {
  TestHost host, replica;
  host.settings.key_memory = 64 << 10;
  replica.settings.key_memory = 1;
  host({"SLUICE.RESERVE", "grows"});
  host({"SLUICE.RESERVE", "window", "WINDOW", "10m"});
  for (const char* const key : {"grows", "window"}) {
    Words words{"SLUICE.MADD", key};
    for (int i = 0; i < 100'000; ++i) words.push_back(std::to_string(i));
    const std::string reply = host.call(words);
    EXPECT_TRUE(reply.starts_with("[100000] :1 :1 ")) << reply.substr(0, 100);
    EXPECT_TRUE(reply.ends_with("(sluice.key-memory-limit)")) << reply.substr(reply.size() - 200);
    EXPECT_GT(host.entry(key)->bytes(), 64u << 10);
    EXPECT_LT(host.entry(key)->bytes(), 200u << 10);
    // What was judged is remembered, and the others are not.
    EXPECT_EQ(host({"SLUICE.MEXISTS", key, "0", "511", "99999"}), "[3] :1 :1 :0");
    EXPECT_TRUE(
        host({"SLUICE.CLAIM", key, "x", "TTL", "9", "TOKEN", "t"}).starts_with("-OOM this key"));
  }
  for (const TestHost::Told& told : host.told) ASSERT_EQ(replica.follow(told), "+OK");
  for (const char* const key : {"grows", "window"})
    EXPECT_EQ(bytes_of(*replica.entry(key)), bytes_of(*host.entry(key)));
}

// What grows counts as it starts; what was told a number counts as that.
TEST(Commands, ALimitOfAKeyIsForWhatMakingTakes) {
  TestHost host;
  host.settings.key_memory = 200'000;
  const auto makes = [&](Words making) {
    making.insert(making.begin(), {"SLUICE.RESERVE", "k"});
    const std::string reply = host.call(making);
    if (host.entry("k") != nullptr) {
      EXPECT_LE(host.entry("k")->bytes(), 200'000u) << text_of(making);
    }
    host.keys.clear();
    return reply;
  };
  EXPECT_EQ(makes({}), "+OK");
  EXPECT_EQ(makes({"FILTER", "growing"}), "+OK");
  EXPECT_EQ(makes({"FILTER", "exact"}), "+OK");
  EXPECT_EQ(makes({"FILTER", "dynamic", "keys", "100"}), "+OK");
  EXPECT_EQ(makes({"FILTER", "bloom", "keys", "1000"}), "+OK");
  for (const Words& large : std::vector<Words>{{"FILTER", "exact", "keys", "1M"},
                                               {"FILTER", "exact", "EXPECT", "1M"},
                                               {"FILTER", "growing", "EXPECT", "1M"},
                                               {"FILTER", "dynamic", "keys", "1M"},
                                               {"FILTER", "dynamic", "EXPECT", "1M"},
                                               {"FILTER", "dynamic", "bytes", "1MiB"},
                                               {"FILTER", "bloom"},
                                               {"EXPECT", "1M"},
                                               {"WINDOW", "10m", "RATE", "5k/s"}})
    EXPECT_TRUE(makes(large).starts_with("-OOM this takes ")) << text_of(large);
}

// --- Windows

TEST(WindowCommands, NoRepeatInsideAndExpiredItemsAreFree) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "WINDOW", "10s", "EXPECT", "2000", "SLACK", "0.1"});
  host.keys["k"].expiry.reset();  // PERSIST: it is idle at times
  std::mt19937_64 random(5);
  std::map<std::string, std::int64_t> delivered;
  int repeats = 0, freed = 0;
  const int rounds = testing_support::count_of(3'000, 20'000, 200'000);
  for (int i = 0; i < rounds; ++i) {
    host.now += static_cast<std::int64_t>(random() % 20 == 0 ? random() % 3'000 : random() % 5);
    if (random() % 1'000 == 0) host.now += 40'000;
    const std::string item = std::to_string(random() % 3'000);
    const bool asks = random() % 4 == 0;
    const std::string bytes = asks && i % 16 == 0 ? bytes_of(*host.entry("k")) : "";
    const std::string reply = host({asks ? "SLUICE.EXISTS" : "SLUICE.ADD", "k", item});
    if (!bytes.empty()) {
      ASSERT_EQ(bytes_of(*host.entry("k")), bytes);
    }
    const bool known = reply == (asks ? ":1" : ":0");
    const auto found = delivered.find(item);
    const std::int64_t age = found == delivered.end() ? 1 << 30 : host.now - found->second;
    if (age < 10'000) {
      ASSERT_TRUE(known) << item << " after " << age << " ms";
    }
    if (age >= 11'001) {
      ASSERT_FALSE(known) << item << " after " << age << " ms";
    }
    repeats += age < 10'000;
    freed += age >= 11'001 && found != delivered.end();
    if (!asks && !known) delivered[item] = host.now;
  }
  EXPECT_GT(repeats, rounds / 40);
  EXPECT_GT(freed, 100);
}

TEST(WindowCommands, ExpireAWindowAfterTheLastWrite) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "WINDOW", "10s"});
  for (int i = 0; i < 50; ++i) {
    host.now += 777;
    host({"SLUICE.ADD", "k", std::to_string(i)});
    ASSERT_GE(host.keys["k"].expiry.value_or(0), host.now + 10'000);
    ASSERT_LE(host.keys["k"].expiry.value_or(0), host.now + 13'000);
  }
  // An event that is ahead is remembered for a window after its own time.
  host({"SLUICE.ADD", "k", "ahead", "AT", std::to_string(host.now + 9'000)});
  EXPECT_GE(host.keys["k"].expiry.value_or(0), host.now + 19'000);
  host.now += 60'000;
  EXPECT_TRUE(host({"SLUICE.ADD", "k", "a"}).starts_with("-ERR there is no such key"));
  // What has expired remembers nothing: there is nothing to take back, and no age.
  EXPECT_EQ(host({"SLUICE.FORGET", "k", "a"}), ":0");
  EXPECT_EQ(host({"SLUICE.MFORGET", "k", "a", "b"}), "[2] :0 :0");
  EXPECT_EQ(host({"SLUICE.AGE", "k", "a"}), "_");
  EXPECT_EQ(host({"SLUICE.EXISTS", "k", "a"}), ":0");
  EXPECT_FALSE(host.entry("k"));
}

// What says how large a key is made is ignored if it exists, also where it could not be made like that.
TEST(WindowCommands, InsertIgnoresTheMemoryOfAKeyThatExists) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "WINDOW", "10m"});
  EXPECT_EQ(host({"SLUICE.INSERT", "k", "MEMORY", "64KiB", "ITEMS", "a"}), "[1] :1");
  EXPECT_TRUE(host({"SLUICE.RESERVE", "new", "MEMORY", "64KiB"}).starts_with("-ERR MEMORY"));
}

TEST(WindowCommands, APersonsExpiryCounts) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "WINDOW", "10s"});
  host.keys["k"].expiry.reset();
  host({"SLUICE.ADD", "k", "a"});
  EXPECT_FALSE(host.keys["k"].expiry);
  host.keys["k"].expiry = host.now + 77'777;
  host({"SLUICE.CLAIM", "k", "b", "TTL", "100000", "TOKEN", "t"});
  EXPECT_EQ(host.keys["k"].expiry, host.now + 77'777);
}

// As RESTORE and MIGRATE do: the journey moves the expiry.
TEST(WindowCommands, AnExpiryThatMovedOnAJourneyIsStillTheModules) {
  for (const int shift : {-7, 0, 31, 5'000}) {
    TestHost host;
    host({"SLUICE.RESERVE", "k", "WINDOW", "10s"});
    TestHost::Slot& key = host.keys["k"];
    key.entry = entry_of(bytes_of(*key.entry), host.memory());
    key.expiry = *key.expiry + shift;
    restored(*key.entry, key.expiry);
    for (int i = 0; i < 30; ++i) {
      host.now += 1'000;
      ASSERT_EQ(host({"SLUICE.ADD", "k", "a"}), i % 10 == 0 ? ":1" : ":0") << i;
      ASSERT_GE(host.keys["k"].expiry.value_or(0), host.now + 10'000);
    }
  }
}

TEST(WindowCommands, AnExpiryOfAPersonStaysOneOnAJourney) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "WINDOW", "10s"});
  TestHost::Slot& key = host.keys["k"];
  // RESTORE key 0: no expiry, as after PERSIST.
  key.expiry.reset();
  restored(*key.entry, key.expiry);
  host({"SLUICE.ADD", "k", "a"});
  EXPECT_FALSE(key.expiry);
  // Somebody's EXPIRE, then a write, then MIGRATE.
  key.expiry = host.now + 77'777;
  host({"SLUICE.ADD", "k", "b"});
  key.expiry = *key.expiry + 3;
  restored(*key.entry, key.expiry);
  host.now += 5'000;
  host({"SLUICE.ADD", "k", "c"});
  EXPECT_EQ(key.expiry, host.now - 5'000 + 77'780);
}

// RESTORE takes an expiry in any year: what it leads to must be readable again.
TEST(WindowCommands, AnExpiryInAFarYearIsAPersons) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "WINDOW", "10s"});
  host.keys["k"].expiry = std::numeric_limits<std::int64_t>::max();
  restored(*host.entry("k"), host.keys["k"].expiry);
  host({"SLUICE.ADD", "k", "a"});
  EXPECT_EQ(host.keys["k"].expiry, std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE(entry_of(bytes_of(*host.entry("k")), host.memory()));
}

TEST(WindowCommands, AKeyOutlivesTheLeasesOfItsClaims) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "WINDOW", "1s"});
  host({"SLUICE.CLAIM", "k", "a", "TTL", "60000", "TOKEN", "t"});
  const std::int64_t until = host.now + 60'000;
  EXPECT_GE(host.keys["k"].expiry.value_or(0), until);
  // Nor does a shorter one, a write or a failed command bring it forward.
  host.now += 100;
  host({"SLUICE.CLAIM", "k", "b", "TTL", "10", "TOKEN", "u"});
  host({"SLUICE.ADD", "k", "c"});
  host({"SLUICE.ADD", "k", "c", "d"});
  EXPECT_GE(host.keys["k"].expiry.value_or(0), until);
  host.now += 50'000;
  EXPECT_EQ(host({"SLUICE.CONFIRM", "k", "a", "TOKEN", "t"}), ":1");
}

TEST(WindowCommands, AMergedCopyExpires) {
  TestHost host;
  host({"SLUICE.INSERT", "k", "WINDOW", "10s", "ITEMS", "a"});
  EXPECT_EQ(host({"SLUICE.MERGE", "copy", "k"}), "+OK");
  EXPECT_GE(host.keys["copy"].expiry.value_or(0), host.now + 10'000);
}

// The server's clock never counts as set back by events that came before.
TEST(WindowCommands, EventsAheadExpireNothing) {
  TestHost host;
  host({"SLUICE.INSERT", "k", "WINDOW", "10s", "ITEMS", "a"});
  for (int ahead = 9'990; ahead <= 10'010; ++ahead) {
    host({"SLUICE.ADD", "k", "x", "AT", std::to_string(host.now + ahead)});
    EXPECT_EQ(host({"SLUICE.ADD", "k", "x"}), ":0") << ahead;
  }
}

// --- As sluice::Seen

TEST(Commands, JudgeAsSeenDoes) {
  std::mt19937_64 random(6);
  for (const bool windowed : {false, true}) {
    TestHost host;
    Seen::Options options{.keys = 3'000, .fpr = 0.01, .untrusted_keys = true, .seed = 7};
    options.resource = &host.memory();
    if (windowed) options.window = std::chrono::seconds(10);
    Seen seen(options);
    Words reserve{"SLUICE.RESERVE", "k", "EXPECT", "3000", "FPR", "0.01", "SEED", "7"};
    if (windowed) reserve.insert(reserve.end(), {"WINDOW", "10s"});
    ASSERT_EQ(host.call(reserve), "+OK");
    for (int i = 0; i < testing_support::count_of(1'000, 8'000, 100'000); ++i) {
      host.now += static_cast<std::int64_t>(random() % 5);
      const std::string item = std::to_string(random() % 4'000);
      const auto at = host.now - static_cast<std::int64_t>(random() % 100);
      const bool first =
          windowed ? seen.first(item, Seen::Time(std::chrono::milliseconds(at))) : seen.first(item);
      const std::string reply = windowed ? host({"SLUICE.ADD", "k", item, "AT", std::to_string(at)})
                                         : host({"SLUICE.ADD", "k", item});
      ASSERT_EQ(reply, first ? ":1" : ":0") << i;
    }
  }
}

// --- Claims against a plain reference

TEST(ClaimCommands, AgainstAReference) {
  struct Known {
    bool delivered = false;
    std::string token;
    std::int64_t until = 0;
  };
  std::mt19937_64 random(7);
  TestHost host;
  host({"SLUICE.RESERVE", "k", "FPR", "1e-9"});
  std::map<std::string, Known> all;
  for (int i = 0; i < testing_support::count_of(2'000, 20'000, 200'000); ++i) {
    host.now += static_cast<std::int64_t>(random() % 4);
    const std::string item = std::to_string(i / 40 + static_cast<int>(random() % 20));
    const std::string token = "t" + std::to_string(random() % 3);
    Known& known = all[item];
    const bool pending = !known.delivered && known.until > host.now;
    const bool own = pending && known.token == token;
    int expected = 0;
    std::string reply;
    switch (random() % 5) {
      case 0: {
        const auto lease = static_cast<std::int64_t>(1 + random() % 100);
        reply = host({"SLUICE.CLAIM", "k", item, "TTL", std::to_string(lease), "TOKEN", token});
        expected = known.delivered ? 0 : pending && !own ? 2 : 1;
        if (expected == 1)
          known = {false, token, std::max(own ? known.until : 0, host.now + lease)};
        break;
      }
      case 1:
        reply = host({"SLUICE.CONFIRM", "k", item, "TOKEN", token});
        expected = known.delivered ? 2 : own ? 1 : 0;
        if (own) known.delivered = true;
        break;
      case 2:
        reply = host({"SLUICE.RELEASE", "k", item, "TOKEN", token});
        expected = own ? 1 : 0;
        if (own) known.until = 0;
        break;
      case 3:
        reply = host({"SLUICE.EXISTS", "k", item});
        expected = known.delivered ? 1 : pending ? 2 : 0;
        break;
      default:
        reply = host({"SLUICE.ADD", "k", item});
        expected = known.delivered ? 0 : pending ? 2 : 1;
        if (expected == 1) known = {true, "", 0};
    }
    ASSERT_EQ(reply, ":" + std::to_string(expected)) << i << " " << item;
  }
}

TEST(ClaimCommands, AddingWhatIsPendingChangesNothing) {
  TestHost host;
  host({"SLUICE.RESERVE", "w", "WINDOW", "10m"});
  host({"SLUICE.RESERVE", "f"});
  Words many{"SLUICE.MADD", ""};
  for (int i = 0; i < 1000; ++i) many.push_back(std::to_string(i));
  for (const char* const key : {"w", "f"}) {
    Words claim{"SLUICE.MCLAIM", key, "TTL", "60000", "TOKEN", "t", "ITEMS"};
    claim.insert(claim.end(), many.begin() + 2, many.end());
    host.call(claim);
    const std::string before = bytes_of(*host.entry(key));
    const auto expiry = host.keys[key].expiry;
    const std::size_t told = host.told.size();
    host.now += 5'000;
    EXPECT_EQ(host({"SLUICE.ADD", key, "7"}), ":2");
    EXPECT_EQ(host({"SLUICE.INSERT", key, "ITEMS", "7", "8"}), "[2] :2 :2");
    many[1] = key;
    EXPECT_EQ(host.call(many).find(":1"), std::string::npos);
    EXPECT_EQ(bytes_of(*host.entry(key)), before);
    EXPECT_EQ(host.keys[key].expiry, expiry);
    EXPECT_EQ(host.told.size(), told);
    // Beside one that is not, they are judged as before.
    EXPECT_EQ(host({"SLUICE.MADD", key, "7", "new"}), "[2] :2 :1");
    EXPECT_GT(host.told.size(), told);
  }
}

TEST(ClaimCommands, ALimitRefusesOnlyNewItems) {
  TestHost host;
  host.settings.claims = 2;
  host({"SLUICE.INSERT", "k", "ITEMS", "known"});
  const Words claim{"SLUICE.MCLAIM", "k", "TTL", "100", "TOKEN", "t", "ITEMS"};
  const auto claims = [&](std::initializer_list<std::string> items) {
    Words words = claim;
    words.insert(words.end(), items);
    return host.call(words);
  };
  const std::string why =
      "-ERR 2 items of this key are pending, and no more may be (sluice.claims-limit): confirm or "
      "release some, or wait until their leases end";
  EXPECT_EQ(claims({"a", "b", "c"}), "[3] :1 :1 " + why);
  EXPECT_EQ(claims({"c", "d"}), "[2] " + why + " " + why);
  EXPECT_EQ(host({"SLUICE.CLAIM", "k", "c", "TTL", "100", "TOKEN", "t"}), why);
  EXPECT_EQ(claims({"a", "known"}), "[2] :1 :0");
  host.now += 100;
  EXPECT_EQ(claims({"c"}), "[1] :1");
}

// As ADD: nobody knows whether it is a repeat, so it is let through, and not remembered (docs/redis.md).
TEST(ClaimCommands, ALateEventIsDeliveredAndNotRemembered) {
  TestHost host;
  host({"SLUICE.INSERT", "k", "WINDOW", "10s", "ITEMS", "x"});
  const std::string late = std::to_string(host.now - 10'000);
  EXPECT_EQ(host({"SLUICE.CLAIM", "k", "a", "TTL", "100", "TOKEN", "t", "AT", late}), ":1");
  EXPECT_EQ(host({"SLUICE.CONFIRM", "k", "a", "TOKEN", "t", "AT", late}), ":1");
  EXPECT_EQ(host({"SLUICE.EXISTS", "k", "a"}), ":0");
  EXPECT_EQ(host({"SLUICE.INFO", "k", "pending"}), ":0");
}

// Whoever reads the answers delivers each item once.
TEST(ClaimCommands, AnItemThatComesTwiceInOneCommandIsToBeDeliveredOnce) {
  TestHost host;
  host({"SLUICE.RESERVE", "k"});
  const Words claim{
      "SLUICE.MCLAIM", "k", "TTL", "100", "TOKEN", "t", "ITEMS", "a", "b", "a", "c", "a", "b"};
  EXPECT_EQ(host.call(claim), "[6] :1 :1 :2 :1 :2 :2");
  // A retry renews the leases.
  EXPECT_EQ(host.call(claim), "[6] :1 :1 :2 :1 :2 :2");
  EXPECT_EQ(host({"SLUICE.CLAIM", "k", "a", "TTL", "100", "TOKEN", "t"}), ":1");
  EXPECT_EQ(host({"SLUICE.MCONFIRM", "k", "TOKEN", "t", "ITEMS", "a", "b", "c"}), "[3] :1 :1 :1");
  EXPECT_EQ(host.call(claim), "[6] :0 :0 :0 :0 :0 :0");
}

TEST(ClaimCommands, ConfirmWithoutClaimsTakesNoMemory) {
  TestHost host;
  host({"SLUICE.INSERT", "k", "ITEMS", "a"});
  const std::uint64_t taken = host.memory().taken();
  EXPECT_EQ(host({"SLUICE.CONFIRM", "k", "a", "TOKEN", "t"}), ":2");
  EXPECT_EQ(host({"SLUICE.CONFIRM", "k", "b", "TOKEN", "t"}), ":0");
  EXPECT_EQ(host.memory().taken(), taken);
}

}  // namespace
}  // namespace sluice::server
