#include "connectors/redis/client.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "connectors/redis/fake_server_test_util.hpp"
#include "sluice/base/error.hpp"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using testing_support::FakeServer;
using Words = std::vector<std::string>;

constexpr auto kSilence = [](const Words&) { return std::string(); };

Address address_of(std::initializer_list<const FakeServer*> servers, bool cluster) {
  Address address{.cluster = cluster, .user = "", .endpoints = {}, .name = "test"};
  for (const FakeServer* server : servers) address.endpoints.push_back(server->endpoint());
  return address;
}

// All slots are at the port.
std::string slots(const Endpoint& at) {
  return fmt::format("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n${}\r\n{}\r\n:{}\r\n", at.host.size(),
                     at.host, at.port);
}

Settings patient() {
  return {.timeout = 30s, .first_retry = 1ms, .longest_retry = 2ms};
}

Outcome get(Client& client, std::string& text) {
  Commands commands;
  commands.add({"GET", "key"});
  std::vector<Reply> replies;
  const Outcome outcome = client.receive(client.send(slot_of("key"), std::move(commands)), replies);
  text = outcome == Outcome::answered ? replies.at(0).text : client.problem();
  return outcome;
}

Outcome get(Client& client) {
  std::string text;
  return get(client, text);
}

TEST(RedisClient, FollowsMovedAndLoadsTheMapAgain) {
  std::atomic<FakeServer*> home = nullptr;
  FakeServer second([&](const Words& words) {
    return words[0] == "CLUSTER" ? slots(home.load()->endpoint()) : std::string("+found\r\n");
  });
  std::atomic<bool> moved = false;
  FakeServer first([&](const Words& words) {
    if (words[0] == "CLUSTER") return slots(moved ? second.endpoint() : home.load()->endpoint());
    moved = true;
    return "-MOVED 12539 " + second.text() + "\r\n";
  });
  home = &first;
  Client client(address_of({&first}, true), patient());
  std::string text;
  EXPECT_EQ(get(client, text), Outcome::answered) << text;
  EXPECT_EQ(text, "found");
  while (client.map().at(0) == nullptr || *client.map().at(0) != second.endpoint())
    ASSERT_EQ(get(client), Outcome::answered);
  const unsigned asked = first.commands();
  EXPECT_EQ(get(client), Outcome::answered);
  EXPECT_EQ(first.commands(), asked);
}

TEST(RedisClient, FollowsAskForOneCommandOnly) {
  std::mutex mutex;
  std::vector<Words> heard;
  FakeServer second([&](const Words& words) {
    const std::lock_guard lock(mutex);
    heard.push_back(words);
    return words[0] == "ASKING" ? std::string("+OK\r\n") : std::string("+asked\r\n");
  });
  std::atomic<FakeServer*> home = nullptr;
  FakeServer first([&](const Words& words) {
    return words[0] == "CLUSTER" ? slots(home.load()->endpoint())
                                 : "-ASK 12539 " + second.text() + "\r\n";
  });
  home = &first;
  Client client(address_of({&first}, true), patient());
  std::string text;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(get(client, text), Outcome::answered) << text;
  EXPECT_EQ(text, "asked");
  const std::lock_guard lock(mutex);
  EXPECT_EQ(heard, (std::vector<Words>{{"ASKING"}, {"GET", "key"}, {"ASKING"}, {"GET", "key"}}));
}

// Also beside commands that were carried out, and beside one that was lost.
TEST(RedisClient, AnErrorIsThereToRead) {
  FakeServer server([&](const Words& words) {
    return words[1] == "key"     ? std::string("+there\r\n")
           : words[1] == "wrong" ? std::string("-WRONGTYPE no text\r\n")
                                 : FakeServer::kClose;
  });
  Client client(address_of({&server}, false), patient());
  Commands commands;
  for (const char* key : {"key", "wrong", "end"}) commands.add({"GET", key});
  std::vector<Reply> replies;
  EXPECT_EQ(client.receive(client.send(slot_of("key"), std::move(commands)), replies),
            Outcome::late);
  EXPECT_EQ(replies[0].text, "there");
  EXPECT_TRUE(replies[1].is(Reply::Kind::error));
  EXPECT_EQ(replies[1].text, "WRONGTYPE no text");
  EXPECT_TRUE(replies[2].is(Reply::Kind::nil));
}

TEST(RedisClient, ACircleOfServersEnds) {
  std::atomic<FakeServer*> self = nullptr;
  FakeServer server([&](const Words& words) {
    return words[0] == "CLUSTER" ? slots(self.load()->endpoint())
                                 : fmt::format("-MOVED 1 :{}\r\n", self.load()->endpoint().port);
  });
  self = &server;
  Client client(address_of({&server}, true), patient());
  EXPECT_EQ(get(client), Outcome::failed);
  EXPECT_NE(client.problem().find("MOVED"), std::string::npos);
  EXPECT_LT(server.commands(), 30u);
  // A server of its own that knows others is none.
  Client plain(address_of({&server}, false), patient());
  EXPECT_EQ(get(plain), Outcome::failed);
  EXPECT_NE(plain.problem().find("redis+cluster://"), std::string::npos) << plain.problem();
}

