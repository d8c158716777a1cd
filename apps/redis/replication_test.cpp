// Replicas, and copies that were reloaded from bytes, are equal to their primary after every command.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/redis/testing_random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "tests/support/counts.hpp"

namespace sluice::server {
namespace {

void run_next(RandomCommands& commands, Followed& servers, int i, const std::string& key = "") {
  commands.set_clock(servers.primary);
  std::vector<std::string> words = commands.next();
  if (!key.empty()) words[1] = key;
  const std::string reply = servers.run(words, commands.reloads());
  ASSERT_EQ(servers.difference(i % 50 == 0 ? "" : words[1]), "")
      << i << ": " << text_of(words) << " -> " << reply.substr(0, 200);
}

TEST(Replication, RandomCommands) {
  RandomCommands commands(1);
  Followed servers(true);
  const int count = testing_support::count_of(300, 1'500, 5'000);
  for (int i = 0; i < count; ++i) {
    commands.act_as_person(servers);
    run_next(commands, servers, i);
    if (HasFatalFailure()) return;
  }
}

TEST(Replication, EveryFilter) {
  RandomCommands commands(2);
  const int count = testing_support::count_of(20, 100, 1'000);
  for (const FilterInfo& filter : catalogue()) {
    if (filter.name == "sharded") continue;  // it has threads
    bool made = false;
    for (const char* const window : {"FOREVER", "5s", "300"}) {
      Followed servers(true);
      const std::string name(filter.name);
      if (servers.run({"SLUICE.RESERVE", "k", "FILTER", name, "WINDOW", window, "EXPECT", "500"},
                      false) != "+OK" &&
          servers.run({"SLUICE.RESERVE", "k", "FILTER", name, "WINDOW", window}, false) != "+OK")
        continue;
      made = true;
      for (int i = 0; i < count; ++i) {
        run_next(commands, servers, i, "k");
        ASSERT_FALSE(HasFatalFailure()) << name << " " << window;
      }
    }
    EXPECT_TRUE(made) << filter.name;
  }
}

}  // namespace
}  // namespace sluice::server
