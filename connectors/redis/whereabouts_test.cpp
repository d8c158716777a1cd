// Slices that move while they are asked: nothing is lost, and nothing is done twice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "connectors/redis/fake_server_test_util.hpp"
#include "connectors/redis/filter_site.hpp"
#include "tests/support/digests.hpp"

namespace sluice::redis {
namespace {

using cluster::Answer;
using cluster::FilterVerb;
using sluice::testing_support::digest_of;
using testing_support::FakeServer;
using Words = std::vector<std::string>;

// A module that holds exact filters, some of them by chance of another type.
class MiniModule {
 public:
  struct Filter {
    std::int64_t made_ms = 1;
    std::set<std::string> items = {};
    bool other_type = false;
  };

  MiniModule() : server_([this](const Words& words) { return answer(words); }) {}

  Endpoint endpoint() const { return server_.endpoint(); }
  // Its keys, while it answers nobody.
  using Keys = std::map<std::string, Filter>;
  template <class Work>
  auto with_keys(const Work& work) {
    const std::lock_guard lock(mutex_);
    return work(keys_);
  }
  // Called with the number of each command that adds, from 1, before it is carried out.
  void before_insert(std::function<void(unsigned, Keys&)> work) {
    const std::lock_guard lock(mutex_);
    before_insert_ = std::move(work);
  }
  // The names of commands since the last call.
  std::string order() {
    const std::lock_guard lock(mutex_);
    return std::exchange(order_, {});
  }

 private:
  std::string answer(const Words& words) {
    const std::lock_guard lock(mutex_);
    const std::string name = words[0].substr(words[0].find('.') + 1);
    order_ += name + " ";
    if (name == "INSERT") before_insert_(++inserts_, keys_);
    const auto found = keys_.find(words[1]);
    if (name == "RESERVE") {
      if (found != keys_.end()) return "-ERR the key exists already: DEL it first\r\n";
      keys_[words[1]].made_ms = 1000;
      return "+OK\r\n";
    }
    if (name == "PERSIST") return ":1\r\n";
    if (found != keys_.end() && found->second.other_type)
      return "-WRONGTYPE Operation against a key\r\n";
    const std::size_t first = name == "INSERT" ? 4 : 2;
    std::string text = fmt::format("*{}\r\n", words.size() - first);
    if (found == keys_.end() && name != "MEXISTS") return "-ERR there is no such key: make it\r\n";
    if (name == "INFO") return fmt::format(":{}\r\n", found->second.made_ms);
    for (std::size_t i = first; i < words.size(); ++i) {
      const bool added = name == "INSERT" && found->second.items.insert(words[i]).second;
      const bool known =
          name == "MEXISTS" && found != keys_.end() && found->second.items.contains(words[i]);
      text += added || known ? ":1\r\n" : ":0\r\n";
    }
    return text;
  }

  std::mutex mutex_;
  std::function<void(unsigned, Keys&)> before_insert_ = [](unsigned, Keys&) {};
  Keys keys_;
  std::string order_;
  unsigned inserts_ = 0;
  FakeServer server_;
};

// Says what the test wants; looking again calls it.
struct Told final : Whereabouts {
  const std::string& key(std::uint32_t) const override { return now; }
  std::string_view why(std::uint32_t) const override { return "it is on its way"; }
  bool look_again() override { return looks(++looked); }

  std::string now = "{a}:filter";
  unsigned looked = 0;
  std::function<bool(unsigned)> looks = [](unsigned) { return true; };
};

struct Place {
  Place() {
    module.with_keys([](auto& all) { all["{a}:filter"] = {}; });
    client = std::make_shared<Client>(
        Address{.cluster = false, .user = "", .endpoints = {module.endpoint()}, .name = "test"},
        Settings{.timeout = std::chrono::seconds(30)});
    site.emplace(client, ModuleSite::Place{
                             .name = "test", .options = {"WINDOW", "10m"}, .whereabouts = &told});
  }
  cluster::Reply ask(const std::vector<Digest>& digests, FilterVerb verb = FilterVerb::observe) {
    answers.assign(digests.size(), Answer::refused);
    return site->ask({.verb = verb, .digests = digests}, answers);
  }
  auto answered(Answer answer) const { return std::ranges::count(answers, answer); }

