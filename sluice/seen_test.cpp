#include "sluice/seen.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr Seen::Time kStart{std::chrono::nanoseconds(1'700'000'000'000'000'000)};

std::vector<std::string> texts(const char* prefix, std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(prefix + std::to_string(i));
  return all;
}

TEST(Seen, LetsEachKeyThroughOnce) {
  for (const Seen::Options& options :
       {Seen::Options{}, Seen::Options{.keys = 1000}, Seen::Options{.window = 10min},
        Seen::Options{.window = 1000}, Seen::Options{.window = "1h", .refresh = true},
        Seen::Options{.memory = 32 << 20}, Seen::Options{.untrusted_keys = true},
        Seen::Options{.window = 5000, .filter = "apbf"}, Seen::Options{.filter = "exact"}}) {
    Seen seen(options);
    EXPECT_FALSE(seen.contains("ann"));
    EXPECT_TRUE(seen.first("ann"));
    EXPECT_TRUE(seen.first("bob"));
    EXPECT_FALSE(seen.first("ann"));
    EXPECT_TRUE(seen.contains("bob"));
    EXPECT_EQ(seen.stats().keys, 2u);
    EXPECT_EQ(seen.plan() == nullptr, !options.filter.empty());
    seen.clear();
    EXPECT_TRUE(seen.first("ann"));
  }
}

TEST(Seen, CanBeMadeOfNothing) {
  Seen braces({});
  Seen none;
  Seen empty{};
  for (Seen* seen : {&braces, &none, &empty}) {
    EXPECT_TRUE(seen->first("a"));
    EXPECT_FALSE(seen->first("a"));
    EXPECT_EQ(seen->plan()->request.window, std::nullopt);
  }
}

TEST(Seen, SpansOfOtherLengthsAreRefused) {
  for (const Seen::Options& options : {Seen::Options{}, Seen::Options{.window = 10min}}) {
    Seen seen(options);
    const std::vector<std::string_view> keys{"a", "b", "c"};
    const std::vector<Seen::Time> times(3, kStart);
    std::vector<Verdict> verdicts(3);
    EXPECT_THROW((void)seen.observe(keys, std::span(verdicts).first(2)), BadParameters);
    EXPECT_THROW((void)seen.observe(keys, times, std::span(verdicts).first(2)), BadParameters);
    EXPECT_THROW((void)seen.observe(keys, std::span(times).first(2), verdicts), BadParameters);
    EXPECT_THROW((void)seen.filter().observe(std::vector<Digest>(3), std::span(verdicts).first(2)),
                 BadParameters);
    EXPECT_EQ(seen.stats().keys, 0u);
    EXPECT_EQ(seen.observe(keys, times, verdicts), 3u);
  }
}

TEST(Seen, SaysWhenItErrsMoreThanItShould) {
  const auto keys = texts("k", 5000);
  for (const char* filter :
       {"bloom", "bloom,layout=classic", "counting", "sharded,of=bloom,shards=4"}) {
    Seen seen({.keys = 100, .fpr = 1e-3, .filter = filter});
    for (std::size_t i = 0; i < 50; ++i) (void)seen.first(keys[i]);
    EXPECT_FALSE(seen.stats().over_target) << filter;
    for (const std::string& key : keys) (void)seen.first(key);
    EXPECT_GT(seen.stats().predicted_fpr, seen.stats().target_fpr) << filter;
    EXPECT_TRUE(seen.stats().over_target) << filter;
  }
}

TEST(Seen, TheWindowRunsByTheTimesThatAreGiven) {
  Seen seen({.window = 10min});
  EXPECT_TRUE(seen.first("ann", kStart));
  EXPECT_FALSE(seen.first("ann", kStart + 9min));
  EXPECT_TRUE(seen.contains("ann", kStart + 9min));
  EXPECT_FALSE(seen.contains("ann", kStart + 10min));
  EXPECT_TRUE(seen.first("ann", kStart + 10min));
  EXPECT_FALSE(seen.first("ann", kStart + 11min));
  EXPECT_TRUE(seen.first("ann", kStart)) << "late: let through, and not remembered";
}

TEST(Seen, ByKeysTheLastManyCount) {
  Seen seen({.window = 2});
  EXPECT_TRUE(seen.first("a"));
  EXPECT_TRUE(seen.first("b"));
  EXPECT_FALSE(seen.first("a"));
  EXPECT_TRUE(seen.first("c"));
  EXPECT_TRUE(seen.first("a"));
}

