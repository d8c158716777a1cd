#include "sluice/seen.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "connectors/files/state_file.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
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
  // The filter of a window is named, not the window.
  Seen named({.window = 10min, .filter = "apbbf"});
  try {
    named.forget("a");
    ADD_FAILURE() << "it was taken back";
  } catch (const BadParameters& error) {
    EXPECT_EQ(std::string(error.what()).find("filter 'apbbf' cannot"), 0u) << error.what();
  }
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

TEST(Seen, BelievesTheTimesThatItIsGiven) {
  Seen seen({.window = 10min});
  std::size_t through = 0;
  for (int i = 0; i < 100; ++i) {
    (void)seen.first("n" + std::to_string(i), kStart + i * 1s);
    through += seen.first("x", kStart + 24h);
  }
  EXPECT_EQ(through, 1u);
  // Now and then a record, as in a window of one user, and one that is late.
  for (std::size_t keys : {0u, 2000u}) {
    Seen sparse({.window = 10min});
    for (const std::string& key : texts("fill", keys)) (void)sparse.first(key, kStart);
    for (int i = 1; i < 50; ++i) {
      const Seen::Time time = kStart + i * 25min;
      EXPECT_TRUE(sparse.first("k", time)) << i;
      EXPECT_TRUE(sparse.first("late", time - 15min)) << i;
      EXPECT_FALSE(sparse.first("k", time + 1s)) << i;
    }
    EXPECT_EQ(sparse.stats().disbelieved, 0u);
  }
}

TEST(Seen, WithALimitOneWildTimeIsNotBelieved) {
  Seen seen({.window = 10min, .max_ahead = 10min});
  EXPECT_TRUE(seen.first("a", kStart));
  EXPECT_TRUE(seen.first("b", kStart + 1s));
  EXPECT_TRUE(seen.first("wild", kStart + 24h));
  EXPECT_FALSE(seen.first("a", kStart + 2s));
  EXPECT_EQ(seen.stats().disbelieved, 1u);
}

// Late, ahead, believed or not; in a list and in a table.
TEST(Seen, ContainsIsWhatFirstWouldNotLetThrough) {
  const auto keys = texts("k", 40);
  for (const Seen::Options& options :
       {Seen::Options{.window = 10min, .seed = 1},
        Seen::Options{.window = 10min, .max_ahead = 10min, .seed = 1},
        Seen::Options{.window = 10min, .refresh = true, .max_ahead = 3min, .seed = 1},
        Seen::Options{.window = "hour", .seed = 1},
        Seen::Options{.window = "hour", .max_ahead = 1h, .seed = 1},
        Seen::Options{.window = 20, .seed = 1}, Seen::Options{.seed = 1},
        Seen::Options{.window = 10min, .max_ahead = 10min, .filter = "exact", .seed = 1}})
    for (const std::size_t fill : {0u, 3000u}) {
      Seen seen(options);
      for (const std::string& key : texts("fill", fill)) (void)seen.first(key, kStart);
      SplitMix64 random(7);
      Seen::Time time = kStart;
      std::size_t repeats = 0;
      for (int i = 0; i < 1000; ++i) {
        const std::uint64_t draw = random.next();
        Seen::Time when = time;
        if (draw % 16 == 0)
          when += std::chrono::minutes(draw / 16 % 90);
        else if (draw % 16 == 1)
          when -= std::chrono::minutes(draw / 16 % 30);
        else
          time = when += std::chrono::seconds(draw / 16 % 20);
        if (draw % 64 == 2) time += 13min;
        const std::string& key = keys[random.next() % keys.size()];
        const bool contained = seen.contains(key, when);
        ASSERT_EQ(contained, !seen.first(key, when)) << i << " " << fill;
        repeats += contained;
      }
      EXPECT_GT(repeats, 5u);
    }
}

TEST(Seen, DurationsThatAreTooLongAreRefusedAsSuch) {
  using namespace std::chrono;
  const auto error_of = [](const auto& length) -> std::string {
    try {
      Seen seen({.window = length});
    } catch (const BadParameters& error) {
      return error.what();
    }
    return "none";
  };
  const std::string too_long = "`window` is too long: at most 73 years";
  EXPECT_EQ(error_of(days(213504)), too_long);
  EXPECT_EQ(error_of(years(80)), too_long);
  EXPECT_EQ(error_of(years(585)), too_long);
  EXPECT_EQ(error_of(years(1000)), too_long);
  EXPECT_EQ(error_of(hours::max()), too_long);
  EXPECT_EQ(error_of(duration<double>(1e300)), too_long);
  EXPECT_EQ(error_of(std::chrono::nanoseconds::max()), too_long);
  EXPECT_EQ(error_of(duration<double>(std::numeric_limits<double>::quiet_NaN())),
            "`window` is not a number");
  EXPECT_EQ(error_of(-5s), "`window` must be longer than nothing");
  EXPECT_EQ(error_of(hours::min()), "`window` must be longer than nothing");
  EXPECT_EQ(error_of(0s), "`window` must be longer than nothing");
  EXPECT_EQ(error_of(0), "`window` must be longer than nothing");
  EXPECT_EQ(error_of(years(70)), "none");
  EXPECT_EQ(error_of(duration<double>(0.5)), "none");
  EXPECT_EQ(error_of(std::string("10m")), "none");
  static_assert(!std::is_constructible_v<WindowLength, char>);
  static_assert(!std::is_constructible_v<WindowLength, bool>);
}

