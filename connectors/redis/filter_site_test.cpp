// What needs no real server; the rest is in tests/redis/sites_filter_test.cpp.
#include "connectors/redis/filter_site.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <numeric>

#include "connectors/redis/fake_server_test_util.hpp"
#include "sluice/base/error.hpp"
#include "tests/support/digests.hpp"

namespace sluice::redis {
namespace {

using cluster::Answer;
using cluster::FilterVerb;
using sluice::testing_support::digest_of;
using testing_support::FakeServer;
using Words = std::vector<std::string>;

const std::string kNoKey = "-ERR there is no such key: make it with SLUICE.RESERVE\r\n";

// Answers by the name of the command, each with what comes next in its list; the last one stays.
// Keeps what it heard.
class Module {
 public:
  using Says = std::map<std::string, std::vector<std::string>>;
  explicit Module(Says says)
      : says_(std::move(says)), server_([this](const Words& words) { return answer(words); }) {}

  ModuleSite site(const Words& options = {"WINDOW", "10m"}) {
    return ModuleSite(
        std::make_shared<Client>(
            Address{
                .cluster = false, .user = "", .endpoints = {server_.endpoint()}, .name = "test"},
            Settings{.timeout = std::chrono::seconds(30)}),
        {.name = "test", .options = options});
  }
  std::vector<Words> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  // The names of the commands, in their order.
  std::string order() {
    std::string names;
    for (const Words& words : heard()) names += words[0].substr(words[0].find('.') + 1) + " ";
    return names;
  }

 private:
  std::string answer(const Words& words) {
    const std::lock_guard lock(mutex_);
    heard_.push_back(words);
    const auto found = says_.find(words[0]);
    if (found == says_.end()) return "-ERR unknown command '" + words[0] + "'\r\n";
    std::vector<std::string>& list = found->second;
    const std::string first = list.front();
    if (list.size() > 1) list.erase(list.begin());
    return first;
  }

