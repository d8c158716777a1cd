#include "sluice/stream/compare.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/stream/compare_filter.hpp"
#include "sluice/stream/synthetic.hpp"
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
  const auto found = std::find(delivered.rbegin(), delivered.rend(), digest);
  if (found == delivered.rend()) return kNever;
  return static_cast<std::uint64_t>(found - delivered.rbegin()) + 1;
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
    const Window* window = filter.as<Window>();
    ASSERT_EQ(window == nullptr, result.name == "growing");
    const auto most_age =
        window == nullptr ? 0
                          : static_cast<std::uint64_t>(std::ceil((1 + window->slack()) * kWindow));
    EXPECT_EQ(result.counts, counts_by_search(std::move(filter), stream, kWindow, most_age))
        << result.name;
    if (result.name != "growing") continue;
    // It forgets nothing: whatever comes again after its window is taken for a duplicate.
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
    EXPECT_LT(result.counts.false_positive_rate(), 0.3) << result.name;
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

}  // namespace
}  // namespace sluice