TEST(Seen, WhatIsNotAFileIsAnErrorOfTheFile) {
  const std::filesystem::path directory = testing::TempDir();
  const auto number_of = [](const auto& call) {
    try {
      call();
    } catch (const IoError& error) {
      return error.error_number();
    }
    return 0;
  };
  EXPECT_EQ(number_of([&] { (void)Seen::load(directory / "no_such"); }), ENOENT);
  EXPECT_EQ(number_of([&] { (void)Seen::load(directory); }), EISDIR);
  EXPECT_EQ(number_of([&] { (void)Seen::load_if_there(directory); }), EISDIR);
  EXPECT_EQ(number_of([&] { Seen().save(directory); }), EISDIR);
  EXPECT_EQ(number_of([&] { Seen().save(std::filesystem::path()); }), EINVAL);
  EXPECT_EQ(number_of([&] { (void)Seen::load(std::filesystem::path()); }), ENOENT);
  EXPECT_FALSE(Seen::load_if_there(directory / "no_such").has_value());
  const auto file = directory / "seen_if_there.sluice";
  Seen().save(file);
  EXPECT_TRUE(Seen::load_if_there(file).has_value());
  std::filesystem::remove(file);
}

// The command's labels say how records were cut into keys: without them it refuses the file.
TEST(Seen, KeepsTheLabelsOfAStateThatItLoaded) {
  const Labels labels = {{"records", "csv"}, {"key", "id"}, {"key", "at"}};
  const Seen made({.keys = 1000});
  const auto file = std::filesystem::path(testing::TempDir()) / "seen_labels.sluice";
  StateFile(file).save(made.hasher(), made.filter(), labels);
  Seen seen = Seen::load(file);
  EXPECT_EQ(seen.plan(), nullptr);
  EXPECT_TRUE(seen.first("a"));
  seen.save(file);
  Seen moved = std::move(seen);
  std::vector<Seen> others;
  others.push_back(Seen::load(file));
  others.push_back(Seen::load(moved.save()));
  others.push_back(moved.clone());
  for (const Seen& other : others) {
    EXPECT_EQ(other.plan(), nullptr);
    EXPECT_TRUE(other.contains("a"));
    other.save(file);
    EXPECT_EQ(load_snapshot_file(file).labels, labels);
  }
  made.save(file);
  EXPECT_TRUE(load_snapshot_file(file).labels.empty());
  // Or others are given.
  made.save(file, labels);
  EXPECT_EQ(Seen::load(file).labels(), labels);
  EXPECT_EQ(Seen::load(made.save(labels)).labels(), labels);
  EXPECT_TRUE(made.labels().empty());
  std::filesystem::remove(file);
  std::filesystem::remove(file.string() + ".previous");
}

TEST(Seen, ALockThatIsHeldIsNamed) {
  const auto file = std::filesystem::path(testing::TempDir()) / "seen_held.sluice";
  for (const bool there : {false, true}) {
    if (there) Seen().save(file);
    const StateFile held(file);
    try {
      Seen().save(file);
      FAIL();
    } catch (const IoError& error) {
      EXPECT_EQ(error.error_number(), EBUSY);
      EXPECT_NE(std::string(error.what()).find("seen_held.sluice.lock"), std::string::npos)
          << error.what();
    }
  }
  std::filesystem::remove(file);
}

