#include "sluice/audit/audit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

using testing_support::digest_of;
constexpr std::size_t kBatch = 512;
constexpr std::uint64_t kAmple = std::uint64_t{1} << 26;

struct Truth {
  double distinct = 0, false_positives = 0, duplicates = 0, false_negatives = 0, either = 0;
};

// The definition, written as plainly as can be: when each key was last delivered (refreshed: came).
class Reference {
 public:
  explicit Reference(const Window* window) : window_(window) {}

  void see(std::uint64_t key, Verdict verdict, std::int64_t time, std::int64_t now) {
    const auto at = last_.find(key);
    const bool held = verdict == Verdict::duplicate;
    if (at == last_.end() || age_class(now - at->second) == 2) {
      ++truth.distinct;
      truth.false_positives += held;
    } else if (age_class(now - at->second) == 0) {
      ++truth.duplicates;
      truth.false_negatives += !held;
    } else {
      ++truth.either;
    }
    if (!held || (window_ != nullptr && window_->params().anchor == Anchor::refreshed))
      last_[key] = at == last_.end() ? time : std::max(time, at->second);
  }

  Truth truth;

 private:
  // 0: inside, 1: either, 2: outside.
  int age_class(std::int64_t age) const {
    if (window_ == nullptr) return 0;
    const auto size = static_cast<std::int64_t>(window_->params().spec.size);
    const bool by_time = window_->params().spec.by_time();
    if (by_time ? age < size : age <= size) return 0;
    const double past = static_cast<double>(size) * (1 + window_->slack());
    return static_cast<double>(age) < std::ceil(past) + 1 ? 1 : 2;
  }

  const Window* window_;
  std::map<std::uint64_t, std::int64_t> last_;
};

struct Stream {
  std::uint64_t records = 60'000;
  std::uint64_t keys = 20'000;  // drawn evenly
  std::uint64_t seed = 1;
};

std::vector<std::uint64_t> keys_of(const Stream& stream) {
  SplitMix64 random(stream.seed);
  std::vector<std::uint64_t> keys(stream.records);
  std::ranges::generate(keys, [&] { return random.next() % stream.keys; });
  return keys;
}

AnyFilter window_of(const std::string& filter, WindowSpec spec, Anchor anchor = Anchor::delivered,
                    double fpr = 0.02) {
  Window::Params params;
  params.spec = spec;
  params.anchor = anchor;
  params.filter = filter;
  params.fpr = fpr;
  if (spec.by_time()) params.keys = 2'000;
  return AnyFilter(Window::make(params));
}

// Runs the stream in batches, counting the truth beside the audits. No times.
Truth run(AnyFilter& filter, const std::vector<std::uint64_t>& keys,
          const std::vector<Audit*>& audits) {
  const Window* window = filter.as<Window>();
  Reference reference(window);
  std::int64_t position = 0;
  std::vector<Digest> digests;
  std::vector<Verdict> verdicts(kBatch);
  for (std::size_t begin = 0; begin < keys.size(); begin += kBatch) {
    const std::size_t count = std::min(kBatch, keys.size() - begin);
    digests.clear();
    for (std::size_t i = 0; i < count; ++i) digests.push_back(digest_of(keys[begin + i]));
    const auto judged = std::span(verdicts).first(count);
    filter.observe(digests, judged);
    for (std::size_t i = 0; i < count; ++i) {
      reference.see(keys[begin + i], judged[i], position, position);
      const bool refreshed = window != nullptr && window->params().anchor == Anchor::refreshed;
      position += refreshed || judged[i] == Verdict::distinct;
    }
    for (Audit* audit : audits) audit->observe(digests, judged);
  }
  return reference.truth;
}

void expect_equal(const Audit::Report& report, const Truth& truth) {
  EXPECT_EQ(report.positives.trials, truth.distinct);
  EXPECT_EQ(report.positives.errors, truth.false_positives);
  EXPECT_EQ(report.negatives.trials, truth.duplicates);
  EXPECT_EQ(report.negatives.errors, truth.false_negatives);
  EXPECT_EQ(report.undecided, truth.either);
}

// Errors come a key at a time (who is lost once is lost again), so a standard error is that of
// `each` times as few.
void expect_near(const Rate& rate, double errors, double trials, double each) {
  ASSERT_GT(trials, 0);
  const double share = errors / trials;
  const double error = std::sqrt(each * std::max(share, 1 / trials) * (1 - share) / rate.trials);
  EXPECT_NEAR(rate.errors / rate.trials, share, 4 * error) << rate.trials << " trials";
}

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

constexpr std::int64_t kSecond = 1'000'000'000;

