// The client on real servers: several requests at a time, limits, passwords.
#include <gtest/gtest.h>

#include "tests/redis/sites.hpp"

namespace sluice::redis {
namespace {

using namespace testing_support;

Commands one(std::initializer_list<std::string_view> words) {
  Commands commands;
  commands.add(words);
  return commands;
}

Outcome ask(Client& client, std::string_view key, Commands commands, std::vector<Reply>& replies) {
  return client.receive(client.send(slot_of(key), std::move(commands)), replies);
}

TEST(Sites, RequestsAreAnsweredInAnyOrder) {
  Client client(servers(), patient());
  std::vector<std::string> names;
  std::vector<Client::Ticket> tickets;
  for (int i = 0; i < 300; ++i) {
    names.push_back(client.address().name + std::to_string(i));
    Commands commands = one({"SET", names.back(), std::to_string(i)});
    commands.add({"GET", names.back()});
    tickets.push_back(client.send(slot_of(names.back()), std::move(commands)));
  }
  for (std::size_t i = tickets.size(); i-- > 0;) {
    std::vector<Reply> replies;
    ASSERT_EQ(client.receive(tickets[i], replies), Outcome::answered) << client.problem();
    ASSERT_EQ(replies.size(), 2u);
    EXPECT_EQ(replies[0].text, "OK");
    EXPECT_EQ(replies[1].text, std::to_string(i));
  }
}

TEST(Sites, AnErrorIsNotCarriedOutAndSaysWhy) {
  Client client(servers(), patient());
  const std::string key = client.address().name;
  std::vector<Reply> replies;
  EXPECT_EQ(ask(client, key, one({"SET", key, "text"}), replies), Outcome::answered);
  EXPECT_EQ(ask(client, key, one({"LPUSH", key, "x"}), replies), Outcome::failed);
  EXPECT_NE(client.problem().find("WRONGTYPE"), std::string::npos) << client.problem();
  // One of two.
  Commands both = one({"GET", key});
  both.add({"LPUSH", key, "x"});
  EXPECT_EQ(ask(client, key, std::move(both), replies), Outcome::late);
}

TEST(Sites, AReplyThatIsTooLargeEndsTheConnectionOnly) {
  Settings settings = patient();
  settings.limits.bytes = 100'000;
  Client client(servers(), settings);
  const std::string key = client.address().name;
  std::vector<Reply> replies;
  EXPECT_EQ(ask(client, key, one({"SETRANGE", key, "1000000", "x"}), replies), Outcome::answered);
  EXPECT_EQ(ask(client, key, one({"GET", key}), replies), Outcome::late);
  EXPECT_NE(client.problem().find("more than 100000 bytes"), std::string::npos) << client.problem();
  // Until the backoff allows it to connect again.
  while (ask(client, key, one({"STRLEN", key}), replies) != Outcome::answered) {
  }
  EXPECT_EQ(replies[0].integer, 1'000'001);
}

TEST(Sites, ConnectionsThatTheServerHasClosedAreMadeAgain) {
  Client client(servers(), patient());
  const std::string key = client.address().name;
  std::vector<Reply> replies;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ask(client, key, one({"INCR", key}), replies), Outcome::answered) << client.problem();
    outside("disconnect");
  }
}

// A user `app` with the password in SLUICE_SITES_PASSWORD; without it nothing is allowed.
TEST(LockedSites, NeedAPassword) {
  const auto outcome = [&](const std::string& user, const std::string& password,
                           std::string& problem) {
    Settings settings = patient();
    settings.user = user;
    settings.password = password;
    Client client(servers(), settings);
    std::vector<Reply> replies;
    const Outcome found = ask(client, "key", one({"SET", "key", "1"}), replies);
    problem = client.problem();
    return found;
  };
  const std::string password = password_from_environment("SLUICE_SITES_PASSWORD");
  std::string problem;
  EXPECT_EQ(outcome("app", password, problem), Outcome::answered) << problem;
  EXPECT_EQ(outcome("", password, problem), Outcome::answered) << problem;
  EXPECT_EQ(outcome("app", "wrong", problem), Outcome::failed);
  EXPECT_NE(problem.find("WRONGPASS"), std::string::npos) << problem;
  EXPECT_EQ(outcome("", "", problem), Outcome::failed);
  EXPECT_NE(problem.find("NOAUTH"), std::string::npos) << problem;
  EXPECT_EQ(problem.find(password), std::string::npos);
}

TEST(Sites, NobodyThereIsAnOutcome) {
  Client client(parse_address("redis+cluster://127.0.0.1:1/x"), patient());
  std::vector<Reply> replies;
  EXPECT_EQ(ask(client, "x", one({"GET", "x"}), replies), Outcome::failed);
  EXPECT_NE(client.problem().find("127.0.0.1:1"), std::string::npos) << client.problem();
}

}  // namespace
}  // namespace sluice::redis
