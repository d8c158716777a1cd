// What needs no real server; the rest is in tests/redis/sites_test.cpp.
#include "connectors/redis/cell_site.hpp"

#include <gtest/gtest.h>

#include "connectors/redis/fake_server_test_util.hpp"
#include "sluice/base/error.hpp"

namespace sluice::redis {
namespace {

using testing_support::FakeServer;
using Words = std::vector<std::string>;

std::shared_ptr<Client> client_of(const FakeServer& server) {
  return std::make_shared<Client>(
      Address{.cluster = false, .user = "", .endpoints = {server.endpoint()}, .name = "test"},
      Settings{.timeout = std::chrono::seconds(30)});
}

// Answers that are none to BITFIELD: the site has not answered, and no verdict comes of it.
TEST(CellSite, AnswersOfTheWrongShapeAreNone) {
  for (const char* answer :
       {"+OK\r\n", "*0\r\n", "*2\r\n:1\r\n:1\r\n", "*3\r\n:1\r\n:1\r\n$1\r\n1\r\n",
        "*3\r\n:1\r\n:1\r\n*0\r\n", "$-1\r\n", "-ERR no\r\n"}) {
    FakeServer server([&](const Words&) { return std::string(answer); });
    CellSite site(client_of(server), {.name = "test", .cells = 100});
    const std::vector<std::uint64_t> positions = {1, 2};
    std::vector<std::uint8_t> answers(2, 0);
    EXPECT_FALSE(site.ask(cluster::Verb::test, positions, answers).answered()) << answer;
  }
}

TEST(CellSite, IsRefusedIfAKeyCannotHoldIt) {
  FakeServer server([](const Words&) { return std::string(); });
  const auto client = client_of(server);
  EXPECT_THROW(CellSite(client, {.name = "x", .cells = 0}), BadParameters);
  EXPECT_THROW(CellSite(client, {.name = "x", .cells = CellSite::kMostBits + 1}), BadParameters);
  EXPECT_NO_THROW(CellSite(client, {.name = "x", .cells = CellSite::kMostBits}));
  using cluster::Slicing;
  const cluster::SliceMap large({Slicing::vertical, CellSite::kMostBits * 5 / 2, 4, 2, 1, 1});
  try {
    cell_sites(client, large);
    FAIL();
  } catch (const BadParameters& error) {
    EXPECT_NE(std::string(error.what()).find("into 3 slices"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace sluice::redis
