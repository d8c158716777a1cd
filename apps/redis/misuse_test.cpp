// Commands that are not written as they are meant: what they answer teaches, and nothing happens.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "apps/redis/commands.hpp"
#include "apps/redis/testing_random.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice::server {
namespace {

using Words = std::vector<std::string>;

bool says(const std::string& reply, const std::string& what) {
  return reply.starts_with("-ERR ") && reply.find(what) != std::string::npos;
}

TEST(AtAmongItems, IsRefused) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "WINDOW", "10m"});
  for (const char* const at : {"AT", "at", "At"})
    for (const Words& words :
         {Words{"SLUICE.MADD", "k", "z"}, Words{"SLUICE.MEXISTS", "k", "z"},
          Words{"SLUICE.INSERT", "k", "ITEMS", "z"}, Words{"SLUICE.INSERT", "new", "ITEMS"},
          Words{"SLUICE.MCLAIM", "k", "TTL", "9", "TOKEN", "t", "ITEMS", "z"},
          Words{"SLUICE.MCONFIRM", "k", "TOKEN", "t", "ITEMS", "z"}}) {
      Words misplaced = words;
      misplaced.insert(misplaced.end(), {at, "1795098152178"});
      const std::string reply = host.call(misplaced);
      EXPECT_TRUE(says(reply, "looks like the option AT")) << text_of(misplaced) << reply;
      EXPECT_TRUE(says(reply, "a command of its own")) << reply;
    }
  EXPECT_EQ(host({"SLUICE.INFO", "k", "items"}), ":0");
  EXPECT_EQ(host({"SLUICE.INFO", "k", "pending"}), ":0");
  EXPECT_EQ(host.entry("new"), nullptr);
  EXPECT_TRUE(says(host({"SLUICE.MADD", "k", "z", "AT", "1795098152178"}),
                   "SLUICE.INSERT key NOCREATE AT ms ITEMS item..."));
  EXPECT_TRUE(says(host({"SLUICE.INSERT", "k", "ITEMS", "z", "AT", "179509815"}),
                   "options come before ITEMS"));
}

TEST(AtAmongItems, MayBeItems) {
  TestHost host;
  host({"SLUICE.RESERVE", "k", "WINDOW", "10m"});
  EXPECT_EQ(host({"SLUICE.MADD", "k", "AT", "17950981"}), "[2] :1 :1");
  EXPECT_EQ(host({"SLUICE.MADD", "k", "AT", "1795098152178", "b"}), "[3] :0 :1 :1");
  EXPECT_EQ(host({"SLUICE.MADD", "k", "AT", "179509815217b"}), "[2] :0 :1");
  EXPECT_EQ(host({"SLUICE.ADD", "k", "AT"}), ":0");
  EXPECT_EQ(host({"SLUICE.MADD", "k", "1795098152179"}), "[1] :1");
  EXPECT_EQ(host({"SLUICE.INSERT", "k", "AT", std::to_string(host.now), "ITEMS", "c"}), "[1] :1");
}

}  // namespace
}  // namespace sluice::server
