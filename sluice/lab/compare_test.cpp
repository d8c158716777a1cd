#include "sluice/lab/compare.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/lab/compare_filter.hpp"
#include "sluice/lab/synthetic.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kWindow = 700;
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kEver = kNever - 1;

WindowSpec deliveries(std::uint64_t count) {
  return {WindowSpec::Kind::count, count};
}

std::vector<Digest> stream_of(StreamShape shape, std::uint64_t records) {
  std::vector<Digest> digests(records);
  SyntheticStream stream({.shape = shape, .records = records, .distinct = 0.4, .seed = 3});
  EXPECT_EQ(stream.fill(digests), records);
  return digests;
}

// The age of the last of `delivered` that is this key.
std::uint64_t age_in(const std::vector<Digest>& delivered, const Digest& digest) {
  const Digest* const end = delivered.data() + delivered.size();
  for (std::size_t age = 1; age <= delivered.size(); ++age)
    if (end[-std::ptrdiff_t(age)].lo == digest.lo && end[-std::ptrdiff_t(age)].hi == digest.hi)
      return age;
  return kNever;
}

// Ages by looking back through all deliveries; kNever where there is none.
std::vector<std::uint64_t> ages_by_search(const std::vector<Digest>& stream, std::uint64_t window) {
  std::vector<Digest> delivered;
  std::vector<std::uint64_t> ages;
  for (const Digest& digest : stream) {
    const std::uint64_t age = age_in(delivered, digest);
    if (age > window) delivered.push_back(digest);
    ages.push_back(age);
  }
  return ages;
}

// One key at a time. `most_age` is 0 for a filter that is no window.
CompareCounts counts_by_search(AnyFilter filter, const std::vector<Digest>& stream,
                               std::uint64_t window, std::uint64_t most_age) {
  const std::vector<std::uint64_t> ages = ages_by_search(stream, window);
  std::vector<Digest> own;
  CompareCounts counts{.records = stream.size()};
  for (std::size_t i = 0; i < stream.size(); ++i) {
    Verdict verdict;
    filter.observe({&stream[i], 1}, {&verdict, 1});
    const bool held = verdict == Verdict::duplicate;
    const bool distinct = ages[i] > window;
    const std::uint64_t own_age = age_in(own, stream[i]);
    const bool excused = most_age > 0 && (held ? own_age <= most_age : own_age > window);
    if (!held) own.push_back(stream[i]);
    counts.distinct += distinct;
    counts.false_negatives += !distinct && !held && !excused;
    counts.false_positives += distinct && held && !excused;
    counts.by_slack += distinct == held && excused;
  }
  return counts;
}

std::vector<CompareResult> compare(const std::vector<Digest>& stream, const CompareWish& wish,
                                   const std::vector<std::string>& filters, std::size_t piece) {
  Comparison comparison(wish.window);
  for (const std::string& name : filters) comparison.add(name, make_compared(name, wish));
  for (std::size_t at = 0; at < stream.size(); at += piece)
    comparison.feed(std::span(stream).subspan(at, std::min(piece, stream.size() - at)));
  return comparison.finish();
}

TEST(StreamTruth, IsWhatASearchFinds) {
  for (const StreamShape shape :
       {StreamShape::uniform, StreamShape::zipf, StreamShape::power, StreamShape::bursty}) {
    const std::vector<Digest> stream = stream_of(shape, 8000);
    for (const std::uint64_t window : {std::uint64_t{1}, kWindow, std::uint64_t{1'000'000}}) {
      StreamTruth truth(deliveries(window));
      const std::vector<std::uint64_t> ages = ages_by_search(stream, window);
      for (std::size_t i = 0; i < stream.size(); ++i)
        ASSERT_EQ(truth.observe(stream[i], truth.deliveries(), truth.deliveries()),
                  ages[i] > window)
            << name_of(shape) << " " << window << " " << i;
    }
  }
}

