// Claims and time: at which time an item is remembered, and what a claim does that finds a repeat.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "apps/redis/commands.hpp"
#include "apps/redis/testing_random.hpp"

namespace sluice::server {
namespace {

using Words = std::vector<std::string>;
constexpr std::int64_t kSecond = 1000;

// The event's own time, a claim of it a minute later, and its confirmation after another minute.
class ConfirmedItem : public testing::Test {
 protected:
  ConfirmedItem() { host({"SLUICE.RESERVE", "k", "WINDOW", "10m"}); }

  std::string with_at(Words words, std::int64_t at) {
    if (at != 0) words.insert(words.end(), {"AT", std::to_string(at)});
    return host.call(words);
  }
  std::string claim_and_confirm(std::int64_t claimed_at, std::int64_t confirmed_at) {
    EXPECT_EQ(with_at({"SLUICE.CLAIM", "k", "a", "TTL", "100000", "TOKEN", "t"}, claimed_at), ":1");
    host.now += 60 * kSecond;
    return with_at({"SLUICE.CONFIRM", "k", "a", "TOKEN", "t"}, confirmed_at);
  }
  // An event of this time is a repeat, and one a millisecond later is not.
  void expect_remembered_at(std::int64_t time) {
    const std::int64_t last = time + 600 * kSecond - 1;
    host.now = last;
    EXPECT_EQ(with_at({"SLUICE.EXISTS", "k", "a"}, last), ":1");
    EXPECT_EQ(with_at({"SLUICE.EXISTS", "k", "a"}, last + 1), ":0");
  }

  TestHost host;
  std::int64_t event = host.now - 60 * kSecond;
};

TEST_F(ConfirmedItem, IsRememberedAtTheTimeOfTheClaim) {
  EXPECT_EQ(claim_and_confirm(event, 0), ":1");
  expect_remembered_at(event);
}

TEST_F(ConfirmedItem, MayBeConfirmedWithTheTimeOfTheClaim) {
  EXPECT_EQ(claim_and_confirm(event, event), ":1");
  expect_remembered_at(event);
}

TEST_F(ConfirmedItem, IsRememberedAtTheTimeOfTheConfirmation) {
  EXPECT_EQ(claim_and_confirm(0, event), ":1");
  expect_remembered_at(event);
}

TEST_F(ConfirmedItem, IsRememberedWhenItIsConfirmed) {
  EXPECT_EQ(claim_and_confirm(0, 0), ":1");
  expect_remembered_at(host.now);
}

TEST_F(ConfirmedItem, HasOneTime) {
  const std::string reply = claim_and_confirm(event, event + 1);
  EXPECT_TRUE(reply.starts_with("-ERR 'a' was claimed with AT " + std::to_string(event) +
                                ", and is to be confirmed with AT " + std::to_string(event + 1)))
      << reply;
  EXPECT_EQ(with_at({"SLUICE.CLAIM", "k", "b", "TTL", "1000", "TOKEN", "t"}, event + 1), ":1");
  EXPECT_EQ(host({"SLUICE.MCONFIRM", "k", "TOKEN", "t", "AT", std::to_string(event + 1), "ITEMS",
                  "b", "a"}),
            reply);
  EXPECT_EQ(host({"SLUICE.INFO", "k", "pending"}), ":2");
  // Whose claim it is comes first.
  EXPECT_EQ(with_at({"SLUICE.CONFIRM", "k", "a", "TOKEN", "u"}, event + 1), ":0");
  EXPECT_EQ(host({"SLUICE.MCONFIRM", "k", "TOKEN", "t", "ITEMS", "b", "a"}), "[2] :1 :1");
  expect_remembered_at(event);
  EXPECT_EQ(with_at({"SLUICE.CONFIRM", "k", "a", "TOKEN", "t"}, event + 1), ":2");
}

// With REFRESH: as ADD, which answers 0 and restarts the item's window.
TEST(ClaimedRepeat, RestartsItsWindow) {
  for (const char* const command : {"SLUICE.CLAIM", "SLUICE.MCLAIM"}) {
    TestHost host;
    host({"SLUICE.RESERVE", "k", "WINDOW", "800ms", "REFRESH"});
    host({"SLUICE.ADD", "k", "a"});
    host.now += 500;
    Words words{command, "k", "a", "TTL", "100", "TOKEN", "t"};
    if (words[0] == "SLUICE.MCLAIM")
      words = {command, "k", "TTL", "100", "TOKEN", "t", "ITEMS", "b", "a"};
    EXPECT_TRUE(host.call(words).ends_with(":0"));
    host.now += 500;
    EXPECT_EQ(host({"SLUICE.EXISTS", "k", "a"}), ":1") << command;
  }
}

TEST(ClaimedRepeat, IsAnArrival) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "WINDOW", "3", "REFRESH"});
  host({"SLUICE.MADD", "k", "a", "b", "c"});
  EXPECT_EQ(host({"SLUICE.CLAIM", "k", "b", "TTL", "100", "TOKEN", "t"}), ":0");
  EXPECT_EQ(host({"SLUICE.MEXISTS", "k", "a", "b", "c"}), "[3] :0 :1 :1");
}

