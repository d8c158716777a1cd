#include "sluice/judge/error_meter.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "sluice/filters/catalogue.hpp"
#include "sluice/judge/judge.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

constexpr Nanoseconds kSecond = 1'000'000'000;

struct Outcome {
  double lost = 0;  // every key is new: all that were held back
  double expected = 0, worst = 0;
  std::uint64_t over = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome run(AnyFilter filter, std::span<const Digest> digests, std::span<const Nanoseconds> times,
            std::size_t batch) {
  Judge judge({HashKind::xxh3, Secret::from_seed(1)}, std::move(filter));
  std::vector<Verdict> verdicts(digests.size());
  const auto late = std::make_unique<bool[]>(digests.size());
  for (std::size_t at = 0; at < digests.size(); at += batch) {
    const std::size_t count = std::min(batch, digests.size() - at);
    EXPECT_EQ(judge.judge({.digests = digests.subspan(at, count),
                           .verdicts = std::span(verdicts).subspan(at, count),
                           .times = times.empty() ? times : times.subspan(at, count),
                           .late = std::span(late.get(), count)}),
              count);
  }
  const FilterStats stats = judge.filter().stats();
  return {.lost = static_cast<double>(count_duplicates(verdicts)),
          .expected = judge.meter().expected_lost(stats),
          .worst = judge.meter().worst_fpr(stats),
          .over = judge.meter().over_target(stats)};
}

struct Case {
  const char* name;
  std::function<AnyFilter()> make;
  std::size_t keys;
};

std::vector<Case> cases() {
  const auto window = [](const char* filter) {
    return [filter] {
      return AnyFilter(
          Window::make({.spec = {WindowSpec::Kind::count, 2000}, .filter = filter, .fpr = 0.02}));
    };
  };
  return {{"bloom", [] { return make_filter("bloom", {.keys = 10'000, .fpr = 0.01}); }, 10'000},
          {"overfull", [] { return make_filter("bloom", {.keys = 10'000, .fpr = 0.01}); }, 20'000},
          {"classic",
           [] { return make_filter("bloom,layout=classic", {.keys = 1000, .fpr = 0.01}); }, 1500},
          {"lost", [] { return make_filter("bloom", {.keys = 1000, .fpr = 1e-6}); }, 20'000},
          {"saturated", [] { return make_filter("bloom", {.keys = 2000, .fpr = 0.01}); }, 60'000},
          {"cohort", window("cohort,slot=16"), 10'000},
          {"timing", window("timing"), 10'000}};
}

// The sum over ten streams, within 3.5 standard errors of a count and 3 % for the models.
TEST(ErrorMeter, ExpectsWhatIsLost) {
  for (const Case& one : cases()) {
    Outcome all;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const Outcome each =
          run(one.make(), testing_support::random_digests(seed, one.keys), {}, 5000);
      all.lost += each.lost;
      all.expected += each.expected;
    }
    EXPECT_GT(all.lost, 20) << one.name;
    EXPECT_NEAR(all.expected, all.lost, 3.5 * std::sqrt(all.lost) + 0.03 * all.lost) << one.name;
  }
}

// Of four records three repeat an earlier one, before all bits are set and after.
TEST(ErrorMeter, KnowsRepeatsFromLossesWhereAllBitsAreSet) {
  const auto fresh = testing_support::random_digests(3, 30'000);
  std::vector<Digest> digests;
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    firsts.push_back(digests.size());
    digests.push_back(fresh[i]);
    for (std::size_t back = 1; back <= 3; ++back) digests.push_back(fresh[i - std::min(i, back)]);
  }
  Judge judge({HashKind::xxh3, Secret::from_seed(1)},
              make_filter("bloom", {.keys = 2000, .fpr = 0.01}));
  std::vector<Verdict> verdicts(digests.size());
  ASSERT_EQ(judge.judge({.digests = digests, .verdicts = verdicts}), digests.size());
  double lost = 0;
  for (const std::size_t at : firsts) lost += verdicts[at] == Verdict::duplicate;
  EXPECT_NEAR(judge.meter().expected_lost(judge.filter().stats()), lost, 0.05 * lost);
}

TEST(ErrorMeter, SaysTheSameHoweverAStreamIsCut) {
  for (const Case& one : cases()) {
    const auto digests = testing_support::random_digests(7, one.keys);
    const Outcome whole = run(one.make(), digests, {}, digests.size());
    for (const std::size_t batch : {1, 100, 4096})
      EXPECT_EQ(run(one.make(), digests, {}, batch), whole) << one.name << ' ' << batch;
  }
}

// What fills the window within one batch, and has left it at its end, is not overlooked.
TEST(ErrorMeter, RemembersABurst) {
  const auto digests = testing_support::random_digests(9, 8000);
  std::vector<Nanoseconds> times;
  Nanoseconds now = 1'700'000'000 * kSecond;
  for (std::size_t i = 0; i < digests.size(); ++i)
    times.push_back(now += i < 1000 || i >= 7000 ? kSecond / 5 : kSecond / 150);
  const auto make = [] {
    return AnyFilter(Window::make({.spec = {WindowSpec::Kind::time, 60 * kSecond},
                                   .filter = "cohort,slot=16",
                                   .fpr = 0.02,
                                   .keys = 300}));
  };
  const Outcome burst = run(make(), digests, times, digests.size());
  EXPECT_GT(burst.worst, 0.02);
  EXPECT_GT(burst.over, 1000u);
  EXPECT_LT(burst.over, digests.size());
  EXPECT_NEAR(burst.expected, burst.lost, 3.5 * std::sqrt(burst.lost) + 0.05 * burst.lost);
  const Outcome quiet =
      run(make(), std::span(digests).first(1000), std::span(times).first(1000), 1000);
  EXPECT_EQ(quiet.over, 0u);
}

}  // namespace
}  // namespace sluice
