// What a window holds back past its end, as the slack meter counts and predicts it, against exact truth:
// the time or the number of the record of the same key that was let through last (with `refreshed`: came
// last). Each stream has repeats inside the window, about its end and beyond. Seeds are fixed.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/judge/slack_meter.hpp"
#include "sluice/lab/zipf.hpp"
#include "sluice/plan/slack_cost.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

using testing_support::count_of;

constexpr double kWindow = 1000;  // seconds, or keys
constexpr double kTolerance = 4;  // standard errors

struct Event {
  double time;
  std::uint64_t key;
  friend bool operator<(const Event& a, const Event& b) { return a.time > b.time; }
};

using Stream = std::vector<Event>;

// Keys start at random, and each comes again `repeats` times after random times.
Stream renewals(double rate, int repeats, std::size_t count, SplitMix64 random,
                const std::function<double(SplitMix64&)>& interval) {
  Stream stream;
  std::priority_queue<Event> due;
  std::unordered_map<std::uint64_t, int> left;
  double start = 0;
  for (std::uint64_t next = 0; stream.size() < count;) {
    if (due.empty() || start < due.top().time) {
      due.push({start, next});
      left[next++] = repeats;
      start += -std::log(1 - random.next_unit()) / rate;
      continue;
    }
    const Event event = due.top();
    due.pop();
    stream.push_back(event);
    if (left[event.key]-- > 0) due.push({event.time + interval(random), event.key});
  }
  return stream;
}

Stream drawn(double rate, std::size_t count, SplitMix64 random,
             const std::function<std::uint64_t(SplitMix64&)>& key) {
  Stream stream;
  for (double now = 0; stream.size() < count;) {
    now += -std::log(1 - random.next_unit()) / rate;
    stream.push_back({now, key(random)});
  }
  return stream;
}