TEST(Comparison, CountsWhatASearchFinds) {
  const CompareWish wish{.wish = {.keys = 3000}, .memory = 1024};
  const std::vector<std::string> filters = {"bloom", "stable", "reservoir", "exact", "none"};
  const std::vector<Digest> stream = stream_of(StreamShape::uniform, 8000);
  const std::vector<CompareResult> results = compare(stream, wish, filters, 333);
  ASSERT_EQ(results.size(), filters.size());
  for (const CompareResult& result : results) {
    EXPECT_EQ(result.counts, counts_by_search(make_compared(result.name, wish), stream, kEver, 0))
        << result.name;
    EXPECT_EQ(result.counts.distinct, 3200u);
  }
  EXPECT_GT(results[0].counts.false_positives, 0u);
  EXPECT_EQ(results[0].counts.false_negatives, 0u);
  EXPECT_GT(results[1].counts.false_negatives, 0u);
  EXPECT_EQ(results[3].counts.false_positives + results[3].counts.false_negatives, 0u);
  EXPECT_EQ(results[4].counts.false_negatives, 4800u);
  EXPECT_EQ(results[4].counts.false_negative_rate(), 1.0);
}

TEST(Comparison, CountsWindowsWhatASearchFinds) {
  const CompareWish wish{.wish = {.fpr = 0.01}, .window = deliveries(kWindow)};
  const std::vector<Digest> stream = stream_of(StreamShape::uniform, 8000);
  const std::vector<std::string> filters = {"cohort", "exact", "apbf", "growing"};
  for (const CompareResult& result : compare(stream, wish, filters, 5000)) {
    AnyFilter filter = make_compared(result.name, wish);
    const Window* window = filter.window();
    ASSERT_EQ(window == nullptr, result.name == "growing");
    const auto most_age =
        window == nullptr ? 0
                          : static_cast<std::uint64_t>(std::ceil((1 + window->slack()) * kWindow));
    EXPECT_EQ(result.counts, counts_by_search(std::move(filter), stream, kWindow, most_age))
        << result.name;
    if (result.name != "growing") continue;
    // It forgets nothing: a key that comes again after its window is taken for a duplicate.
    EXPECT_GT(result.counts.false_positives, 1000u);
  }
}

