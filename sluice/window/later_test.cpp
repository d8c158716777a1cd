// What a window will contain at a later time, asked without changing it.
#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::copy_of;
using testing_support::count_of;
using testing_support::digest_of;

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kStart = 1'700'000'000 * kSecond;

class LaterWindow : public testing::TestWithParam<const char*> {};

TEST_P(LaterWindow, AnswersAsIfItsTimeHadCome) {
  AnyFilter filter(Window::make({.spec = {WindowSpec::Kind::time, 60 * kSecond},
                                 .filter = GetParam(),
                                 .fpr = 1e-3,
                                 .keys = 200}));
  Window& window = *filter.window();
  std::vector<Digest> digests;
  for (std::uint64_t key = 0; key < 1000; ++key) digests.push_back(digest_of(key));
  // Bursts, so that there are stages, and quiet seconds between them.
  for (std::uint64_t key = 0; key < 800; ++key) {
    window.arrive(kStart + static_cast<Nanoseconds>(key / 40 * 3) * kSecond);
    window.observe(digests[key]);
  }
  const auto before = bytes_of(filter);
  std::vector<Verdict> answers(digests.size()), right(digests.size());
  for (Nanoseconds later = -2; later < 70; later += count_of(10, 1, 1)) {
    SCOPED_TRACE(later);
    const Nanoseconds now = window.clock().now() + later * kSecond;
    window.may_contain(digests, answers, now);
    EXPECT_EQ(window.may_contain(digests[700], now), answers[700] == Verdict::duplicate);
    AnyFilter copy = copy_of(filter);
    copy.window()->arrive(now);
    copy.may_contain(digests, right);
    ASSERT_EQ(answers, right);
  }
  EXPECT_EQ(bytes_of(filter), before);
}

INSTANTIATE_TEST_SUITE_P(Filters, LaterWindow,
                         testing::Values("cohort", "cohort,slot=16,generations=3", "exact-window",
                                         "apbf", "apbbf,layout=line", "apbbf,layout=column",
                                         "apbbf,layout=segment", "timing", "timer", "timer,equal=3",
                                         "sharded,of=cohort", "sharded,of=apbf"),
                         [](const auto& test) { return std::to_string(test.index); });

// A count window knows no time, and one that has judged nothing knows none yet.
TEST(LaterWindowOnce, WhereThereIsNoTimeNothingAges) {
  Window count = Window::make({.spec = {WindowSpec::Kind::count, 100}});
  count.observe(digest_of(1));
  EXPECT_TRUE(count.may_contain(digest_of(1), kStart));
  const Window fresh = Window::make({.spec = {WindowSpec::Kind::time, 60 * kSecond}});
  EXPECT_FALSE(fresh.may_contain(digest_of(1), kStart));
}

}  // namespace
}  // namespace sluice
