// A window in the small blocks of a host, which are cleared as they are reached, answers every
// question as one in a mapped block: also of keys whose part of the table nobody has written to.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::count_of;

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kStart = 1'700'000'000 * kSecond;

class WindowInPages : public testing::TestWithParam<const char*> {};

TEST_P(WindowInPages, AnswersAsInABlock) {
  for (std::uint64_t seed = 0; seed < count_of<std::uint64_t>(2, 6, 60); ++seed) {
    SCOPED_TRACE(seed);
    SplitMix64 random(seed);
    HostMemory host(malloc_calls());
    // Few keys in a large table: most of it is never reached.
    const Window::Params params{.spec = {WindowSpec::Kind::time, 60 * kSecond},
                                .anchor = seed % 2 == 0 ? Anchor::delivered : Anchor::refreshed,
                                .filter = GetParam(),
                                .fpr = 1e-3,
                                .keys = 40'000};
    Window mapped = Window::make(params), paged = Window::make(params, host);
    std::vector<Digest> keys;
    Nanoseconds now = kStart;
    for (int step = 0; step < 60; ++step) {
      // Leaps over whole generations, and records that come late into them.
      now += static_cast<Nanoseconds>(random.next_unit() < 0.2 ? 50 * random.next_unit()
                                                               : random.next_unit()) *
             kSecond;
      std::vector<Digest> batch;
      std::vector<Nanoseconds> times;
      for (std::uint64_t i = random.next() % 20; i > 0; --i) {
        const bool again = !keys.empty() && random.next_unit() < 0.4;
        batch.push_back(again ? keys[random.next() % keys.size()]
                              : Digest{random.next(), random.next()});
        keys.push_back(batch.back());
        times.push_back(now - (random.next_unit() < 0.5
                                   ? static_cast<Nanoseconds>(random.next() % 60) * kSecond
                                   : 0));
      }
      std::vector<Verdict> verdicts(batch.size()), right(batch.size());
      // std::vector<bool> is no array.
      bool late[20] = {}, right_late[20] = {};
      ASSERT_EQ(mapped.judge(batch, times, right, {right_late, batch.size()}), batch.size());
      ASSERT_EQ(paged.judge(batch, times, verdicts, {late, batch.size()}), batch.size());
      ASSERT_EQ(verdicts, right) << step;
      std::vector<Verdict> answers(keys.size()), right_answers(keys.size());
      mapped.may_contain(keys, right_answers);
      paged.may_contain(keys, answers);
      ASSERT_EQ(answers, right_answers) << step;
      const Nanoseconds later = now + static_cast<Nanoseconds>(random.next() % 70) * kSecond;
      mapped.may_contain(keys, right_answers, later);
      paged.may_contain(keys, answers, later);
      ASSERT_EQ(answers, right_answers) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Filters, WindowInPages,
                         testing::Values("cohort", "cohort,slot=16", "exact-window", "apbf",
                                         "apbbf,layout=line", "apbbf,layout=column",
                                         "apbbf,layout=segment", "timing", "timer",
                                         "sharded,of=cohort"),
                         [](const auto& test) { return std::to_string(test.index); });

}  // namespace
}  // namespace sluice
