// Replicas, and copies that were reloaded from bytes, are equal to their primary after every command.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
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

// Where nobody is told, effects are not even made. All else is the same: what is replied, the keys, the events, and
// how many changes the server counts.
TEST(Replication, NobodyListens) {
  RandomCommands commands(3);
  TestHost heard, unheard;
  unheard.unheard = true;
  const int count = testing_support::count_of(300, 1'500, 5'000);
  for (int i = 0; i < count; ++i) {
    commands.set_clock(heard);
    unheard.now = heard.now;
    std::vector<std::string> words = commands.next();
    // A key without one has a secret of its own.
    const bool makes = words[0] == "SLUICE.RESERVE" || words[0] == "SLUICE.INSERT";
    if (makes && std::ranges::find(words, "SEED") == words.end())
      words.insert(words.begin() + 2, {"SEED", "1"});
    ASSERT_EQ(heard.call(words), unheard.call(words)) << i << ": " << text_of(words);
    ASSERT_EQ(heard.changes, unheard.changes) << i << ": " << text_of(words);
    ASSERT_EQ(heard.events, unheard.events) << i << ": " << text_of(words);
    ASSERT_EQ(heard.keys.size(), unheard.keys.size());
    for (const auto& [name, slot] : heard.keys) {
      ASSERT_EQ(bytes_of(*slot.entry), bytes_of(*unheard.entry(name))) << i << ": " << name;
      ASSERT_EQ(slot.expiry, unheard.keys[name].expiry) << i << ": " << name;
    }
  }
  EXPECT_GT(heard.changes, static_cast<std::uint64_t>(count / 3));
  EXPECT_GE(heard.told.size(), heard.changes);
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

// MEMORY is used up at the same item everywhere, also on a primary that was reloaded, and each forgets the same.
void fill_limited(std::uint64_t seed, bool claims) {
  TestHost host, replica;
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t most) { return random() % most; };
  host({"SLUICE.RESERVE", "k", "WINDOW", "1m", "EXPECT", "200", "MEMORY", "16KiB"});
  for (int step = 0; step < 400; ++step) {
    std::vector<std::string> words{"SLUICE.INSERT", "k"};
    if (below(3) == 0) {
      constexpr std::int64_t kBehind[] = {0, 500, 30'000, 59'000, -900, -50'000};
      words.insert(words.end(), {"AT", std::to_string(host.now - kBehind[below(6)])});
    }
    words.emplace_back("ITEMS");
    const std::uint64_t kind = below(6);
    if (claims && kind == 0)
      words = {"SLUICE.MCLAIM", "k", "TTL", below(2) == 0 ? "1" : "60000", "TOKEN", "t", "ITEMS"};
    if (claims && kind == 1) words = {"SLUICE.MCONFIRM", "k", "TOKEN", "t", "ITEMS"};
    if (kind == 2) words = {"SLUICE.MFORGET", "k"};
    constexpr int kSizes[] = {1, 5, 60, 300};
    for (int left = kSizes[below(4)]; left > 0; --left)
      words.push_back(std::to_string(below(3000)));
    host.call(words);
    host.now += static_cast<std::int64_t>(below(30));
    if (step % 40 == 39) {
      Entry::Pointer& entry = host.keys["k"].entry;
      entry = entry_of(bytes_of(*entry), host.memory(), host.now);
    }
    for (const auto& each : host.told) ASSERT_EQ(replica.follow(each), "+OK") << step;
    host.told.clear();
    ASSERT_EQ(bytes_of(*replica.entry("k")), bytes_of(*host.entry("k"))) << step;
  }
  EXPECT_GT(host.entry("k")->window()->forgotten_early(), 1'000u);
}

TEST(Replication, WindowsWithALimit) {
  const int seeds = testing_support::count_of(2, 5, 50);
  for (int seed = 0; seed < seeds; ++seed)
    for (const bool claims : {false, true}) {
      fill_limited(static_cast<std::uint64_t>(seed), claims);
      ASSERT_FALSE(HasFatalFailure()) << seed << " " << claims;
    }
}

}  // namespace
}  // namespace sluice::server
