// Ages of keys, against the times at which they were really written.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using testing_support::digest_of;

constexpr Nanoseconds kMs = 1'000'000;
constexpr Nanoseconds kStart = 1'700'000'000'123 * kMs;

struct Case {
  const char* filter;
  bool listed;
  bool exact_generation;  // never says less than the least age of the key's generation
};

class WindowAge : public testing::TestWithParam<Case> {
 protected:
  // `true_age`: of a key that the window must remember.
  void check(const Window& window, std::uint64_t key, Nanoseconds now, std::uint64_t true_age) {
    const auto age = window.age_of(digest_of(key), now);
    ASSERT_TRUE(age) << "key " << key;
    if (window.listed()) {
      EXPECT_EQ(*age, true_age);
      return;
    }
    EXPECT_LE(*age, true_age) << "key " << key;
    if (GetParam().exact_generation) {
      EXPECT_GT(*age + window.generation_size(), true_age) << "key " << key;
    }
  }
};

TEST_P(WindowAge, OfTimeIsTheLeastOfItsGeneration) {
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
    constexpr Nanoseconds kLong = 10'007 * kMs;
    Window window = Window::make({.spec = {WindowSpec::Kind::time, kLong},
                                  .anchor = anchor,
                                  .filter = GetParam().filter,
                                  .fpr = 1e-6,
                                  .keys = 300,
                                  .listed = GetParam().listed});
    SplitMix64 random(7);
    std::map<std::uint64_t, Nanoseconds> written;
    Nanoseconds now = kStart;
    std::uint64_t asked = 0, stages = 0;
    for (int step = 0; step < 3000; ++step) {
      // A burst in the middle, so that there are stages.
      const bool burst = step > 1000 && step < 2500;
      now += static_cast<Nanoseconds>(random.next() % (burst ? 10 : 200)) * kMs;
      const std::uint64_t key = random.next() % 2000;
      window.arrive(now);
      const Verdict verdict = window.observe(digest_of(key));
      if (verdict == Verdict::distinct || anchor == Anchor::refreshed) written[key] = now;
      if (!window.listed()) stages = std::max<std::uint64_t>(stages, window.growth().stage_count());
      if (step % 100 != 0) continue;
      for (const auto& [each, when] : written)
        for (const Nanoseconds ahead : {Nanoseconds{0}, 777 * kMs, 9'000 * kMs}) {
          EXPECT_EQ(window.age_of(digest_of(each), now + ahead).has_value(),
                    window.may_contain(digest_of(each), now + ahead));
          if (now + ahead - when < kLong) {
            check(window, each, now + ahead, static_cast<std::uint64_t>(now + ahead - when));
            ++asked;
          }
        }
      ASSERT_EQ(window.age_of(digest_of(key), now + 3 * kLong), std::nullopt);
      ASSERT_EQ(window.age_of(digest_of(1'000'000), now), std::nullopt);
    }
    EXPECT_GT(asked, 1000u);
    if (std::string_view(GetParam().filter).starts_with("cohort")) {
      EXPECT_GT(stages, 1u);
    }
  }
}

TEST_P(WindowAge, OfCountIsInKeys) {
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
    constexpr std::uint64_t kLong = 103;
    Window window = Window::make({.spec = {WindowSpec::Kind::count, kLong},
                                  .anchor = anchor,
                                  .filter = GetParam().filter,
                                  .fpr = 1e-6,
                                  .listed = GetParam().listed});
    SplitMix64 random(8);
    std::map<std::uint64_t, std::uint64_t> written;
    std::uint64_t count = 0;
    for (int step = 0; step < 1000; ++step) {
      const std::uint64_t key = random.next() % 200;
      const Verdict verdict = window.observe(digest_of(key));
      if (verdict == Verdict::distinct || anchor == Anchor::refreshed) written[key] = count++;
      for (const auto& [each, when] : written)
        if (count - when <= kLong) check(window, each, kStart, count - 1 - when);
      ASSERT_EQ(window.age_of(digest_of(1'000'000), kStart), std::nullopt);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Filters, WindowAge,
                         testing::Values(Case{"cohort", false, true}, Case{"cohort", true, true},
                                         Case{"cohort,slot=32,generations=7", false, true},
                                         Case{"exact-window", false, true},
                                         Case{"exact-window,generations=3", true, true},
                                         Case{"timing", false, false}, Case{"timer", false, false}),
                         [](const auto& test) { return std::to_string(test.index); });

// When a list becomes a table, ages become those of generations.
TEST(WindowAgeOnce, StaysWhenAListBecomesATable) {
  constexpr Nanoseconds kLong = 60'000 * kMs;
  Window window = Window::make({.spec = {WindowSpec::Kind::time, kLong}, .listed = true});
  for (std::uint64_t key = 0; key < 10; ++key) {
    window.arrive(kStart + static_cast<Nanoseconds>(key) * 1'000 * kMs);
    window.observe(digest_of(key));
  }
  const Nanoseconds now = kStart + 20'000 * kMs;
  ASSERT_TRUE(window.listed());
  for (std::uint64_t key = 0; key < 10; ++key)
    EXPECT_EQ(window.age_of(digest_of(key), now), (20 - key) * 1'000 * kMs);
  window.make_table();
  for (std::uint64_t key = 0; key < 10; ++key) {
    const std::uint64_t right = (20 - key) * 1'000 * kMs, age = *window.age_of(digest_of(key), now);
    EXPECT_LE(age, right);
    EXPECT_GT(age + window.generation_size(), right);
  }
}

TEST(WindowAgeOnce, IsKnownToFiltersThatStampTheirKeys) {
  for (const auto& [filter, knows] :
       std::vector<std::pair<const char*, bool>>{{"cohort,slot=32", true},
                                                 {"exact-window", true},
                                                 {"timing", true},
                                                 {"timer", true},
                                                 {"apbf", false},
                                                 {"apbbf", false}})
    EXPECT_EQ(Window::make({.spec = {WindowSpec::Kind::time, 60'000 * kMs}, .filter = filter})
                  .knows_ages(),
              knows)
        << filter;
}

// Since the last full hour: one generation, so nothing is known while there is a table.
TEST(WindowAgeOnce, OfALandmarkIsAtLeastNothing) {
  Window window =
      Window::make({.spec = {WindowSpec::Kind::landmark, std::uint64_t{3'600'000} * kMs}});
  window.arrive(kStart);
  window.observe(digest_of(1));
  EXPECT_EQ(window.age_of(digest_of(1), kStart + 1'000 * kMs), 0u);
  EXPECT_EQ(window.age_of(digest_of(2), kStart), std::nullopt);
  EXPECT_EQ(window.age_of(digest_of(1), kStart + 3'600'000 * kMs), std::nullopt);
}

}  // namespace
}  // namespace sluice
