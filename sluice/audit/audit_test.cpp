#include "sluice/audit/audit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "sluice/base/error.hpp"
#include "tests/support/audit_reference.hpp"

namespace sluice {
namespace {

using namespace testing_support;

struct Case {
  const char* name;
  const char* filter;
  std::uint64_t window;  // 0: none
  Anchor anchor = Anchor::delivered;
  bool positives = true;
  bool negatives = false;
};

class AuditOf : public ::testing::TestWithParam<Case> {};

constexpr Case kCases[] = {
    {"overfull_bloom", "bloom,keys=1000,fpr=0.05", 0},
    {"bloom", "bloom,keys=15000,fpr=0.05", 0},
    {"reservoir", "reservoir,bytes=4096,fpr=0.1", 0, Anchor::delivered, true, true},
    {"none", "none", 0, Anchor::delivered, false, true},
    {"exact", "exact", 0, Anchor::delivered, false, false},
    {"apbf", "apbf", 3000},
    {"cohort16", "cohort,slot=16", 3000},
    {"cohort16_refreshed", "cohort,slot=16", 3000, Anchor::refreshed},
    {"exact_window", "exact-window", 3000, Anchor::delivered, false, false},
};

// One key in one: the audit is the truth, error by error. One in eight: near it, within four
// standard errors.
TEST_P(AuditOf, IsTheTruthAndASampleOfIt) {
  const Case& c = GetParam();
  AnyFilter filter = c.window == 0
                         ? make_filter(c.filter, {})
                         : window_of(c.filter, {WindowSpec::Kind::count, c.window}, c.anchor);
  Audit all({.sample = 1, .most_bytes = kAmple}, filter);
  Audit part({.sample = 8, .most_bytes = kAmple}, filter);
  const Truth truth = run(filter, keys_of({}), {&all, &part});
  expect_equal(all.report(), truth);
  EXPECT_EQ(truth.false_positives > 0, c.positives);
  EXPECT_EQ(truth.false_negatives > 0, c.negatives);
  const Audit::Report report = part.report();
  EXPECT_EQ(report.sample, 8u);
  EXPECT_EQ(report.doublings, 0u);
  expect_near(report.positives, truth.false_positives, truth.distinct, 3);
  expect_near(report.negatives, truth.false_negatives, truth.duplicates, 3);
}

INSTANTIATE_TEST_SUITE_P(Filters, AuditOf, ::testing::ValuesIn(kCases),
                         [](const auto& instance) { return std::string(instance.param.name); });

// Over several streams, so that what a sample is wrong by has no direction: the mean over them lies
// within four of its own standard errors.
TEST(AuditError, IsUnbiasedOverStreams) {
  Truth sum;
  Rate positives;
  constexpr std::uint64_t kStreams = 40;
  for (std::uint64_t stream = 0; stream < kStreams; ++stream) {
    AnyFilter filter = make_filter("bloom,keys=1500,fpr=0.05", {});
    Audit audit({.sample = 16, .most_bytes = kAmple}, filter);
    std::vector<std::uint64_t> keys;
    for (std::uint64_t i = 0; i < 3000; ++i) keys.push_back(stream << 32 | i);
    const Truth truth = run(filter, keys, {&audit});
    sum.distinct += truth.distinct;
    sum.false_positives += truth.false_positives;
    positives = {positives.errors + audit.report().positives.errors,
                 positives.trials + audit.report().positives.trials};
  }
  EXPECT_NEAR(16 * positives.trials, sum.distinct, 4 * 16 * std::sqrt(sum.distinct / 16));
  expect_near(positives, sum.false_positives, sum.distinct, 1);
}

// What was taken back is distinct when it comes again, and a filter that holds it back errs.
// Keys lost, of first arrivals, by a plain set: in the 95 % interval in all but a few of 20 streams
// (17 or more, which chance misses once in 60 if it is), and their mean within four standard errors
// of the audits'.
TEST(AuditError, CountsAKeyThatIsLostOnce) {
  int inside = 0;
  double rates = 0, truths = 0, trials = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    AnyFilter filter = make_filter("bloom,layout=classic", {.keys = 5'000, .fpr = 0.02});
    Audit audit({.sample = 8, .most_bytes = kAmple}, filter);
    const std::vector<std::uint64_t> keys =
        keys_of({.records = 40'000, .keys = 10'000, .seed = seed});
    std::set<std::uint64_t> seen;
    double lost = 0;
    for (const std::uint64_t key : keys) {
      const Digest digest = digest_of(key + seed * 1'000'000);
      Verdict verdict = Verdict::distinct;
      filter.observe({&digest, 1}, {&verdict, 1});
      audit.observe({&digest, 1}, {&verdict, 1});
      lost += seen.insert(key).second && verdict == Verdict::duplicate;
    }
    const double truth = lost / static_cast<double>(seen.size());
    const Rate positives = audit.report().positives;
    inside += positives.low() <= truth && truth <= positives.high();
    rates += positives.errors;
    trials += positives.trials;
    truths += truth / 20;
  }
  EXPECT_GE(inside, 17);
  EXPECT_GT(truths, 0.03);
  EXPECT_NEAR(rates / trials, truths, 4 * std::sqrt(truths / trials));
}

// Of one key in one, the rate is that of the run, exactly: all verdicts were counted, however the
// stream is cut.
TEST(Audit, CountsTheVerdictsOfAllKeys) {
  for (const std::size_t batch : {1, 7, 8, 2041, 5003, 20'011}) {
    AnyFilter filter = make_filter("reservoir,bytes=1024,fpr=0.1", {});
    AnyFilter timed = window_of("timer,equal=3", {WindowSpec::Kind::time, 1u << 30});
    Audit all({.sample = 1, .most_bytes = kAmple}, filter);
    Audit all_timed({.sample = 1, .most_bytes = kAmple}, timed);
    const std::vector<std::uint64_t> keys = keys_of({.records = 20'011, .keys = 3'000});
    for (std::size_t begin = 0; begin < keys.size(); begin += batch) {
      const std::size_t count = std::min(batch, keys.size() - begin);
      std::vector<Digest> digests(count);
      std::vector<Nanoseconds> times(count);
      for (std::size_t i = 0; i < count; ++i) {
        digests[i] = digest_of(keys[begin + i]);
        times[i] = static_cast<Nanoseconds>((begin + i + 1) << 20);
      }
      std::vector<Verdict> verdicts(count);
      filter.observe(digests, verdicts);
      all.observe(digests, verdicts);
      const auto late = std::make_unique<bool[]>(count);
      ASSERT_EQ(timed.window()->judge(digests, times, verdicts, {late.get(), count}), count);
      all_timed.observe(digests, verdicts, times, {late.get(), count});
    }
    for (const Audit* audit : {&all, &all_timed}) {
      const Rate rate = audit->report().negatives;
      EXPECT_GT(rate.errors, 5);
      EXPECT_NEAR(*rate.value(), rate.errors / rate.trials, 1e-12) << batch;
      EXPECT_NEAR(rate.high() - rate.low(), 0, 1e-12);
    }
  }
}

TEST(Audit, FollowsKeysThatAreTakenBack) {
  AnyFilter filter = make_filter("exact", {});
  Audit audit({.sample = 1}, filter);
  const auto see = [&](std::uint64_t key) {
    const Digest digest = digest_of(key);
    Verdict verdict;
    filter.observe({&digest, 1}, {&verdict, 1});
    audit.observe({&digest, 1}, {&verdict, 1});
    return verdict;
  };
  const auto take_back = [&](std::uint64_t key) {
    const bool found = filter.forget(digest_of(key));
    audit.forget(digest_of(key), found);
    return found;
  };
  see(1), see(2), see(1);
  EXPECT_TRUE(take_back(1));
  EXPECT_FALSE(take_back(3));
  EXPECT_EQ(see(1), Verdict::distinct);
  EXPECT_EQ(see(3), Verdict::distinct);
  EXPECT_EQ(see(2), Verdict::duplicate);
  Audit::Report report = audit.report();
  EXPECT_EQ(report.positives.trials, 4);
  EXPECT_EQ(report.negatives.trials, 2);
  EXPECT_EQ(report.positives.errors + report.negatives.errors + report.undecided, 0);
  // A filter that only says that it took it back.
  audit.forget(digest_of(2), true);
  EXPECT_EQ(see(2), Verdict::duplicate);
  EXPECT_EQ(audit.report().positives.errors, 1);
  // Of one that says it was not there nothing is known.
  audit.forget(digest_of(1), false);
  see(1);
  EXPECT_EQ(audit.report().undecided, 1);
}

// Of a loaded filter nothing is known, but for what was taken back.
TEST(Audit, KnowsWhatWasTakenBackFromALoadedFilter) {
  const std::vector<std::uint64_t> keys = keys_of({.records = 2'000, .keys = 400});
  AnyFilter loaded = make_filter("exact", {});
  run(loaded, keys, {});
  Audit audit({.sample = 1, .fresh = false}, loaded);
  EXPECT_FALSE(audit.report().knows_all);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const Digest digest = digest_of(keys[i]);
    audit.forget(digest, loaded.forget(digest));
  }
  run(loaded, keys, {&audit});
  EXPECT_GE(audit.report().positives.trials, 5);
  EXPECT_LE(audit.report().positives.trials, 10);
  EXPECT_EQ(audit.report().positives.errors, 0);
}

// The filter's error grows along the stream: samples that were halved on the way must not give its
// beginning more weight than its end.
TEST(Audit, HalvesItsSampleToStayWithinItsMemory) {
  AnyFilter filter = make_filter("bloom,keys=10000,fpr=0.02", {});
  Audit audit({.sample = 2, .most_bytes = 128 << 10}, filter);
  const Truth truth = run(filter, keys_of({.records = 80'000, .keys = 40'000}), {&audit});
  const Audit::Report report = audit.report();
  EXPECT_GE(report.doublings, 3u);
  EXPECT_EQ(report.sample, std::uint64_t{2} << report.doublings);
  EXPECT_LE(2 * report.bytes, std::uint64_t{128} << 10);
  EXPECT_GT(report.keys, 300u);
  EXPECT_NEAR(report.positives.trials * static_cast<double>(report.sample), truth.distinct,
              0.15 * truth.distinct);
  expect_near(report.positives, truth.false_positives, truth.distinct, 3);
  EXPECT_EQ(report.negatives.errors, 0);
}

TEST(Audit, ForgetsKeysThatLeftTheWindowBeforeItHalves) {
  AnyFilter filter = window_of("exact-window", {WindowSpec::Kind::count, 200});
  Audit audit({.sample = 1, .most_bytes = 128 << 10}, filter);
  const Truth truth = run(filter, keys_of({.records = 40'000, .keys = 10'000}), {&audit});
  EXPECT_EQ(audit.report().doublings, 0u);
  expect_equal(audit.report(), truth);
}

TEST(Audit, SaysNothingOfKeysThatALoadedFilterMayKnow) {
  const std::vector<std::uint64_t> keys = keys_of({.records = 20'000, .keys = 4'000});
  AnyFilter loaded = make_filter("exact", {});
  run(loaded, keys, {});
  Audit audit({.sample = 1, .fresh = false}, loaded);
  run(loaded, keys, {&audit});
  EXPECT_EQ(audit.report().positives.trials, 0);
  EXPECT_EQ(audit.report().undecided, 20'000);
  // A window is known whole once it has passed.
  AnyFilter window = window_of("exact-window", {WindowSpec::Kind::count, 500});
  run(window, keys, {});
  Audit later({.sample = 1, .fresh = false}, window);
  run(window, keys, {&later});
  EXPECT_GT(later.report().positives.trials, 10'000);
  EXPECT_EQ(later.report().positives.errors, 0);
  EXPECT_EQ(later.report().negatives.errors, 0);
  EXPECT_GT(later.report().undecided, 0);
}

TEST(Audit, AsksGhosts) {
  AnyFilter filter = make_filter("bloom,keys=20000,fpr=0.05", {});
  std::vector<Digest> digests;
  for (std::uint64_t key = 0; key < 20'000; ++key) digests.push_back(digest_of(key));
  filter.insert(digests);
  Audit audit({.seed = 9, .fresh = false}, filter);
  audit.ask_ghosts(20'000);
  const Rate ghosts = audit.report().ghosts;
  EXPECT_EQ(ghosts.trials, 20'000);
  expect_near(ghosts, 20'000 * filter.stats().predicted_fpr, 20'000, 1);
  // The same seed, the same ghosts; and observing asks some.
  Audit again({.seed = 9, .fresh = false}, filter);
  again.ask_ghosts(20'000);
  EXPECT_EQ(again.report().ghosts.errors, ghosts.errors);
  std::vector<Verdict> verdicts(Ghosts::kLongestPause);
  again.observe(std::span(digests).first(verdicts.size()), verdicts);
  EXPECT_EQ(again.report().ghosts.trials, 20'000 + Ghosts::kLongestPause / Ghosts::kEvery);
  EXPECT_EQ(again.report().ghosts_now.trials, Ghosts::kLongestPause / Ghosts::kEvery);
}

// As many as are wanted, to see a small rate; not many more than tell it.
TEST(Audit, AsksAsManyGhostsAsAreWanted) {
  AnyFilter filter = make_filter("bloom,keys=20000,fpr=0.0003", {});
  std::vector<Digest> digests;
  for (std::uint64_t key = 0; key < 20'000; ++key) digests.push_back(digest_of(key));
  filter.insert(digests);
  Audit audit({.seed = 1, .fresh = false}, filter);
  audit.ask_ghosts(300'000);
  const Rate ghosts = audit.report().ghosts;
  EXPECT_EQ(ghosts.trials, 300'000);
  expect_near(ghosts, ghosts.trials * filter.stats().predicted_fpr, ghosts.trials, 1);
  AnyFilter full = make_filter("bloom,keys=100,fpr=0.5", {});
  full.insert(digests);
  Audit enough({.fresh = false}, full);
  enough.ask_ghosts(std::uint64_t{1} << 40);
  EXPECT_LT(enough.report().ghosts.trials, 2 * Ghosts::kEnoughFound);
}

TEST(Audit, TakesTheShareOfKeysAskedFor) {
  for (const std::uint64_t sample : {1, 3, 8, 1000}) {
    double taken = 0;
    constexpr std::uint64_t kKeys = 200'000;
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const bool in = Audit::in_sample(digest_of(key), sample);
      taken += in;
      EXPECT_TRUE(in || !Audit::in_sample(digest_of(key), 2 * sample));
    }
    const double share = 1.0 / static_cast<double>(sample);
    EXPECT_NEAR(taken, kKeys * share, 4 * std::sqrt(kKeys * share * (1 - share)));
  }
}

TEST(Audit, RefusesSamplesAndMemoriesThatCannotBe) {
  const AnyFilter filter = make_filter("exact", {});
  EXPECT_THROW(Audit({.sample = 0}, filter), BadParameters);
  EXPECT_THROW(Audit({.sample = Audit::kMostSample + 1}, filter), BadParameters);
  EXPECT_THROW(Audit({.most_bytes = Audit::kLeastBytes - 1}, filter), BadParameters);
}

}  // namespace
}  // namespace sluice