// What windows promise: no false negative, and as few false positives as they were planned for.
TEST(Comparison, WindowsDifferFromTheTruthByTheirSlackOnly) {
  const CompareWish wish{.wish = {.fpr = 1e-6}, .window = deliveries(20'000)};
  const std::vector<Digest> stream = stream_of(StreamShape::uniform, 200'000);
  for (const CompareResult& result : compare(stream, wish, {"cohort", "apbf"}, 5000)) {
    EXPECT_EQ(result.counts.false_negatives, 0u) << result.name;
    EXPECT_LE(result.counts.false_positives, 2u) << result.name;
    EXPECT_GT(result.counts.by_slack, 100u) << result.name;
  }
}

// A window that is planned for an error which its bytes cannot hold would grow.
TEST(Comparison, WindowsKeepToTheMemory) {
  const CompareWish wish{.wish = {.fpr = 1e-6}, .window = deliveries(40'000), .memory = 131'072};
  const std::vector<Digest> stream = stream_of(StreamShape::uniform, 60'000);
  for (const CompareResult& result :
       compare(stream, wish, {"cohort", "apbf", "apbbf", "timing"}, 5000)) {
    EXPECT_LE(result.stats.bytes, 131'072u) << result.name;
    EXPECT_GE(result.stats.bytes, 131'072u * 95 / 100) << result.name;
    EXPECT_EQ(result.counts.false_negatives, 0u) << result.name;
    EXPECT_LT(result.counts.false_positive_rate(), 0.05) << result.name;
  }
}

// Points double their distance as the stream goes on, and still add up.
TEST(Comparison, PointsAddUpToTheCounts) {
  for (const std::uint64_t records : {1, 1024, 65'536, 300'001, 900'000}) {
    const std::vector<Digest> stream = stream_of(StreamShape::power, records);
    const CompareWish wish{.wish = {.keys = 1000}, .memory = 4096};
    const CompareResult result = compare(stream, wish, {"bloom"}, 10'000).front();
    EXPECT_LE(result.points.size(), Comparison::kMostPoints);
    CompareCounts sum;
    for (const CompareCounts& point : result.points) {
      sum += point;
      if (&point != &result.points.back())
        EXPECT_EQ(point.records, result.points.front().records);
      else
        EXPECT_LE(point.records, result.points.front().records);
    }
    EXPECT_EQ(sum, result.counts);
    EXPECT_EQ(sum.records, records);
    EXPECT_EQ(result.points.size() >= Comparison::kMostPoints / 2, records > 300'000);
  }
}

TEST(Comparison, MemoryIsTheSizeOfWhatHasOne) {
  CompareWish wish{.wish = {.keys = 100'000}, .memory = 65'536};
  for (const char* name : {"bloom", "bloom,layout=classic", "counting", "stable", "reservoir"})
    for (const std::uint64_t memory : {50'000, 65'536, 100'001}) {
      wish.memory = memory;
      const std::uint64_t bytes = make_compared(name, wish).stats().bytes;
      EXPECT_LE(bytes, memory) << name;
      EXPECT_GE(bytes, memory * 95 / 100) << name;
    }
  EXPECT_NEAR(static_cast<double>(make_compared("bloom,bytes=32KiB", wish).stats().bytes), 32'768,
              4096);
  EXPECT_NO_THROW(make_compared("growing", wish));
  EXPECT_NO_THROW(make_compared("dynamic", wish));
  wish.window = deliveries(10'000);
  EXPECT_THROW(make_compared("blom", wish), BadParameters);
  wish.memory = 1024;
  EXPECT_THROW(make_compared("cohort", wish), BadParameters);
  EXPECT_THROW(make_compared("timer", wish), BadParameters);
  EXPECT_THROW(make_compared("bloom,", wish), BadParameters);
}

TEST(Comparison, OfNothingIsNothing) {
  Comparison comparison(std::nullopt);
  comparison.add("exact", make_compared("exact", {}));
  const CompareResult result = comparison.finish().front();
  EXPECT_EQ(result.counts, CompareCounts{});
  EXPECT_EQ(result.counts.false_positive_rate(), 0);
  EXPECT_TRUE(result.points.empty());
}

constexpr Nanoseconds kSecond = 1'000'000'000;

struct TimedStream {
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
};

// Twenty records per second, some late, and now and then a wild clock.
TimedStream timed_stream(std::size_t records) {
  TimedStream stream{stream_of(StreamShape::uniform, records), {}};
  SplitMix64 random(9);
  for (std::size_t i = 0; i < records; ++i) {
    const auto now = static_cast<Nanoseconds>(i) * kSecond / 20 + 1000 * kSecond;
    const auto back = static_cast<Nanoseconds>(random.next() % 120) * kSecond;
    const bool wild = i > 100 && random.next() % 500 == 0;
    stream.times.push_back(wild ? now + 5000 * kSecond : random.next() % 8 == 0 ? now - back : now);
  }
  return stream;
}

// By looking back through all deliveries: distinct, duplicates, late, not believed.
std::array<std::uint64_t, 4> counts_by_search(const TimedStream& stream, const WindowSpec& window) {
  const auto size = static_cast<Nanoseconds>(window.size);
  EventClock clock;
  const ClockLimits limits(window.size, window.size);
  std::vector<std::pair<Digest, Nanoseconds>> delivered;
  std::array<std::uint64_t, 4> counts{};
  for (std::size_t i = 0; i < stream.digests.size(); ++i) {
    Nanoseconds time = stream.times[i];
    const EventClock::Reading reading = clock.read(stream.digests[i], time, limits);
    if (reading == EventClock::Reading::replaced) delivered.clear();
    const bool landmark = window.kind == WindowSpec::Kind::landmark;
    const bool over = landmark && time / size < clock.now() / size;
    if (reading == EventClock::Reading::disbelieved) {
      ++counts[3];
    } else if (reading == EventClock::Reading::late || over) {
      ++counts[2];
    } else {
      const bool seen = std::ranges::any_of(delivered, [&](const auto& delivery) {
        if (delivery.first != stream.digests[i]) return false;
        return landmark ? delivery.second / size == clock.now() / size
                        : clock.now() - delivery.second < size;
      });
      ++counts[seen];
      if (!seen) delivered.emplace_back(stream.digests[i], time);
    }
  }
  return counts;
}

TEST(Comparison, ByTimeFindsWhatASearchFinds) {
  const TimedStream stream = timed_stream(8000);
  for (const WindowSpec::Kind kind : {WindowSpec::Kind::time, WindowSpec::Kind::landmark}) {
    const CompareWish wish{.wish = {.fpr = 0.01},
                           .window = WindowSpec{kind, 100ull * 1'000'000'000},
                           .window_keys = 2500};
    Comparison comparison(wish.window);
    const std::vector<std::string> filters = {"exact", "cohort", "apbf", "growing", "none"};
    for (const std::string& name : filters) comparison.add(name, make_compared(name, wish));
    for (std::size_t at = 0; at < stream.digests.size(); at += 777) {
      const std::size_t count = std::min<std::size_t>(777, stream.digests.size() - at);
      comparison.feed(std::span(stream.digests).subspan(at, count),
                      std::span(stream.times).subspan(at, count));
    }
    const std::vector<CompareResult> results = comparison.finish();
    const CompareTruth truth = comparison.truth();
    const auto [distinct, duplicates, late, disbelieved] = counts_by_search(stream, *wish.window);
    EXPECT_EQ(truth.counts.distinct, distinct);
    EXPECT_EQ(truth.counts.duplicates(), duplicates);
    EXPECT_EQ(truth.late, late);
    EXPECT_EQ(truth.disbelieved, disbelieved);
    EXPECT_GT(late, 10u);
    EXPECT_GT(disbelieved, 1u);
    EXPECT_LE(truth.most_keys, 2100u);
    EXPECT_GE(truth.most_keys, 1000u);
    EXPECT_GT(truth.bytes, 0u);
    // Exact is right but for its slack; the others make no false negative, and few others.
    EXPECT_EQ(results[0].counts.false_positives + results[0].counts.false_negatives, 0u);
    for (const std::size_t i : {1u, 2u}) {
      EXPECT_EQ(results[i].counts.false_negatives, 0u) << results[i].name;
      EXPECT_LT(results[i].counts.false_positive_rate(), 0.02) << results[i].name;
    }
    EXPECT_GT(results[3].counts.false_positives, 500u);
    EXPECT_EQ(results[4].counts.false_negatives, duplicates);
    EXPECT_TRUE(results[4].forgets);
    EXPECT_FALSE(results[1].forgets);
  }
}

// The first record's clock was wrong, and the second replaces it: what came before is forgotten.
TEST(Comparison, ByTimeStartsAgainWhenTheFirstClockWasWrong) {
  const WindowSpec window{WindowSpec::Kind::time, 100ull * 1'000'000'000};
  Comparison comparison(window);
  const CompareWish wish{.window = window};
  comparison.add("exact", make_compared("exact", wish));
  const std::vector<Digest> digests = {{1, 1}, {2, 2}, {1, 1}, {3, 3}, {1, 1}};
  const std::vector<Nanoseconds> times = {100'000 * kSecond, 0, 10 * kSecond, 60 * kSecond,
                                          150 * kSecond};
  comparison.feed(digests, times);
  const CompareResult result = comparison.finish().front();
  EXPECT_EQ(result.counts.records, 5u);
  EXPECT_EQ(result.counts.distinct, 5u);
  EXPECT_EQ(result.counts.false_positives + result.counts.false_negatives, 0u);
  EXPECT_EQ(comparison.truth().most_keys, 3u);
}

TEST(Comparison, MemoryDecidesAboutWindowsOfTime) {
  const CompareWish wish{.window = WindowSpec{WindowSpec::Kind::time, 60ull * 1'000'000'000},
                         .window_keys = 10'000,
                         .memory = 64 << 10};
  for (const char* name : {"cohort", "apbf", "apbbf", "timing", "bloom"}) {
    EXPECT_TRUE(memory_decides(name, wish));
    const std::uint64_t bytes = make_compared(name, wish).stats().bytes;
    EXPECT_LE(bytes, *wish.memory) << name;
    EXPECT_GE(bytes, *wish.memory * 95 / 100) << name;
  }
  for (const char* name : {"exact", "growing", "cohort,fpr=0.01", "bloom,bytes=1KiB"})
    EXPECT_FALSE(memory_decides(name, wish)) << name;
}

}  // namespace
}  // namespace sluice
