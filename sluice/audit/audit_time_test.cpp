// Audits of windows of time.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sluice/audit/audit.hpp"
#include "tests/support/audit_reference.hpp"

namespace sluice {
namespace {

using namespace testing_support;

constexpr std::int64_t kSecond = 1'000'000'000;

// A time a record: mostly onwards, some late. Returns the truth and how many were late.
std::pair<Truth, double> run_timed(AnyFilter& filter, std::uint64_t seed,
                                   const std::vector<Audit*>& audits) {
  Window& window = *filter.window();
  Reference reference(&window);
  SplitMix64 random(seed);
  std::int64_t now = 1000 * kSecond, greatest = 0;
  double late_ones = 0;
  std::vector<Digest> digests(kBatch);
  std::vector<std::uint64_t> keys(kBatch);
  std::vector<Nanoseconds> times(kBatch);
  std::vector<Verdict> verdicts(kBatch);
  bool late[kBatch];
  for (int batch = 0; batch < 60; ++batch) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      now += kSecond / 20;
      keys[i] = (seed << 32) + random.next() % 4000;
      digests[i] = digest_of(keys[i]);
      const auto back = static_cast<std::int64_t>(random.next() % 120) * kSecond;
      times[i] = random.next() % 8 == 0 ? now - back : now;
    }
    EXPECT_EQ(window.judge(digests, times, verdicts, late), kBatch);
    for (Audit* audit : audits) audit->observe(digests, verdicts, times, late);
    for (std::size_t i = 0; i < kBatch; ++i) {
      greatest = std::max(greatest, times[i]);
      late_ones += late[i];
      if (!late[i]) reference.see(keys[i], verdicts[i], times[i], greatest);
    }
  }
  return {reference.truth, late_ones};
}

struct TimedCase {
  const char* name;
  WindowSpec::Kind kind;
  Anchor anchor;
};

class AuditByTime : public ::testing::TestWithParam<TimedCase> {};

// One key in one is the truth, error by error; one in eight, over several streams, is near it,
// within four standard errors.
TEST_P(AuditByTime, IsTheTruthAndASampleOfIt) {
  Truth sum;
  Rate positives, negatives;
  for (const std::uint64_t seed : {5, 6, 7, 8}) {
    const WindowSpec spec{GetParam().kind, 100ull * static_cast<std::uint64_t>(kSecond)};
    AnyFilter filter = window_of("cohort,slot=16", spec, GetParam().anchor);
    Audit all({.sample = 1, .most_bytes = kAmple}, filter);
    Audit part({.sample = 8, .most_bytes = kAmple}, filter);
    const auto [truth, late] = run_timed(filter, seed, {&all, &part});
    expect_equal(all.report(), truth);
    EXPECT_GT(late, 0);
    EXPECT_GT(truth.either, 0);
    sum.distinct += truth.distinct;
    sum.false_positives += truth.false_positives;
    sum.duplicates += truth.duplicates;
    sum.false_negatives += truth.false_negatives;
    const Audit::Report report = part.report();
    positives = {positives.errors + report.positives.errors,
                 positives.trials + report.positives.trials};
    negatives = {negatives.errors + report.negatives.errors,
                 negatives.trials + report.negatives.trials};
  }
  EXPECT_GT(sum.false_positives, 20);
  EXPECT_GT(sum.duplicates, 4000);
  EXPECT_EQ(sum.false_negatives, 0);
  expect_near(positives, sum.false_positives, sum.distinct, 3);
  expect_near(negatives, sum.false_negatives, sum.duplicates, 3);
  EXPECT_NEAR(8 * positives.trials, sum.distinct, 0.15 * sum.distinct);
}