// A time a record: mostly onwards, some late, some a wild clock.
TEST(Audit, FollowsEventTime) {
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
    AnyFilter filter =
        window_of("cohort,slot=16",
                  {WindowSpec::Kind::time, 100ull * static_cast<std::uint64_t>(kSecond)}, anchor);
    Window& window = *filter.as<Window>();
    Audit audit({.sample = 1, .most_bytes = kAmple}, filter);
    Reference reference(&window);
    SplitMix64 random(5);
    std::int64_t now = 0, greatest = 0;
    double late_ones = 0;
    std::vector<Digest> digests(kBatch);
    std::vector<std::uint64_t> keys(kBatch);
    std::vector<Nanoseconds> times(kBatch);
    std::vector<Verdict> verdicts(kBatch);
    bool late[kBatch];
    for (int batch = 0; batch < 60; ++batch) {
      for (std::size_t i = 0; i < kBatch; ++i) {
        now += kSecond / 20;
        keys[i] = random.next() % 4000;
        digests[i] = digest_of(keys[i]);
        const auto back = static_cast<std::int64_t>(random.next() % 120) * kSecond;
        times[i] = random.next() % 8 == 0 ? now - back : now;
      }
      window.judge(digests, times, verdicts, late);
      audit.observe(digests, verdicts, times, late);
      for (std::size_t i = 0; i < kBatch; ++i) {
        greatest = std::max(greatest, times[i]);
        late_ones += late[i];
        if (!late[i]) reference.see(keys[i], verdicts[i], times[i], greatest);
      }
    }
    expect_equal(audit.report(), reference.truth);
    EXPECT_GT(late_ones, 0);
    EXPECT_GT(reference.truth.false_positives, 0);
    EXPECT_GT(reference.truth.duplicates, 1000);
    EXPECT_GT(reference.truth.either, 0);
  }
}

TEST(Audit, CountsNothingOfAClockThatIsNotBelieved) {
  AnyFilter filter = window_of("exact-window", {WindowSpec::Kind::time, 100ull * 1'000'000'000});
  Window& window = *filter.as<Window>();
  Audit audit({.sample = 1}, filter);
  const auto see = [&](std::uint64_t key, std::int64_t second) {
    const Digest digest = digest_of(key);
    const Nanoseconds time = second * kSecond;
    Verdict verdict;
    bool late;
    window.judge({&digest, 1}, {&time, 1}, {&verdict, 1}, {&late, 1});
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

// The first record's clock was wrong, and the second sets it back.
TEST(Audit, LosesTrackWhenAClockIsSetBack) {
  AnyFilter filter = window_of("exact-window", {WindowSpec::Kind::time, 100ull * 1'000'000'000});
  Window& window = *filter.as<Window>();
  Audit audit({.sample = 1}, filter);
  const std::vector<std::pair<std::uint64_t, std::int64_t>> events = {
      {1, 100'000}, {2, 0}, {3, 80}, {1, 90}, {2, 95}, {4, 150}, {1, 220}, {5, 230}};
  for (const auto& [key, second] : events) {
    const Digest digest = digest_of(key);
    const Nanoseconds time = second * kSecond;
    Verdict verdict;
    bool late;
    window.judge({&digest, 1}, {&time, 1}, {&verdict, 1}, {&late, 1});
    audit.observe({&digest, 1}, {&verdict, 1}, {&time, 1}, {&late, 1});
  }
  const Audit::Report report = audit.report();
  EXPECT_EQ(report.positives.errors, 0);
  EXPECT_EQ(report.negatives.errors, 0);
  EXPECT_EQ(report.positives.trials, 4);  // the first of all, 4, 1 at its second time, 5
  EXPECT_EQ(report.negatives.trials, 1);  // 2 at 95
  EXPECT_EQ(report.undecided, 3);         // 2, 3, and 1 at 90
}

// Landmarks and arrival: everything of the present hour, nothing older.
TEST(Audit, FollowsArrivalsAndHours) {
  constexpr std::uint64_t kHour = 3600ull * 1'000'000'000;
  AnyFilter filter = window_of("exact-window", {WindowSpec::Kind::landmark, kHour});
  Window& window = *filter.as<Window>();
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

// The filter's error grows along the stream: samples that were halved on the way must not give its
// beginning more weight than its end.
TEST(Audit, HalvesItsSampleToStayWithinItsMemory) {
  AnyFilter filter = make_filter("bloom,keys=10000,fpr=0.02", {});
  Audit audit({.sample = 2, .most_bytes = 64 << 10}, filter);
  const Truth truth = run(filter, keys_of({.records = 80'000, .keys = 40'000}), {&audit});
  const Audit::Report report = audit.report();
  EXPECT_GE(report.doublings, 3u);
  EXPECT_EQ(report.sample, std::uint64_t{2} << report.doublings);
  EXPECT_LE(2 * report.bytes, std::uint64_t{64} << 10);
  EXPECT_GT(report.keys, 300u);
  EXPECT_NEAR(report.positives.trials * static_cast<double>(report.sample), truth.distinct,
              0.15 * truth.distinct);
  expect_near(report.positives, truth.false_positives, truth.distinct, 3);
  EXPECT_EQ(report.negatives.errors, 0);
}

TEST(Audit, ForgetsKeysThatLeftTheWindowBeforeItHalves) {
  AnyFilter filter = window_of("exact-window", {WindowSpec::Kind::count, 200});
  Audit audit({.sample = 1, .most_bytes = 64 << 10}, filter);
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
  std::vector<Verdict> verdicts(Audit::kGhostsEvery);
  again.observe(std::span(digests).first(verdicts.size()), verdicts);
  EXPECT_EQ(again.report().ghosts.trials, 20'000 + Audit::kGhosts);
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