  MiniModule module;
  Told told;
  std::shared_ptr<Client> client;
  std::optional<ModuleSite> site;
  std::vector<Answer> answers;
};

std::vector<Digest> keys(std::uint64_t first, std::size_t count) {
  std::vector<Digest> digests;
  for (std::size_t i = 0; i < count; ++i) digests.push_back(digest_of(first + i));
  return digests;
}

TEST(Whereabouts, ASliceThatHasMovedIsAskedWhereItIs) {
  for (const bool marked : {true, false}) {
    Place place;
    EXPECT_TRUE(place.ask(keys(0, 100)).answered());
    place.module.with_keys([&](auto& all) {
      all["{b}:filter"] = all["{a}:filter"];
      all.erase("{a}:filter");
      if (marked) all["{a}:filter"].other_type = true;
    });
    place.told.looks = [&](unsigned) {
      place.told.now = "{b}:filter";
      return true;
    };
    place.module.order();
    EXPECT_TRUE(place.ask(keys(0, 200)).answered());
    EXPECT_EQ(place.answered(Answer::duplicate), 100);
    EXPECT_EQ(place.answered(Answer::distinct), 100);
    EXPECT_EQ(place.module.order(), "INSERT INFO INSERT INFO ");
    EXPECT_EQ(place.site->problem(), "");
    // Asking a key that is missing is no error, and no verdict comes of it either.
    place.told.now = "{a}:filter";
    EXPECT_TRUE(place.ask(keys(0, 300), FilterVerb::may_contain).answered());
    EXPECT_EQ(place.answered(Answer::duplicate), 200);
  }
}

// What was carried out before it went stays with it.
TEST(Whereabouts, ASliceMayMoveInTheMiddleOfARequest) {
  for (const unsigned when : {1u, 2u, 3u}) {
    Place place;
    EXPECT_TRUE(place.ask(keys(0, 650)).answered());
    constexpr unsigned kBefore = 2;
    place.module.before_insert([when](unsigned insert, MiniModule::Keys& all) {
      if (insert != kBefore + when) return;
      all["{b}:filter"] = all["{a}:filter"];
      all["{a}:filter"] = {.other_type = true};
    });
    place.told.looks = [&](unsigned) {
      place.told.now = "{b}:filter";
      return true;
    };
    EXPECT_TRUE(place.ask(keys(0, 1300)).answered());
    EXPECT_EQ(place.answered(Answer::duplicate), 650) << when;
    EXPECT_EQ(place.answered(Answer::distinct), 650) << when;
    EXPECT_EQ(place.module.with_keys([](auto& all) { return all["{b}:filter"].items.size(); }),
              1300u);
  }
}

TEST(Whereabouts, NobodyAsksASliceThatIsOnItsWay) {
  Place place;
  EXPECT_TRUE(place.ask(keys(0, 10)).answered());
  place.told.now.clear();
  place.module.order();
  EXPECT_EQ(place.ask(keys(0, 10)).outcome, Outcome::failed);
  EXPECT_EQ(place.site->problem(), "it is on its way");
  EXPECT_EQ(place.module.order(), "");
  place.told.now = "{a}:filter";
  EXPECT_TRUE(place.ask(keys(0, 10)).answered());
  EXPECT_EQ(place.answered(Answer::duplicate), 10);
}

// The first half has its verdicts, and the second can be asked for later.
TEST(Whereabouts, ASliceMayLeaveInTheMiddleOfARequest) {
  Place place;
  EXPECT_EQ(place.ask(keys(10'000, 1)).incarnation, 1u);
  place.module.before_insert([](unsigned insert, MiniModule::Keys& all) {
    if (insert == 3) all["{a}:filter"] = {.other_type = true};
  });
  place.told.looks = [&](unsigned) {
    place.told.now.clear();
    return true;
  };
  const cluster::Reply reply = place.ask(keys(0, 1300));
  EXPECT_TRUE(reply.answered());
  EXPECT_EQ(reply.incarnation, 1u);
  EXPECT_EQ(place.answered(Answer::distinct), 512);
  EXPECT_EQ(place.answered(Answer::none), 1300 - 512);
  EXPECT_EQ(place.answers[511], Answer::distinct);
}

// Its layout says that it is there: its contents were lost.
TEST(Whereabouts, ASliceThatIsLostIsMadeAgain) {
  Place place;
  EXPECT_EQ(place.ask(keys(0, 10)).incarnation, 1u);
  place.module.with_keys([](auto& all) { all.clear(); });
  place.module.order();
  EXPECT_EQ(place.ask(keys(0, 10)).incarnation, 1000u);
  EXPECT_EQ(place.answered(Answer::distinct), 10);
  EXPECT_EQ(place.module.order(), "INSERT INFO RESERVE PERSIST INSERT INFO ");
  // Before it is made, after that, and because it is another one.
  EXPECT_EQ(place.told.looked, 3u);
}

TEST(Whereabouts, NobodyMakesASliceWithoutKnowingItsLayout) {
  Place place;
  EXPECT_TRUE(place.ask(keys(0, 10)).answered());
  place.module.with_keys([](auto& all) { all.clear(); });
  place.module.order();
  place.told.looks = [](unsigned) { return false; };
  EXPECT_EQ(place.ask(keys(0, 10)).outcome, Outcome::failed);
  EXPECT_EQ(place.module.order(), "INSERT INFO ");
  EXPECT_NE(place.site->problem().find("no such key"), std::string::npos);
}

// The layout changes between the question and the making: what was made is left alone.
TEST(Whereabouts, WhatWasMadeTooLateIsNotUsed) {
  Place place;
  EXPECT_TRUE(place.ask(keys(0, 10)).answered());
  place.module.with_keys([](auto& all) {
    all["{b}:filter"] = all["{a}:filter"];
    all.erase("{a}:filter");
  });
  place.told.looks = [&](unsigned looked) {
    if (looked == 2) place.told.now = "{b}:filter";
    return true;
  };
  EXPECT_EQ(place.ask(keys(0, 20)).incarnation, 1u);
  EXPECT_EQ(place.answered(Answer::duplicate), 10);
  EXPECT_TRUE(place.module.with_keys([](auto& all) { return all["{a}:filter"].items.empty(); }));
}

// Another filter under the name: what it says counts only if the layout is still the same.
TEST(Whereabouts, AnotherOneUnderItsNameIsNotBelieved) {
  Place place;
  EXPECT_TRUE(place.ask(keys(0, 10)).answered());
  place.module.with_keys([](auto& all) {
    all["{b}:filter"] = all["{a}:filter"];
    all["{a}:filter"] = {.made_ms = 55};
  });
  place.told.looks = [&](unsigned) {
    place.told.now = "{b}:filter";
    return true;
  };
  EXPECT_EQ(place.ask(keys(0, 20)).incarnation, 1u);
  EXPECT_EQ(place.answered(Answer::duplicate), 10);
  EXPECT_EQ(place.answered(Answer::distinct), 10);
}

// A slice that is gone wherever one looks ends the request.
TEST(Whereabouts, FollowingEnds) {
  Place place;
  place.module.with_keys([](auto& all) { all.clear(); });
  place.told.looks = [&](unsigned looked) {
    place.told.now = fmt::format("{{a}}:filter:{}", looked);
    return true;
  };
  EXPECT_EQ(place.ask(keys(0, 10)).outcome, Outcome::failed);
  EXPECT_EQ(place.told.looked, 4u);
}

}  // namespace
}  // namespace sluice::redis