TEST(Seen, MergeSaysWhatWouldHelp) {
  const auto error_of = [](Seen one, const Seen& other) -> std::string {
    try {
      one.merge(other);
    } catch (const BadParameters& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(error_of(Seen({.window = 10}), Seen({.window = 10})).find("filters that age"), 0u)
      << "and no advice that ends there as well";
  EXPECT_EQ(error_of(Seen({.keys = 10}), Seen({.window = 10})).find("filters of two kinds"), 0u);
  const Seen::Options seeded{.keys = 1000, .seed = 1};
  Seen::Options keyed = seeded;
  keyed.untrusted_keys = true;
  EXPECT_NE(error_of(Seen(seeded), Seen(keyed)).find("`untrusted_keys` for both"),
            std::string::npos);
  EXPECT_NE(error_of(Seen({.keys = 10}), Seen({.keys = 10})).find("`seed`"), std::string::npos);
}

TEST(Seen, MergesOnlyWhatHashesAlike) {
  const Seen::Options options{.keys = 1000, .seed = 5};
  Seen one(options), other(options), stranger({.keys = 1000, .seed = 6});
  EXPECT_TRUE(other.first("a"));
  one.merge(other);
  EXPECT_FALSE(one.first("a"));
  EXPECT_THROW(one.merge(stranger), BadParameters);
  EXPECT_THROW(Seen({.window = 10, .seed = 1}).merge(Seen({.window = 10, .seed = 1})),
               BadParameters);
}

TEST(Seen, MemoryIsALimit) {
  for (const bool saved : {false, true}) {
    constexpr std::uint64_t kMemory = 1 << 20;
    Seen seen({.window = 10min, .rate = 100.0, .memory = kMemory, .seed = 3});
    const auto keys = texts("k", 300'000);
    std::size_t judged = 0;
    for (; judged < keys.size(); ++judged) {
      try {
        (void)seen.first(keys[judged], kStart + judged * 1ms);
      } catch (const NoMemory& error) {
        EXPECT_NE(std::string(error.what()).find("`memory`"), std::string::npos);
        break;
      }
      if (judged % 1000 == 0) {
        ASSERT_LE(seen.bytes(), kMemory);
      }
    }
    ASSERT_LT(judged, keys.size());
    EXPECT_GT(judged, 60'000u);
    EXPECT_LE(seen.bytes(), kMemory);
    if (saved) seen = Seen::load(seen.save());
    // It is neither judged nor remembered; what was, is.
    const Seen::Time end = kStart + judged * 1ms;
    const std::vector<std::string_view> two{keys[0], keys[judged]};
    std::vector<Verdict> verdicts(2);
    EXPECT_EQ(seen.observe(two, std::vector<Seen::Time>(2, end), verdicts), 1u);
    EXPECT_EQ(verdicts[0], Verdict::duplicate);
    for (std::size_t i = 0; i < judged; i += 997) ASSERT_TRUE(seen.contains(keys[i], end));
    // And there is room again when they have left.
    for (std::size_t i = 0; i < 50'000; ++i)
      (void)seen.first(keys[judged + i], end + 11min + i * 10ms);
    EXPECT_LE(seen.bytes(), kMemory);
  }
}

TEST(Seen, RefusesWhatDoesNotGoTogether) {
  const auto error_of = [](const Seen::Options& options) -> std::string {
    try {
      Seen seen(options);
    } catch (const BadParameters& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(error_of({.refresh = true}), "`refresh` needs a `window`: give one");
  EXPECT_EQ(error_of({.keys = static_cast<std::uint64_t>(-1)}), "`keys` must be 1 to 2^44");
  EXPECT_EQ(error_of({.keys = 0, .filter = "bloom"}),
            "`keys` 0 leaves nothing to do: give 1 or more");
  EXPECT_EQ(error_of({.keys = 0}), "`keys` 0 leaves nothing to do: give 1 or more");
  EXPECT_EQ(error_of({.window = 1000, .keys = 5}).find("`keys` cannot be used with"), 0u);
  EXPECT_EQ(error_of({.memory = 0}), "`memory` 0 is too little: give 1MiB or more");
  EXPECT_EQ(error_of({.keys = 10, .memory = 1}).find("`expect`"), std::string::npos);
  EXPECT_NE(error_of({.filter = "cohort"}).find("`window`"), std::string::npos);
  EXPECT_EQ(error_of({.window = 100, .filter = "exact"}), "none");
  EXPECT_EQ(error_of({.window = 10min, .max_ahead = 0s}), "`max_ahead` must be more than nothing");
  for (const Seen::Options& options :
       {Seen::Options{.max_ahead = 1s}, Seen::Options{.window = 100, .max_ahead = 1s},
        Seen::Options{.window = 100, .max_ahead = 1s, .filter = "cohort"}})
    EXPECT_EQ(error_of(options), "`max_ahead` needs a `window` of time: give one");
  const std::string alone = error_of({.window = 10min, .memory = 8 << 20});
  EXPECT_NE(alone.find("needs `keys`"), std::string::npos) << alone;
  EXPECT_NE(alone.find("or `rate`"), std::string::npos) << alone;
  EXPECT_EQ(error_of({.window = 10min, .keys = 1000, .memory = 8 << 20}), "none");
  EXPECT_THROW(WindowLength(static_cast<const char*>(nullptr)), BadParameters);
  // Nobody is to lose one key in twelve without having said so.
  const std::string much = error_of({.keys = 100'000, .memory = 1 << 16});
  EXPECT_NE(much.find("more than 1 % of what is new would be lost"), std::string::npos) << much;
  EXPECT_NE(much.find("or `keys` "), std::string::npos) << much;
  EXPECT_NE(much.find("`fpr` 0.08"), std::string::npos) << much;
  EXPECT_EQ(error_of({.keys = 100'000, .fpr = 0.1, .memory = 1 << 16}), "none");
}

// The keys that were announced fit in, at whatever pace they come.
TEST(Seen, TheMemoryOfATimeWindowIsEnoughForABurst) {
  for (const auto& [keys, memory] : {std::pair{3'000u, 1u << 14}, {30'000u, 150u << 10}}) {
    Seen seen({.window = 10min, .keys = keys, .memory = memory, .seed = 5});
    const Seen::Time now(1'700'000'000s);
    for (unsigned i = 0; i < keys; ++i) {
      ASSERT_NO_THROW(seen.first(std::to_string(i), now)) << i << " of " << keys;
      ASSERT_LE(seen.bytes(), memory);
    }
  }
}

// Of pages that can be made read-only.
class PageMemory final : public MemoryResource {
 public:
  PageMemory()
      : base_(static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
  ~PageMemory() override { munmap(base_, kBytes); }
  void allow(int access) { ASSERT_EQ(mprotect(base_, kBytes, access), 0); }

  std::size_t usable(const void*, std::size_t bytes, std::size_t) const noexcept override {
    return bytes;
  }
  std::size_t largest_block() const noexcept override { return kBytes; }

 private:
  static constexpr std::size_t kBytes = std::size_t{64} << 20;
  void* get(std::size_t bytes, std::size_t alignment) noexcept override {
    used_ = (used_ + alignment - 1) / alignment * alignment;
    if (bytes > kBytes - used_) return nullptr;
    return base_ + std::exchange(used_, used_ + bytes);
  }
  void put(void*, std::size_t, std::size_t) noexcept override {}

  std::byte* base_;
  std::size_t used_ = 0;
};

// Naming a filter is no reason to make it for another error, or without its room for chance.
TEST(Seen, AFilterThatIsNamedIsMadeAsIfItWereChosen) {
  const auto stats = [](const Seen::Options& options) { return Seen(options).stats(); };
  EXPECT_NEAR(stats({.window = 4000, .filter = "cohort,fpr=0.02"}).target_fpr, 0.02, 0.002);
  EXPECT_EQ(stats({.window = 4000, .filter = "cohort,fpr=0.02"}).bytes,
            stats({.window = 4000, .fpr = 0.02, .filter = "cohort"}).bytes);
  const PlanRequest request{.window = WindowLength(10s).spec(), .rate = 200.0, .fpr = 0.01};
  EXPECT_EQ(stats({.window = 10s, .rate = 200.0, .fpr = 0.01, .filter = "apbf"}).capacity,
            plan_named("apbf", request).holds);
  EXPECT_GT(plan_named("apbf", request).holds, 3000u);
  EXPECT_THROW(Seen({.keys = 20, .filter = "bloom,keys=10"}), BadParameters);
}

// What is promised of threads: a write of a const call would end the test.
TEST(Seen, ConstCallsWriteNothing) {
  const auto keys = texts("k", 3000);
  for (const Seen::Options& options :
       {Seen::Options{}, Seen::Options{.keys = 2000}, Seen::Options{.memory = 1 << 20},
        Seen::Options{.window = 1000}, Seen::Options{.window = 10min},
        Seen::Options{.window = 10min, .refresh = true, .max_ahead = 5min},
        Seen::Options{.window = 10}, Seen::Options{.filter = "exact"},
        Seen::Options{.keys = 2000, .filter = "counting"},
        Seen::Options{.keys = 300, .filter = "dynamic"},
        Seen::Options{.filter = "bloom,bytes=4MiB"},
        Seen::Options{.keys = 2000, .filter = "sharded,of=bloom,shards=3"},
        Seen::Options{.window = 1000, .filter = "apbf"},
        Seen::Options{.window = 10min, .keys = 2000, .filter = "apbbf"},
        Seen::Options{.window = 1000, .filter = "timing"},
        Seen::Options{.window = 1000, .filter = "timer"},
        Seen::Options{.window = 10min, .filter = "exact"}}) {
    PageMemory memory;
    Seen::Options given = options;
    given.resource = &memory;
    Seen seen(given);
    for (std::size_t i = 0; i < keys.size(); ++i) (void)seen.first(keys[i], kStart + i * 300ms);
    const auto before = seen.save();
    memory.allow(PROT_READ);
    std::size_t contained = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      contained += seen.contains(keys[i], kStart + 15min + i * 100ms);
      (void)seen.contains(keys[i]);
    }
    EXPECT_GT(contained, 0u) << seen.filter().settings().text();
    (void)seen.stats();
    EXPECT_EQ(seen.save(), before);
    memory.allow(PROT_READ | PROT_WRITE);
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