TEST(Seen, ManyAtOnceAreJudgedAsOneByOne) {
  const auto keys = texts("key", 3000);
  std::vector<std::string_view> views;
  for (std::size_t i = 0; i < 5000; ++i) views.push_back(keys[i * 7919 % (i < 2500 ? 900 : 3000)]);
  for (const Seen::Options& options :
       {Seen::Options{.seed = 1}, Seen::Options{.window = 10min, .seed = 1},
        Seen::Options{.window = 700, .seed = 1}}) {
    Seen one(options), many(options);
    std::vector<Verdict> verdicts(views.size());
    ASSERT_EQ(many.observe(views, verdicts), views.size());
    for (std::size_t i = 0; i < views.size(); ++i)
      ASSERT_EQ(one.first(views[i]), verdicts[i] == Verdict::distinct) << i;
    // Times of their own, far apart.
    std::vector<Seen::Time> times;
    for (std::size_t i = 0; i < views.size(); ++i) times.push_back(kStart + i * 1s);
    Seen apart(options), together(options);
    ASSERT_EQ(together.observe(views, times, verdicts), views.size());
    for (std::size_t i = 0; i < views.size(); ++i)
      ASSERT_EQ(apart.first(views[i], times[i]), verdicts[i] == Verdict::distinct) << i;
    EXPECT_EQ(apart.save(), together.save());
  }
}

TEST(Seen, GoesOnFromBytesFilesAndClones) {
  for (const std::size_t count : {10u, 5000u})
    for (const Seen::Options& options :
         {Seen::Options{}, Seen::Options{.window = 100'000}, Seen::Options{.window = 10min}}) {
      Seen seen(options);
      const auto keys = texts("k", count);
      for (const std::string& key : keys) ASSERT_TRUE(seen.first(key, kStart));
      const auto file = std::filesystem::path(testing::TempDir()) / "seen_test.sluice";
      seen.save(file);
      std::vector<Seen> others;
      others.push_back(Seen::load(seen.save()));
      others.push_back(Seen::load(file));
      others.push_back(seen.clone());
      for (Seen& other : others) {
        EXPECT_EQ(other.save(), seen.save());
        for (const std::string& key : keys) ASSERT_FALSE(other.first(key, kStart));
        EXPECT_TRUE(other.first("new", kStart));
        EXPECT_FALSE(seen.contains("new", kStart));
      }
      std::filesystem::remove(file);
    }
}

TEST(Seen, TakesKeysBackWhereItCan) {
  Seen seen({.window = 10min});
  EXPECT_TRUE(seen.first("a"));
  EXPECT_TRUE(seen.forget("a"));
  EXPECT_FALSE(seen.forget("a"));
  EXPECT_TRUE(seen.first("a"));
  Seen fixed({.keys = 1000});
  EXPECT_THROW(fixed.forget("a"), BadParameters);
}

TEST(Seen, ErrorsNameTheOption) {
  const auto error_of = [](const Seen::Options& options) -> std::string {
    try {
      Seen seen(options);
    } catch (const BadParameters& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_NE(error_of({.fpr = 2.0}).find("`fpr`"), std::string::npos);
  EXPECT_NE(error_of({.rate = 5.0}).find("`rate`"), std::string::npos);
  EXPECT_NE(error_of({.window = 0}), "none");
  EXPECT_NE(error_of({.window = -5s}), "none");
  EXPECT_NE(error_of({.window = 10, .filter = "no-such"}).find("no-such"), std::string::npos);
  try {
    Seen seen({.window = "ten"});
    FAIL();
  } catch (const BadParameters& error) {
    EXPECT_NE(std::string(error.what()).find("`window`"), std::string::npos);
  }
}

// One window per user: bytes by the host's own count, with the object that holds the secret.
TEST(Seen, AMillionUsersTakeLittleEach) {
  const std::size_t users = testing_support::count_of<std::size_t>(5'000, 1'000'000);
  const auto keys = texts("ad-", 10);
  HostMemory memory(malloc_calls());
  {
    std::vector<Seen> all;
    all.reserve(users);
    std::uint64_t encoded = 0;
    for (std::size_t user = 0; user < users; ++user) {
      Seen& seen = all.emplace_back(
          Seen::Options{.window = 10min, .fpr = 1e-6, .untrusted_keys = true, .resource = &memory});
      for (const std::string& key : keys) ASSERT_TRUE(seen.first(key));
      if (user % 1000 == 0) encoded = std::max<std::uint64_t>(encoded, seen.save().size());
    }
    EXPECT_LE(memory.taken() + users * sizeof(Seen), users * 450);
    EXPECT_LE(encoded, 450u);
    for (std::size_t user = 0; user < users; user += 97) {
      EXPECT_FALSE(all[user].first("ad-3"));
      EXPECT_TRUE(all[user].first("ad-10"));
    }
  }
  EXPECT_EQ(memory.taken(), 0u);
}

}  // namespace
}  // namespace sluice
