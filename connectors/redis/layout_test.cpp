#include "connectors/redis/layout.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "connectors/redis/fake_server_test_util.hpp"

namespace sluice::redis {
namespace {

using cluster::CorruptLayout;
using cluster::Layout;
using testing_support::FakeServer;
using Words = std::vector<std::string>;

Layout layout_of(std::uint64_t version) {
  Layout layout;
  layout.identity = 0xabcdef0123456789;
  layout.version = version;
  layout.slicing.slices = 2;
  layout.slices.resize(2);
  layout.slices[1] = {.turn = 7, .placed = version};
  layout.secret = Secret::from_seed(1);
  return layout;
}

std::string text(const std::string& bytes) {
  return fmt::format("${}\r\n{}\r\n", bytes.size(), bytes);
}

// A server with one key, and what it answers instead, if anything.
class OneKey {
 public:
  explicit OneKey(std::optional<std::string> holds = {}, std::string instead = {})
      : value_(std::move(holds)),
        says_(std::move(instead)),
        server_([this](const Words& words) { return answer(words); }) {}

  LayoutStore store() {
    return LayoutStore(std::make_shared<Client>(
        Address{.cluster = false, .user = "", .endpoints = {server_.endpoint()}, .name = "clicks"},
        Settings{.timeout = std::chrono::seconds(30)}));
  }

  // Loses the next answer to SET or EVAL, after it is carried out.
  void lose_one() {
    const std::lock_guard lock(mutex_);
    ++loses_;
  }
  // What the last EVAL said of it.
  std::string expiry() {
    const std::lock_guard lock(mutex_);
    return expiry_;
  }

 private:
  std::string answer(const Words& words) {
    const std::lock_guard lock(mutex_);
    if (!says_.empty()) return says_;
    EXPECT_EQ(words[words[0] == "EVAL" ? 3 : 1], "{clicks}:layout:1");
    if (words[0] == "GET") return value_ ? text(*value_) : "$-1\r\n";
    bool done = false;
    if (words[0] == "SET") {
      EXPECT_EQ(words[3], "NX");
      done = !value_;
      if (done) value_ = words[2];
    } else {
      done = value_ == words[4];
      if (done) value_ = words[5];
      if (done) expiry_ = words[6];
    }
    if (loses_ > 0 && loses_-- > 0) return FakeServer::kClose;
    return words[0] == "EVAL" ? fmt::format(":{}\r\n", done ? 1 : 0) : done ? "+OK\r\n" : "$-1\r\n";
  }

  std::mutex mutex_;
  std::optional<std::string> value_;
  std::string says_, expiry_;
  unsigned loses_ = 0;
  FakeServer server_;
};

std::string failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const ServersFailed& error) {
    return error.what();
  }
  return "";
}

TEST(LayoutStore, OneOfThoseWhoCreateWins) {
  OneKey server;
  LayoutStore store = server.store();
  EXPECT_FALSE(store.read());
  EXPECT_TRUE(store.create(layout_of(1)));
  EXPECT_FALSE(store.create(layout_of(2)));
  EXPECT_EQ(store.read(), layout_of(1));
}

TEST(LayoutStore, ALayoutTakesThePlaceOfTheOneItWasMadeFrom) {
  OneKey server;
  LayoutStore store = server.store();
  EXPECT_TRUE(store.create(layout_of(1)));
  EXPECT_TRUE(store.replace(layout_of(1), layout_of(2)));
  // Somebody who has read version 1 comes late: versions never go back.
  EXPECT_FALSE(store.replace(layout_of(1), layout_of(2)));
  EXPECT_TRUE(store.replace(layout_of(2), layout_of(3)));
  EXPECT_FALSE(store.replace(layout_of(1), layout_of(2)));
  EXPECT_EQ(store.read(), layout_of(3));
  EXPECT_EQ(server.expiry(), "0");
  Layout dropped = layout_of(4);
  dropped.dropped = true;
  EXPECT_TRUE(store.replace(layout_of(3), dropped));
  EXPECT_EQ(server.expiry(), "604800000");
}

// It was carried out, and nobody said so.
TEST(LayoutStore, ALostAnswerIsClearedUp) {
  OneKey server;
  LayoutStore store = server.store();
  server.lose_one();
  EXPECT_TRUE(store.create(layout_of(1)));
  server.lose_one();
  EXPECT_TRUE(store.replace(layout_of(1), layout_of(2)));
  server.lose_one();
  EXPECT_FALSE(store.replace(layout_of(1), layout_of(3)));
}

TEST(LayoutStore, SaysWhatServersRefuse) {
  for (const auto& [says, sentence] :
       {std::pair("-WRONGTYPE Operation against a key\r\n", "{clicks}:layout:1: WRONGTYPE"),
        std::pair("-NOPERM this user may not\r\n", "NOPERM this user may not"),
        std::pair(":5\r\n", "no answer to GET"), std::pair("*0\r\n", "no answer to GET")}) {
    OneKey server({}, says);
    const std::string said = failure([&] { server.store().read(); });
    EXPECT_NE(said.find(sentence), std::string::npos) << said;
    EXPECT_TRUE(said.starts_with("127.0.0.1:")) << said;
  }
  // An answer that is none is no success.
  OneKey server({}, "+OK\r\n");
  EXPECT_FALSE(server.store().replace(layout_of(1), layout_of(2)));
}

TEST(LayoutStore, RefusesWhatIsNoLayout) {
  std::string damaged = encode(layout_of(1));
  damaged[30] ^= 1;
  for (const std::string& value : {std::string("hello"), std::string(), damaged}) {
    OneKey server(value);
    try {
      server.store().read();
      ADD_FAILURE() << value;
    } catch (const CorruptLayout& error) {
      EXPECT_NE(std::string(error.what()).find("{clicks}:layout:1: this is not a layout"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(LayoutStore, KeysCarryTheFilterAndTheVersion) {
  EXPECT_EQ(slice_key("clicks", layout_of(5), 0), "{clicks:0:0}:filter:1:abcdef01.1");
  EXPECT_EQ(slice_key("clicks", layout_of(5), 1), "{clicks:1:7}:filter:1:abcdef01.5");
  EXPECT_EQ(slot_of(slice_key("clicks", layout_of(5), 1)),
            slot_of(moving_key(slice_key("clicks", layout_of(5), 1))));
  EXPECT_EQ(tag_in_turn("clicks", 3, turn_of("clicks", 3, 12)), tag_of("clicks", 3, 12));
}

}  // namespace
}  // namespace sluice::redis
