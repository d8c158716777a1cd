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

Words with(const Words& first, const Words& options, const Words& last = {}) {
  Words all = first;
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

// Whatever made the key, the same INSERT works again, also when the key has grown and after a reload.
TEST(OptionsOfInsert, AgreeWithThemselves) {
  int made = 0;
  Words filters{""};
  for (const FilterInfo& each : catalogue()) filters.emplace_back(each.name);
  for (const std::string& filter : filters)
    for (const Words& window : {Words{}, Words{"WINDOW", "FOREVER"}, Words{"WINDOW", "5s"},
                                Words{"WINDOW", "300"}, Words{"WINDOW", "hour", "REFRESH"}})
      for (const Words& size :
           {Words{}, Words{"EXPECT", "100"}, Words{"EXPECT", "100", "MEMORY", "16KiB"},
            Words{"MEMORY", "64KiB"}, Words{"EXPECT", "100", "SLACK", "10%"}})
        for (const char* const fpr : {"", "0.5", "1%", "1e-3", "1e-7"}) {
          Words options = with(window, size);
          if (*fpr != 0) options.insert(options.end(), {"FPR", fpr});
          if (!filter.empty()) options.insert(options.end(), {"FILTER", filter});
          TestHost host;
          const Words words = with({"SLUICE.INSERT", "k"}, options, {"ITEMS", "a"});
          if (!host.call(words).starts_with("[1]")) continue;
          ++made;
          EXPECT_TRUE(host.call(words).starts_with("[1]")) << text_of(words) << host.call(words);
          Words many{"SLUICE.MADD", "k"};
          for (int i = 0; i < 600; ++i) many.push_back(std::to_string(i));
          host.call(many);
          EXPECT_TRUE(host.call(words).starts_with("[1]")) << text_of(words) << host.call(words);
          auto& entry = host.keys["k"].entry;
          entry = entry_of(bytes_of(*entry), host.memory());
          EXPECT_TRUE(host.call(words).starts_with("[1]")) << text_of(words) << host.call(words);
          EXPECT_TRUE(host({"SLUICE.INSERT", "k", "ITEMS", "a"}).starts_with("[1]"));
        }
  EXPECT_GT(made, 200);
}

TEST(OptionsOfInsert, ThatContradictTheKeyAreRefused) {
  TestHost host;
  host({"SLUICE.RESERVE", "window", "WINDOW", "10m", "FPR", "1e-3"});
  host({"SLUICE.RESERVE", "count", "WINDOW", "600"});
  host({"SLUICE.RESERVE", "set", "EXPECT", "1000", "FPR", "1%"});
  const std::vector<std::tuple<std::string, Words, std::string>> cases{
      {"window",
       {"WINDOW", "1h"},
       "the key exists with a window of the last 10 minutes, and not with a window of the last "},
      {"window", {"WINDOW", "600"}, "a window of the last 600 deliveries"},
      {"count",
       {"WINDOW", "600s"},
       "exists with a window of the last 600 deliveries, and not with a window of the last 10 "
       "minutes"},
      {"window", {"WINDOW", "FOREVER"}, "not with no window"},
      {"set", {"WINDOW", "10m"}, "exists with no window, and not with a window of"},
      {"window", {"REFRESH"}, "and not with REFRESH"},
      {"set", {"WINDOW", "FOREVER", "REFRESH"}, "REFRESH"},
      {"window", {"FILTER", "apbf"}, "exists with filter cohort, and not with filter apbf"},
      {"window", {"FPR", "1e-4"}, "an error of 0.001, and not with FPR 0.0001"},
      {"set", {"FPR", "1e-4"}, "and not with FPR 0.0001"},
  };
  for (const auto& [key, options, expected] : cases) {
    const Words words = with({"SLUICE.INSERT", key}, options, {"ITEMS", "a"});
    const std::string reply = host.call(words);
    EXPECT_TRUE(says(reply, expected)) << text_of(words) << " -> " << reply;
    EXPECT_EQ(host({"SLUICE.EXISTS", key, "a"}), ":0");
  }
  // Less than the key does is no contradiction, and sizes are for making it.
  for (const Words& options : {Words{"FPR", "1%"}, Words{"EXPECT", "5"}, Words{"MEMORY", "1MiB"},
                               Words{"SEED", "5"}, Words{"AUDIT", "1/4"}, Words{"WINDOW", "600s"}})
    EXPECT_TRUE(
        host.call(with({"SLUICE.INSERT", "window"}, options, {"ITEMS", "a"})).starts_with("[1] "))
        << text_of(options);
}

TEST(Misuse, TeachesTheCommand) {
  TestHost host;
  host({"SLUICE.RESERVE", "w", "WINDOW", "10m"});
  const std::string claim = "usage: SLUICE.CLAIM key item TTL ms TOKEN token [AT ms]";
  const std::string confirm = "usage: SLUICE.CONFIRM key item TOKEN token [AT ms]";
  const std::vector<std::pair<Words, std::string>> cases{
      {{"SLUICE.CLAIM", "w", "x", "30000", "w1"}, claim},
      {{"SLUICE.CLAIM", "w", "x", "TTL", "30"}, claim},
      {{"SLUICE.CLAIM", "w", "x"}, claim},
      {{"SLUICE.CONFIRM", "w", "x", "w"}, confirm},
      {{"SLUICE.CONFIRM", "w", "x"}, confirm},
      {{"SLUICE.RELEASE", "w", "x", "w"}, "usage: SLUICE.RELEASE key item TOKEN token"},
      {{"SLUICE.CLAIM", "w", "x", "TTL", "30", "TOKEN", ""}, "TOKEN is empty"},
      {{"SLUICE.CONFIRM", "w", "x", "TOKEN", ""}, "TOKEN is empty"},
      {{"SLUICE.ADD", "w", "a", "AT", "1795098152178000"}, "seems to be in microseconds"},
      {{"SLUICE.ADD", "w", "a", "AT", "1795098152178000000"}, "seems to be in nanoseconds"},
      {{"SLUICE.RESERVE", "k", "0.01", "1000"}, "is FPR 0.01 EXPECT 1000 here"},
      {{"SLUICE.RESERVE", "k", "FILTER", "cohrt"},
       "there is no FILTER 'cohrt': did you mean cohort?"},
      {{"SLUICE.HELP", "SIEVE"}, "there is no command 'SIEVE'"},
      {{"SLUICE.HELP", "EFFECT"}, "there is no command"},
  };
  for (const auto& [words, expected] : cases) {
    const std::string reply = host.call(words);
    EXPECT_TRUE(says(reply, expected)) << text_of(words) << " -> " << reply;
  }
  EXPECT_EQ(host.keys.size(), 1u);
}

TEST(Help, ShowsEveryCommand) {
  TestHost host;
  const std::string all = host({"SLUICE.HELP"});
  for (const Command& command : commands()) {
    const bool shown = all.find(std::string("+") + command.name + ": ") != std::string::npos;
    EXPECT_EQ(shown, !command.internal) << command.name;
  }
  for (const char* const name : {"add", "SLUICE.ADD"})
    EXPECT_TRUE(
        host({"SLUICE.HELP", name}).starts_with("[3] +SLUICE.ADD key item [AT ms] +Judges"));
}

}  // namespace
}  // namespace sluice::server