struct Case {
  std::string name;
  std::function<Stream(std::size_t, SplitMix64)> make;
  bool smooth = false;  // repeats are as frequent after the window's end as before it
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const double interval : {0.9, 0.97, 0.99, 1.0, 1.01, 1.03, 1.1})
    all.push_back({"every " + std::to_string(interval), [=](std::size_t count, SplitMix64 random) {
                     return renewals(4, 3, count, random,
                                     [=](SplitMix64&) { return interval * kWindow; });
                   }});
  all.push_back({"evenly up to two windows",
                 [](std::size_t count, SplitMix64 random) {
                   return renewals(4, 3, count, random,
                                   [](SplitMix64& unit) { return 2 * kWindow * unit.next_unit(); });
                 },
                 true});
  // Of each key a Poisson process.
  all.push_back({"at random",
                 [](std::size_t count, SplitMix64 random) {
                   return drawn(4, count, random,
                                [](SplitMix64& unit) { return unit.next() % 4'000; });
                 },
                 true});
  all.push_back({"Zipf", [](std::size_t count, SplitMix64 random) {
                   const ZipfSampler zipf(20'000, 1);
                   return drawn(4, count, random,
                                [&](SplitMix64& unit) { return zipf.draw(unit); });
                 }});
  return all;
}

Digest digest_of(std::uint64_t key) {
  SplitMix64 random(key * 2 + 1);
  return {random.next(), random.next()};
}

// Each record comes up to so many seconds after its time.
Stream out_of_order(Stream stream, double most, SplitMix64 random) {
  for (Event& event : stream) event.time -= most * random.next_unit();
  return stream;
}

struct Outcome {
  std::uint64_t counted = 0, weight = 1, predicted = 0, unknown = 0, truth = 0;
  // Keys are in the sample or not, with all their records: one of `weight` is. Of a count with a weight w
  // the variance is w - 1 times the sum over all keys of the square of what each adds to it.
  double squares = 0;
  double standard_error() const { return std::sqrt(static_cast<double>(weight - 1) * squares); }
};

class Metered {
 public:
  Metered(const std::string& filter, Anchor anchor, bool by_time, std::uint64_t keys = 12'000)
      : anchor_(anchor),
        window_(Window::make({.spec = by_time ? WindowSpec{WindowSpec::Kind::time, kNanoseconds}
                                              : WindowSpec{WindowSpec::Kind::count, 4800},
                              .anchor = anchor,
                              .filter = filter,
                              .keys = keys})),
        meter_(window_) {}

  void judge(std::span<const Event> events) {
    std::vector<Digest> digests;
    std::vector<Nanoseconds> times;
    for (const Event& event : events) {
      digests.push_back(digest_of(event.key));
      times.push_back(static_cast<Nanoseconds>(event.time * 1e9));
    }
    std::vector<Verdict> verdicts(events.size());
    const auto late = std::make_unique<bool[]>(events.size());
    const std::span<bool> lates(late.get(), events.size());
    ASSERT_EQ(window_.judge(digests, times, verdicts, lates), events.size());
    meter_.look(digests, verdicts, times, lates);
    for (std::size_t i = 0; i < events.size(); ++i)
      if (!lates[i]) compare(events[i].key, times[i], verdicts[i] == Verdict::duplicate);
  }
  double delivered() const { return delivered_; }
  Outcome outcome() const {
    Outcome outcome{.counted = meter_.counted(),
                    .weight = meter_.weight(),
                    .predicted = meter_.predicted(),
                    .unknown = meter_.unknown()};
    for (const auto& [key, lost] : lost_) {
      outcome.truth += lost;
      outcome.squares += static_cast<double>(lost) * static_cast<double>(lost);
    }
    return outcome;
  }

 private:
  static constexpr std::uint64_t kNanoseconds = 1'000'000'000'000;

  // The n-th last is still inside a window of n keys.
  void compare(std::uint64_t key, Nanoseconds time, bool duplicate) {
    const WindowSpec& spec = window_.params().spec;
    now_ = spec.by_time() ? std::max(now_, time) : number_;
    const auto before = last_.find(key);
    delivered_ += !duplicate;
    if (duplicate && before != last_.end() &&
        now_ - before->second >= static_cast<std::int64_t>(spec.size) + !spec.by_time())
      ++lost_[key];
    if (duplicate && anchor_ == Anchor::delivered) return;
    const std::int64_t written = spec.by_time() ? time : number_;
    last_[key] = before == last_.end() ? written : std::max(before->second, written);
    ++number_;
  }

  Anchor anchor_;
  Window window_;
  SlackMeter meter_;
  std::unordered_map<std::uint64_t, std::int64_t> last_;
  std::unordered_map<std::uint64_t, std::uint64_t> lost_;
  std::int64_t number_ = 0, now_ = 0;
  double delivered_ = 0;
};

Outcome run(const std::string& filter, Anchor anchor, bool by_time, std::span<const Event> stream,
            std::uint64_t keys = 12'000, std::size_t batch = 500) {
  Metered run(filter, anchor, by_time, keys);
  for (std::size_t at = 0; at < stream.size(); at += batch)
    run.judge(stream.subspan(at, std::min(batch, stream.size() - at)));
  return run.outcome();
}

// All keys are in the sample at first; then a half, a fourth and so on, chosen by key.
void expect_truth(const Outcome& outcome, bool smooth) {
  const auto truth = static_cast<double>(outcome.truth);
  const auto weight = static_cast<double>(outcome.weight);
  EXPECT_NEAR(static_cast<double>(outcome.counted), truth, kTolerance * outcome.standard_error());
  // Two counts, each in the sample. 5 %: with `refreshed`, later repeats are a little fewer.
  if (smooth) {
    EXPECT_NEAR(static_cast<double>(outcome.predicted), truth,
                kTolerance * std::sqrt(6 * weight * (truth + 1)) + 0.05 * truth);
  }
}

TEST(SlackError, CountsWhatIsPastTheWindow) {
  for (const Case& it : cases()) {
    const bool zipf = it.name == "Zipf";
    const Stream stream = it.make(count_of(20'000, zipf ? 60'000 : 400'000), SplitMix64(8));
    for (const char* filter : {"cohort", "exact-window,generations=24", "apbf", "timing"})
      for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed})
        for (const bool by_time : {true, false}) {
          SCOPED_TRACE(it.name + " " + filter + (anchor == Anchor::refreshed ? " refreshed" : "") +
                       (by_time ? " time" : " count"));
          expect_truth(run(filter, anchor, by_time, stream), it.smooth);
        }
  }
}

// Once the sample is small, most records that move the clock are not in it. Ages are counted from the
// latest record all the same.
TEST(SlackError, CountsRecordsThatComeOutOfOrder) {
  const std::size_t count = count_of(200'000, 400'000);
  const ZipfSampler zipf(20'000, 1);
  const Stream uniform =
      drawn(4, count, SplitMix64(11), [](SplitMix64& unit) { return unit.next() % 4'000; });
  const Stream skewed =
      drawn(4, count, SplitMix64(12), [&](SplitMix64& unit) { return zipf.draw(unit); });
  for (const Stream* const stream : {&uniform, &skewed})
    for (const double seconds : {0.0, 90.0, 400.0})
      for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
        SCOPED_TRACE((stream == &uniform ? "uniform" : "Zipf") + std::string(" by ") +
                     std::to_string(seconds) +
                     (anchor == Anchor::refreshed ? " refreshed" : " delivered"));
        const Outcome outcome = run("cohort", anchor, true,
                                    out_of_order(*stream, seconds, SplitMix64(13)), 12'000, 2048);
        EXPECT_GT(outcome.truth, 300u);
        EXPECT_GE(outcome.weight, 2u);
        // Of a Zipf stream a few frequent keys lose the most, which may be in the sample or not.
        if (stream == &uniform) {
          EXPECT_GE(outcome.weight, 4u);
          EXPECT_LT(outcome.standard_error(), 0.1 * static_cast<double>(outcome.truth));
        }
        expect_truth(outcome, false);
      }
}

// Filters of bits report a key in the slack by chance, the more often the fuller they are. Each of 4,000
// keys comes every 1,000 seconds on average, and some 2,000 are let through per window.
TEST(SlackError, PredictsWhatFiltersOfBitsKeepAtTheirFill) {
  const Stream stream = drawn(4, count_of(60'000, 400'000), SplitMix64(14),
                              [](SplitMix64& unit) { return unit.next() % 4'000; });
  for (const char* filter : {"apbf", "apbf,k=4,l=7,parts=4", "apbbf", "apbbf,k=4,l=12,bits=4",
                             "apbbf,layout=column", "apbbf,layout=line"})
    for (const std::uint64_t keys : {2'200, 4'000, 20'000})
      for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
        SCOPED_TRACE(filter + std::string(" for ") + std::to_string(keys) +
                     (anchor == Anchor::refreshed ? " refreshed" : " delivered"));
        expect_truth(run(filter, anchor, true, stream, keys), true);
      }
}

// A meter that starts with a loaded state does not know the times of the keys in it.
TEST(SlackError, DoesNotCountWhatItCannotKnow) {
  const WindowSpec seconds{WindowSpec::Kind::time, 1'000'000'000'000};
  Window window = Window::make({.spec = seconds, .filter = "cohort", .keys = 12'000});
  const std::vector<Digest> keys = [] {
    std::vector<Digest> made;
    for (std::uint64_t key = 0; key < 5'000; ++key) made.push_back(digest_of(key));
    return made;
  }();
  std::vector<Verdict> verdicts(keys.size());
  const auto late = std::make_unique<bool[]>(keys.size());
  const auto judge = [&](std::int64_t second, SlackMeter& meter) {
    const std::vector<Nanoseconds> times(keys.size(), second * 1'000'000'000);
    const std::span<bool> lates(late.get(), keys.size());
    ASSERT_EQ(window.judge(keys, times, verdicts, lates), keys.size());
    meter.look(keys, verdicts, times, lates);
  };
  SlackMeter first(window);
  judge(0, first);
  EXPECT_EQ(first.unknown(), 0u);
  SlackMeter loaded(window);
  judge(500, loaded);
  judge(1010, loaded);
  EXPECT_EQ(count_duplicates(verdicts), keys.size());
  judge(1010, first);
  EXPECT_EQ(loaded.counted() + loaded.predicted(), 0u);
  EXPECT_NEAR(static_cast<double>(loaded.unknown()), 2.0 * static_cast<double>(keys.size()),
              kTolerance * 2 * std::sqrt(static_cast<double>((loaded.weight() - 1) * keys.size())));
  const std::uint64_t unknown = loaded.unknown();
  // All have left, and come anew: from now on everything is known.
  judge(1100, loaded);
  judge(1200, loaded);
  EXPECT_EQ(count_duplicates(verdicts), keys.size());
  EXPECT_EQ(loaded.unknown(), unknown);
}

// Keys that come back after exactly a window are all held back, and none is predicted; of those a little
// earlier it is the other way round.
TEST(SlackError, CountsWhatNoPredictionForesees) {
  const auto every = [](double interval) {
    return renewals(4, 3, 20'000, SplitMix64(8), [=](SplitMix64&) { return interval * kWindow; });
  };
  const Outcome after = run("cohort", Anchor::delivered, true, every(1.0));
  EXPECT_GT(after.truth, 5000u);
  EXPECT_EQ(after.predicted, 0u);
  const Outcome before = run("cohort", Anchor::delivered, true, every(0.99));
  EXPECT_EQ(before.counted, 0u);
  EXPECT_GT(before.predicted, 1000u);
}

// What a plan says that slack will cost, of keys that come at random: each of 20,000 keys every 1,000
// seconds on average, after two windows in which the stream becomes steady. Within four standard errors,
// where repeats of one key come in groups of up to three.
TEST(SlackError, CostsWhatThePlanSays) {
  const Stream stream = drawn(20, count_of(160'000, 1'200'000), SplitMix64(10),
                              [](SplitMix64& unit) { return unit.next() % 20'000; });
  const auto steady = std::span<const Event>(stream).subspan(40'000);
  const WindowSpec interval{WindowSpec::Kind::time, 1'000'000'000'000};
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
    const Plan plan = sluice::plan({.window = interval, .anchor = anchor, .rate = 12}).choice();
    Metered run(plan.filter, anchor, true);
    run.judge(std::span(stream).first(40'000));
    const double lost_before = static_cast<double>(run.outcome().truth);
    const double delivered_before = run.delivered();
    for (std::size_t at = 0; at < steady.size(); at += 500) run.judge(steady.subspan(at, 500));
    const double lost = static_cast<double>(run.outcome().truth) - lost_before;
    const double expected = slack_cost(plan, interval).lost * (run.delivered() - delivered_before);
    EXPECT_GT(lost, 500);
    EXPECT_NEAR(expected, lost, kTolerance * std::sqrt(3 * lost));
  }
}

TEST(SlackError, WarnsOfKeysThatComeJustInTheSlack) {
  const Plan plan = sluice::plan({.window = WindowSpec{WindowSpec::Kind::count, 10'000}}).choice();
  const auto periodic = [&](std::uint64_t keys) {
    return slack_cost(plan, {WindowSpec::Kind::count, keys}).periodic;
  };
  EXPECT_FALSE(periodic(9'999));
  EXPECT_TRUE(periodic(10'000));
  EXPECT_TRUE(periodic(10'400));
  EXPECT_FALSE(periodic(10'500));
  EXPECT_THROW(slack_cost(plan, {WindowSpec::Kind::time, 1000}), BadParameters);
}

}  // namespace
}  // namespace sluice