  std::mutex mutex_;
  Says says_;
  std::vector<Words> heard_;
  FakeServer server_;
};

std::string ones(std::size_t count) {
  std::string text = fmt::format("*{}\r\n", count);
  for (std::size_t i = 0; i < count; ++i) text += ":1\r\n";
  return text;
}

std::vector<Digest> keys(std::size_t count) {
  std::vector<Digest> digests;
  for (std::size_t i = 0; i < count; ++i) digests.push_back(digest_of(i));
  return digests;
}

TEST(ModuleSite, CutsRequestsAndAsksForTheIncarnationLast) {
  Module module(
      {{"SLUICE.INSERT", {ones(512), ones(512), ones(276)}}, {"SLUICE.INFO", {":77\r\n"}}});
  ModuleSite site = module.site();
  const auto digests = keys(1300);
  std::vector<Answer> answers(1300, Answer::none);
  const cluster::Reply reply = site.ask({FilterVerb::observe, digests, {}}, answers);
  EXPECT_TRUE(reply.answered()) << site.problem();
  EXPECT_EQ(reply.incarnation, 77u);
  EXPECT_EQ(std::ranges::count(answers, Answer::distinct), 1300);
  EXPECT_EQ(module.order(), "INSERT INSERT INSERT INFO ");
  const std::vector<Words> heard = module.heard();
  EXPECT_EQ(Words(heard[0].begin(), heard[0].begin() + 4),
            (Words{"SLUICE.INSERT", site.key(), "NOCREATE", "ITEMS"}));
  EXPECT_EQ(heard[2].size(), 4u + 276);
  EXPECT_EQ(heard[3], (Words{"SLUICE.INFO", site.key(), "made_ms"}));
  // lo, then hi, each little-endian: changing this takes another key.
  EXPECT_TRUE(site.key().ends_with("}:filter:1")) << site.key();
  Module other({{"SLUICE.MEXISTS", {ones(1)}}, {"SLUICE.INFO", {":77\r\n"}}});
  ModuleSite asked = other.site();
  const Digest digest{0x0807060504030201, 0x100f0e0d0c0b0a09};
  EXPECT_TRUE(asked.ask({FilterVerb::may_contain, {&digest, 1}, {}}, std::span(answers).first(1))
                  .answered());
  EXPECT_EQ(answers[0], Answer::duplicate);
  std::string bytes(16, '\0');
  std::iota(bytes.begin(), bytes.end(), '\1');
  EXPECT_EQ(other.heard()[0], (Words{"SLUICE.MEXISTS", asked.key(), bytes}));
}

TEST(ModuleSite, KeysWithOneTimeShareACommand) {
  Module module({{"SLUICE.INSERT", {ones(3), ones(1), ones(2)}},
                 {"SLUICE.EXISTS", {":1\r\n", ":0\r\n"}},
                 {"SLUICE.INFO", {":77\r\n"}}});
  ModuleSite site = module.site();
  const auto digests = keys(6);
  const std::vector<std::int64_t> times = {1000, 1000, 1000, -5, 1000, 1000};
  std::vector<Answer> answers(6);
  EXPECT_TRUE(site.ask({FilterVerb::insert, digests, times}, answers).answered());
  EXPECT_TRUE(
      site.ask({FilterVerb::may_contain, std::span(digests).first(2), std::span(times).first(2)},
               std::span(answers).first(2))
          .answered());
  EXPECT_EQ(answers[0], Answer::duplicate);
  EXPECT_EQ(answers[1], Answer::distinct);
  EXPECT_EQ(module.order(), "INSERT INSERT INSERT INFO EXISTS EXISTS INFO ");
  const std::vector<Words> heard = module.heard();
  EXPECT_EQ(Words(heard[1].begin() + 2, heard[1].begin() + 6),
            (Words{"NOCREATE", "AT", "-5", "ITEMS"}));
  EXPECT_EQ(heard[1].size(), 7u);
  EXPECT_EQ(Words(heard[4].begin() + 3, heard[4].end()), (Words{"AT", "1000"}));
}

// Nothing was carried out: it is made, kept for good, and asked again.
TEST(ModuleSite, MakesAFilterThatIsMissing) {
  for (const char* reserved : {"+OK\r\n", "-ERR the key exists already: DEL it first\r\n"})
    for (const FilterVerb verb : {FilterVerb::observe, FilterVerb::may_contain}) {
      // MEXISTS of a missing key answers 0: no verdict may come of it.
      Module module({{"SLUICE.INSERT", {kNoKey, ones(2)}},
                     {"SLUICE.MEXISTS", {"*2\r\n:0\r\n:0\r\n", ones(2)}},
                     {"SLUICE.RESERVE", {reserved}},
                     {"PERSIST", {":1\r\n"}},
                     {"SLUICE.INFO", {kNoKey, ":78\r\n"}}});
      ModuleSite site = module.site({"WINDOW", "10m", "FPR", "1e-9"});
      const auto digests = keys(2);
      std::vector<Answer> answers(2, Answer::none);
      const cluster::Reply reply = site.ask({verb, digests, {}}, answers);
      EXPECT_TRUE(reply.answered()) << site.problem();
      EXPECT_EQ(reply.incarnation, 78u);
      EXPECT_EQ(answers[1], verb == FilterVerb::observe ? Answer::distinct : Answer::duplicate);
      EXPECT_EQ(site.problem(), "");
      const std::vector<Words> heard = module.heard();
      ASSERT_EQ(heard.size(), 6u);
      EXPECT_EQ(heard[2], (Words{"SLUICE.RESERVE", site.key(), "WINDOW", "10m", "FPR", "1e-9"}));
      EXPECT_EQ(heard[3], (Words{"PERSIST", site.key()}));
    }
}

// What was remembered would be a duplicate of itself: nothing is asked twice.
TEST(ModuleSite, AFilterThatIsLostInTheMiddleOfARequestIsLate) {
  Module module({{"SLUICE.INSERT", {ones(512), kNoKey}}, {"SLUICE.INFO", {kNoKey}}});
  ModuleSite site = module.site();
  const auto digests = keys(600);
  std::vector<Answer> answers(600, Answer::duplicate);
  const cluster::Reply reply = site.ask({FilterVerb::observe, digests, {}}, answers);
  EXPECT_EQ(reply.outcome, Outcome::late);
  EXPECT_EQ(std::ranges::count(answers, Answer::duplicate), 600);
  EXPECT_EQ(module.order(), "INSERT INSERT INFO ");
  EXPECT_NE(site.problem().find("no such key"), std::string::npos) << site.problem();
  // Asking changes nothing, but a filter that stays away gives no verdict.
  Module away({{"SLUICE.MEXISTS", {"*2\r\n:0\r\n:0\r\n"}},
               {"SLUICE.RESERVE", {"-OOM no memory\r\n"}},
               {"PERSIST", {":0\r\n"}},
               {"SLUICE.INFO", {kNoKey}}});
  ModuleSite asked = away.site();
  EXPECT_FALSE(
      asked.ask({FilterVerb::may_contain, std::span(digests).first(2), {}}, answers).answered());
  EXPECT_EQ(answers[0], Answer::duplicate);
  EXPECT_NE(asked.problem().find("OOM no memory"), std::string::npos) << asked.problem();
}

TEST(ModuleSite, ItemsWithoutAVerdictAreNone) {
  Module module({{"SLUICE.INSERT", {"*4\r\n:1\r\n:2\r\n-OOM no memory\r\n:0\r\n"}},
                 {"SLUICE.MEXISTS", {"*4\r\n:1\r\n:2\r\n:0\r\n:1\r\n"}},
                 {"SLUICE.INFO", {":77\r\n"}}});
  ModuleSite site = module.site();
  const auto digests = keys(4);
  std::vector<Answer> answers(4);
  EXPECT_TRUE(site.ask({FilterVerb::observe, digests, {}}, answers).answered());
  EXPECT_EQ(answers,
            (std::vector{Answer::distinct, Answer::none, Answer::none, Answer::duplicate}));
  EXPECT_NE(site.problem().find("OOM no memory"), std::string::npos) << site.problem();
  EXPECT_TRUE(site.ask({FilterVerb::may_contain, digests, {}}, answers).answered());
  EXPECT_EQ(answers,
            (std::vector{Answer::duplicate, Answer::none, Answer::distinct, Answer::duplicate}));
  EXPECT_NE(site.problem().find("claimed"), std::string::npos) << site.problem();
}

// The others have their answers.
TEST(ModuleSite, ACommandThatIsRefusedHasNoVerdicts) {
  Module module({{"SLUICE.INSERT",
                  {ones(1), "-ERR AT 9 is a window or more ahead\r\n",
                   "-OOM command not allowed\r\n", ones(1)}},
                 {"SLUICE.INFO", {":77\r\n"}}});
  ModuleSite site = module.site();
  std::vector<Answer> answers(4);
  const std::vector<std::int64_t> times = {1, 9, 2, 3};
  EXPECT_TRUE(site.ask({FilterVerb::observe, keys(4), times}, answers).answered());
  EXPECT_EQ(answers,
            (std::vector{Answer::distinct, Answer::refused, Answer::none, Answer::distinct}));
  EXPECT_NE(site.problem().find("OOM"), std::string::npos) << site.problem();
}

TEST(ModuleSite, AnswersOfTheWrongShapeAreNone) {
  for (const std::string answer :
       {"+OK\r\n", "*0\r\n", "*1\r\n:1\r\n", "*3\r\n:1\r\n:1\r\n:1\r\n", "*2\r\n:1\r\n$1\r\n1\r\n",
        "*2\r\n:1\r\n:3\r\n", "*2\r\n:-1\r\n:1\r\n", "*2\r\n:1\r\n*0\r\n", "$-1\r\n", ":1\r\n"}) {
    Module module({{"SLUICE.INSERT", {answer}}, {"SLUICE.INFO", {":77\r\n"}}});
    ModuleSite site = module.site();
    std::vector<Answer> answers(2, Answer::none);
    EXPECT_EQ(site.ask({FilterVerb::observe, keys(2), {}}, answers).outcome, Outcome::late)
        << answer;
    EXPECT_EQ(answers[0], Answer::none);
  }
  for (const std::string made : {"+OK\r\n", "$2\r\n77\r\n", "$-1\r\n", "*0\r\n"}) {
    Module module({{"SLUICE.INSERT", {ones(2)}}, {"SLUICE.INFO", {made}}});
    ModuleSite site = module.site();
    std::vector<Answer> answers(2);
    EXPECT_FALSE(site.ask({FilterVerb::observe, keys(2), {}}, answers).answered()) << made;
  }
}

TEST(ModuleSite, AConnectionThatEndsLeavesItOpenWhatWasDone) {
  Module module({{"SLUICE.INSERT", {ones(512), FakeServer::kClose}}});
  ModuleSite site = module.site();
  std::vector<Answer> answers(600);
  EXPECT_EQ(site.ask({FilterVerb::observe, keys(600), {}}, answers).outcome, Outcome::late);
}

TEST(ModuleSite, AServerWithoutTheModuleIsNamedInOneSentence) {
  Module module(Module::Says{{"PERSIST", {":0\r\n"}}});
  ModuleSite site = module.site();
  std::vector<Answer> answers(2);
  EXPECT_EQ(site.ask({FilterVerb::observe, keys(2), {}}, answers).outcome, Outcome::failed);
  EXPECT_TRUE(site.problem().ends_with(
      ": this server has no filters: load the module, sluice.so, in its configuration"))
      << site.problem();
  EXPECT_TRUE(site.problem().starts_with("127.0.0.1:")) << site.problem();
}

TEST(ModuleSite, SaysWhatIsWrongAndNotThatAnotherWasFaster) {
  Module module({{"SLUICE.RESERVE", {"-ERR the key exists already: DEL it first\r\n"}},
                 {"PERSIST", {":0\r\n"}},
                 {"SLUICE.INFO", {"-NOPERM this user may not\r\n"}}});
  ModuleSite site = module.site();
  EXPECT_EQ(site.ask({}, {}).outcome, Outcome::failed);
  EXPECT_NE(site.problem().find("NOPERM"), std::string::npos) << site.problem();
}

TEST(ModuleSite, RefusesASiteThatIsNone) {
  FakeServer server([](const Words&) { return std::string(); });
  const auto client = std::make_shared<Client>(
      Address{.cluster = false, .user = "", .endpoints = {server.endpoint()}, .name = "test"},
      Settings{});
  EXPECT_THROW(ModuleSite(client, {.name = "x", .site = 2, .sites = 2}), BadParameters);
  EXPECT_THROW(ModuleSite(client, {.name = "x", .site = 0, .sites = 1u << 20}), BadParameters);
  EXPECT_EQ(module_sites(client, 3, {}).size(), 3u);
}

}  // namespace
}  // namespace sluice::redis