TEST(RedisClient, TriesAgainUntilTheDeadline) {
  std::atomic<int> times = 0;
  FakeServer busy([&](const Words&) {
    constexpr const char* kAnswers[] = {"-LOADING Redis is loading\r\n", "-TRYAGAIN Multiple\r\n",
                                        "-CLUSTERDOWN The cluster is down\r\n", "+there\r\n"};
    return std::string(kAnswers[std::min(times++, 3)]);
  });
  Client client(address_of({&busy}, false), patient());
  std::string text;
  EXPECT_EQ(get(client, text), Outcome::answered) << text;
  EXPECT_EQ(text, "there");
  FakeServer down([](const Words&) { return std::string("-CLUSTERDOWN The cluster is down\r\n"); });
  Client other(address_of({&down}, false), {.timeout = 100ms});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(get(other), Outcome::failed);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 100ms);
}

TEST(RedisClient, TheMapComesFromWhoeverHasOne) {
  FakeServer garbage([](const Words&) { return std::string("*1\r\n*1\r\n:99999\r\n"); });
  FakeServer closes([](const Words&) { return FakeServer::kClose; });
  std::atomic<FakeServer*> self = nullptr;
  FakeServer good([&](const Words& words) {
    return words[0] == "CLUSTER" ? slots(self.load()->endpoint()) : std::string("+found\r\n");
  });
  self = &good;
  Client client(address_of({&garbage, &closes, &good}, true), patient());
  std::string text;
  EXPECT_EQ(get(client, text), Outcome::answered) << text;
  Client none(address_of({&garbage}, true), {.timeout = 100ms});
  EXPECT_EQ(get(none, text), Outcome::failed);
  EXPECT_NE(text.find("not of slots"), std::string::npos) << text;
}

TEST(RedisClient, BadServersEndTheConnectionAndNothingElse) {
  const std::vector<std::string> bad = {"HTTP/1.1 400\r\n", "*99999999\r\n", FakeServer::kClose,
                                        "+half", "+one\r\n+two too many\r\n"};
  for (const std::string& first : bad) {
    std::atomic<int> times = 0;
    FakeServer server(
        [&](const Words&) { return times++ == 0 ? first : std::string("+good\r\n"); });
    Settings settings = patient();
    settings.timeout = first == "+half" ? 100ms : 30000ms;
    Client client(address_of({&server}, false), settings);
    std::string text;
    if (first.starts_with("+one"))
      EXPECT_EQ(get(client, text), Outcome::answered);
    else
      EXPECT_EQ(get(client, text), Outcome::late) << first;
    // At once, or after the backoff: what it said before is forgotten.
    while (get(client, text) != Outcome::answered) {
    }
    EXPECT_EQ(text, "good") << first;
  }
}

// Eight servers, three requests each: all are late together, and not one after the other.
TEST(RedisClient, SilentServersAreWaitedForTogether) {
  constexpr unsigned kServers = 8;
  std::vector<std::unique_ptr<FakeServer>> servers;
  Address address{.cluster = false, .user = "", .endpoints = {}, .name = "test"};
  for (unsigned i = 0; i < kServers; ++i) {
    servers.push_back(std::make_unique<FakeServer>(kSilence));
    address.endpoints.push_back(servers.back()->endpoint());
  }
  Client client(address, {.timeout = 200ms});
  const auto start = std::chrono::steady_clock::now();
  std::vector<Client::Ticket> tickets;
  for (unsigned i = 0; i < 3 * kServers; ++i) {
    Commands commands;
    commands.add({"GET", "key"});
    tickets.push_back(
        client.send(static_cast<std::uint16_t>(i * kSlots / (3 * kServers)), std::move(commands)));
  }
  std::vector<Reply> replies;
  for (const Client::Ticket ticket : tickets)
    EXPECT_EQ(client.receive(ticket, replies), Outcome::late);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, 200ms);
  EXPECT_LT(took, kServers / 2 * 200ms);
  // And not waited for again while the backoff lasts.
  EXPECT_EQ(get(client), Outcome::failed);
}

TEST(RedisClient, AServerThatIsGoneFails) {
  Endpoint gone;
  {
    FakeServer server(kSilence);
    gone = server.endpoint();
  }
  for (const bool cluster : {false, true}) {
    Client client({.cluster = cluster, .user = "", .endpoints = {gone}, .name = "test"}, patient());
    std::string text;
    EXPECT_EQ(get(client, text), Outcome::failed);
    EXPECT_NE(text.find(text_of(gone)), std::string::npos) << text;
  }
}

TEST(RedisClient, SaysWhoItIsBeforeAnythingElse) {
  std::mutex mutex;
  std::vector<Words> heard;
  FakeServer server([&](const Words& words) {
    const std::lock_guard lock(mutex);
    heard.push_back(words);
    return words[0] == "AUTH" && words.back() != "right" ? std::string("-WRONGPASS no\r\n")
                                                         : std::string("+OK\r\n");
  });
  Address address = address_of({&server}, false);
  address.user = "app";
  Settings settings = patient();
  EXPECT_THROW(Client(address, settings), BadParameters);
  settings.password = "wrong";
  Client wrong(address, settings);
  std::string text;
  EXPECT_EQ(get(wrong, text), Outcome::failed);
  EXPECT_NE(text.find("WRONGPASS"), std::string::npos) << text;
  settings.password = "right";
  Client right(address, settings);
  EXPECT_EQ(get(right, text), Outcome::answered) << text;
  const std::lock_guard lock(mutex);
  EXPECT_EQ(heard, (std::vector<Words>{
                       {"AUTH", "app", "wrong"}, {"AUTH", "app", "right"}, {"GET", "key"}}));
}

}  // namespace
}  // namespace sluice::redis
