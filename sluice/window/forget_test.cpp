// Taking keys back from windows: from every stage, counted once.
#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using testing_support::digest_of;

constexpr Nanoseconds kSecond = 1'000'000'000;

Verdict judge_at(Window& window, std::uint64_t key, Nanoseconds time) {
  const Digest digest = digest_of(key);
  Verdict verdict{};
  bool late = false;
  EXPECT_EQ(window.judge({&digest, 1}, {&time, 1}, {&verdict, 1}, {&late, 1}), 1u);
  return verdict;
}

class ForgettingWindow : public testing::TestWithParam<const char*> {};

// Small stages: keys lie in several, and with a refreshed anchor some in more than one.
TEST_P(ForgettingWindow, EveryStageForgets) {
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
    Window window = Window::make({.spec = {WindowSpec::Kind::time, 1000 * kSecond},
                                  .anchor = anchor,
                                  .filter = GetParam(),
                                  .keys = 64});
    ASSERT_TRUE(window.can_forget());
    for (std::uint64_t i = 0; i < 4000; ++i)
      judge_at(window, i % 3 == 2 ? i / 6 * 3 : i, static_cast<Nanoseconds>(i) * kSecond / 10);
    const std::uint64_t keys = window.stats().keys;
    for (std::uint64_t i = 0; i < 1000; i += 2) EXPECT_EQ(window.forget(digest_of(i)), i % 3 != 2);
    for (std::uint64_t i = 0; i < 1000; ++i)
      if (i % 3 != 2) {
        EXPECT_EQ(window.may_contain(digest_of(i)), i % 2 == 1) << i;
      }
    EXPECT_LE(window.stats().keys, keys - window.stats().forgotten);
    EXPECT_EQ(window.stats().forgotten + window.stats().forget_misses, 500u);
    EXPECT_EQ(window.stats().forget_misses, 167u);
    EXPECT_EQ(judge_at(window, 0, 400 * kSecond), Verdict::distinct);
    window.clear();
    EXPECT_EQ(window.stats().forgotten + window.stats().forget_misses, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Filters, ForgettingWindow,
                         testing::Values("cohort", "exact-window", "sharded,of=cohort"),
                         [](const auto& test) {
                           return test.index == 0   ? "cohort"
                                  : test.index == 1 ? "exact"
                                                    : "sharded";
                         });

// The key of a record whose time is not believed waits to be written at that time.
TEST(ForgettingWindow, AlsoAKeyThatWaitsForItsTime) {
  Window window = Window::make(
      {.spec = {WindowSpec::Kind::time, 100 * kSecond}, .keys = 64, .max_ahead = 100 * kSecond});
  for (std::uint64_t i = 0; i < 20; ++i)
    judge_at(window, i, static_cast<Nanoseconds>(1000 + i) * kSecond);
  judge_at(window, 77, 5000 * kSecond);
  EXPECT_TRUE(window.forget(digest_of(77)));
  judge_at(window, 78, 5001 * kSecond);
  EXPECT_FALSE(window.may_contain(digest_of(77)));
  EXPECT_TRUE(window.may_contain(digest_of(78)));
}

TEST(ForgettingWindow, OnlyWhereItsFilterCan) {
  const Window window =
      Window::make({.spec = {WindowSpec::Kind::count, 1000}, .filter = "apbf", .fpr = 1e-3});
  EXPECT_FALSE(window.can_forget());
  AnyFilter one{Window::make({.spec = {WindowSpec::Kind::count, 1000}})};
  EXPECT_THROW(one.merge(one), BadParameters);
}

// Also while it is a list, so that it does not end when this becomes a table.
TEST(ForgettingWindow, AListDoesAsItsTableWill) {
  for (const char* filter : {"cohort", "exact-window", "timing", "timer", "apbf", "apbbf"}) {
    Window window = Window::make({.spec = {WindowSpec::Kind::time, 1000 * kSecond},
                                  .filter = filter,
                                  .fpr = 1e-3,
                                  .keys = 5000,
                                  .listed = true});
    ASSERT_TRUE(window.listed()) << filter;
    const bool can = window.can_forget();
    for (std::uint64_t i = 0; i < 5000 && window.listed(); ++i)
      judge_at(window, i, static_cast<Nanoseconds>(i) * kSecond / 100);
    ASSERT_FALSE(window.listed()) << filter;
    EXPECT_EQ(window.can_forget(), can) << filter;
  }
}

}  // namespace
}  // namespace sluice