INSTANTIATE_TEST_SUITE_P(
    Windows, AuditByTime,
    ::testing::Values(TimedCase{"delivered", WindowSpec::Kind::time, Anchor::delivered},
                      TimedCase{"refreshed", WindowSpec::Kind::time, Anchor::refreshed},
                      TimedCase{"landmark", WindowSpec::Kind::landmark, Anchor::delivered},
                      TimedCase{"landmark_refreshed", WindowSpec::Kind::landmark,
                                Anchor::refreshed}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(Audit, CountsNothingOfAClockThatIsNotBelieved) {
  AnyFilter filter = window_of("exact-window", {WindowSpec::Kind::time, 100ull * 1'000'000'000});
  Window& window = *filter.window();
  Audit audit({.sample = 1}, filter);
  const auto see = [&](std::uint64_t key, std::int64_t second) {
    const Digest digest = digest_of(key);
    const Nanoseconds time = second * kSecond;
    Verdict verdict;
    bool late;
    EXPECT_EQ(window.judge({&digest, 1}, {&time, 1}, {&verdict, 1}, {&late, 1}), 1u);
    audit.observe({&digest, 1}, {&verdict, 1}, {&time, 1}, {&late, 1});
  };
  see(1, 0);
  see(2, 1);
  see(1, 100'000);  // let through, though it is there
  EXPECT_EQ(audit.report().negatives.trials, 0);
  EXPECT_EQ(audit.report().undecided, 1);
  see(1, 2);
  EXPECT_EQ(audit.report().undecided, 2);
  see(2, 3);
  EXPECT_EQ(audit.report().negatives.trials, 1);
  EXPECT_EQ(audit.report().negatives.errors, 0);
  EXPECT_EQ(audit.report().positives.trials, 2);
}

// The first record's clock was wrong, and the second replaces it: the window is empty then.
TEST(Audit, StartsAfreshWhenTheFirstTimeIsReplaced) {
  AnyFilter filter = window_of("exact-window", {WindowSpec::Kind::time, 100ull * 1'000'000'000});
  Window& window = *filter.window();
  Audit audit({.sample = 1}, filter);
  const std::vector<std::pair<std::uint64_t, std::int64_t>> events = {
      {1, 100'000}, {2, 0}, {3, 80}, {1, 90}, {2, 95}, {4, 150}, {1, 220}, {5, 230}};
  for (const auto& [key, second] : events) {
    const Digest digest = digest_of(key);
    const Nanoseconds time = second * kSecond;
    Verdict verdict;
    bool late;
    EXPECT_EQ(window.judge({&digest, 1}, {&time, 1}, {&verdict, 1}, {&late, 1}), 1u);
    audit.observe({&digest, 1}, {&verdict, 1}, {&time, 1}, {&late, 1});
  }
  const Audit::Report report = audit.report();
  EXPECT_EQ(report.positives.errors, 0);
  EXPECT_EQ(report.negatives.errors, 0);
  EXPECT_EQ(report.positives.trials, 7);  // all but 2 at 95
  EXPECT_EQ(report.negatives.trials, 1);
  EXPECT_EQ(report.undecided, 0);
  EXPECT_TRUE(report.knows_all);
}

// Landmarks and arrival: everything of the present hour, nothing older.
TEST(Audit, FollowsArrivalsAndHours) {
  constexpr std::uint64_t kHour = 3600ull * 1'000'000'000;
  AnyFilter filter = window_of("exact-window", {WindowSpec::Kind::landmark, kHour});
  Window& window = *filter.window();
  Audit audit({.sample = 1}, filter);
  const auto see = [&](std::uint64_t key, std::int64_t minute) {
    window.arrive(minute * 60 * kSecond);
    const Digest digest = digest_of(key);
    const Verdict verdict = window.observe(digest);
    audit.observe({&digest, 1}, {&verdict, 1});
  };
  see(1, 50);
  see(1, 59);
  see(1, 61);  // distinct again
  see(1, 119);
  const Audit::Report report = audit.report();
  EXPECT_EQ(report.positives.trials, 2);
  EXPECT_EQ(report.negatives.trials, 2);
  EXPECT_EQ(report.positives.errors + report.negatives.errors, 0);
}

}  // namespace
}  // namespace sluice