TEST(ClaimedRepeat, ThatIsPendingChangesNothing) {
  TestHost host;
  const std::string ahead = std::to_string(host.now + 700);
  host({"SLUICE.RESERVE", "k", "WINDOW", "800ms", "REFRESH"});
  host({"SLUICE.ADD", "k", "a"});
  EXPECT_EQ(host({"SLUICE.CLAIM", "k", "p", "TTL", "2000", "TOKEN", "t"}), ":1");
  EXPECT_EQ(host({"SLUICE.CLAIM", "k", "p", "TTL", "2000", "TOKEN", "u", "AT", ahead}), ":2");
  host.now += 799;
  EXPECT_EQ(host({"SLUICE.MEXISTS", "k", "a", "p"}), "[2] :1 :2");
  host.now += 1;
  EXPECT_EQ(host({"SLUICE.MEXISTS", "k", "a", "p"}), "[2] :0 :2");
}

// Two keys that differ in nothing: repeats come to one by ADD, and to the other by CLAIM.
TEST(ClaimedRepeat, DoesWhatARepeatDoes) {
  for (const Words& options :
       {Words{"WINDOW", "5s"}, Words{"WINDOW", "5s", "EXPECT", "50", "MEMORY", "16KiB"},
        Words{"WINDOW", "40"}, Words{"WINDOW", "5s", "FILTER", "apbf", "EXPECT", "50"},
        Words{"WINDOW", "5s", "FILTER", "timing", "EXPECT", "50"},
        Words{"WINDOW", "hour", "EXPECT", "50"}})
    for (const bool timed : {false, true}) {
      if (timed && options[1] == "40") continue;
      Followed servers;
      for (const char* const key : {"added", "claimed"}) {
        Words words{"SLUICE.RESERVE", key, "REFRESH", "SEED", "7"};
        words.insert(words.end(), options.begin(), options.end());
        ASSERT_EQ(servers.run(words, false), "+OK") << text_of(words);
      }
      std::mt19937_64 random(3);
      int repeats = 0;
      for (int step = 0; step < 1'500; ++step) {
        servers.primary.now += static_cast<std::int64_t>(random() % 200);
        const std::string item = std::to_string(random() % 60);
        const std::string at =
            std::to_string(servers.primary.now - static_cast<std::int64_t>(random() % 3'000));
        const auto with_at = [&](Words words) {
          if (timed) words.insert(words.end(), {"AT", at});
          return words;
        };
        const std::string answer =
            servers.run(with_at({"SLUICE.ADD", "added", item}), random() % 20 == 0);
        const bool repeat =
            servers.primary.call(with_at({"SLUICE.EXISTS", "claimed", item})) == ":1";
        const Words words = repeat
                                ? Words{"SLUICE.CLAIM", "claimed", item, "TTL", "1", "TOKEN", "t"}
                                : Words{"SLUICE.ADD", "claimed", item};
        ASSERT_EQ(servers.run(with_at(words), false), answer) << step << " " << text_of(options);
        ASSERT_EQ(servers.difference(), "") << step << " " << text_of(options);
        repeats += repeat ? 1 : 0;
      }
      EXPECT_GT(repeats, 300) << text_of(options);
    }
}

}  // namespace
}  // namespace sluice::server
