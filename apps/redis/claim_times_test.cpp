// Claims and time: at which time an item is remembered, and what a claim does that finds a repeat.
#include <gtest/gtest.h>

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
    EXPECT_EQ(with_at({"SLUICE.EXISTS", "k", "a"}, last), ":1");
    host.now = last;
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

}  // namespace
}  // namespace sluice::server
