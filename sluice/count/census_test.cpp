#include "sluice/count/census.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using testing_support::digest_of;

constexpr std::uint64_t kAmple = std::uint64_t{64} << 20;

// Feeds keys that are numbers, in batches of different sizes.
void feed(Census& census, const std::vector<std::uint64_t>& keys,
          const std::vector<std::int64_t>& times = {}) {
  std::vector<Digest> digests;
  std::vector<std::string> texts;
  for (const std::uint64_t key : keys) {
    digests.push_back(digest_of(key));
    texts.push_back("key " + std::to_string(key));
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  for (std::size_t begin = 0, size = 1; begin < keys.size();
       begin += size, size = size % 2048 + 97) {
    const std::size_t count = std::min(size, keys.size() - begin);
    census.feed(
        std::span(digests).subspan(begin, count),
        times.empty() ? std::span<const std::int64_t>() : std::span(times).subspan(begin, count),
        std::span(views).subspan(begin, count));
    if (count < size) break;
  }
}

TEST(Census, IsExactWhileAllKeysFit) {
  Census census(Timeline::Axis::records, kAmple);
  std::vector<std::uint64_t> keys;
  std::map<std::uint64_t, std::uint64_t> times;
  SplitMix64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t range = random.next() % 8'000 + 1;
    keys.push_back(random.next() % range);
    ++times[keys.back()];
  }
  feed(census, keys);
  EXPECT_TRUE(census.exact());
  EXPECT_EQ(census.records(), keys.size());
  EXPECT_EQ(census.distinct().value, static_cast<double>(times.size()));
  EXPECT_TRUE(census.distinct().exact());
  EXPECT_EQ(census.duplicates().value, static_cast<double>(keys.size() - times.size()));
  std::vector<std::uint64_t> counts;
  for (const auto& [key, count] : times) counts.push_back(count);
  std::ranges::sort(counts, std::greater<>());
  const std::vector<TopKey> top = census.top().top(20);
  ASSERT_EQ(top.size(), 20U);
  for (std::size_t i = 0; i < top.size(); ++i) {
    EXPECT_EQ(top[i].least, counts[i]);
    EXPECT_EQ(top[i].most, counts[i]);
    EXPECT_EQ(top[i].most, times[std::stoull(top[i].key.substr(4))]);
  }
  EXPECT_LE(census.top().floor(), counts[TopKeys::kKeys - 1]);
  EXPECT_EQ(census.top().most_beside(top), counts[20]);
}

// By the definition of a time window: a record is held back if its key's last record that was let through is
// less than the window ago.
double held_share(const std::vector<std::uint64_t>& keys, const std::vector<std::int64_t>& times,
                  std::int64_t window) {
  std::map<std::uint64_t, std::int64_t> last;
  std::map<std::uint64_t, bool> seen;
  double held = 0, duplicates = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    duplicates += seen[keys[i]];
    seen[keys[i]] = true;
    const auto found = last.find(keys[i]);
    if (found != last.end() && times[i] - found->second < window)
      ++held;
    else
      last[keys[i]] = times[i];
  }
  return held / duplicates;
}

TEST(Census, TellsWhatEachWindowHoldsBack) {
  Census census(Timeline::Axis::time, kAmple);
  std::vector<std::uint64_t> keys;
  std::vector<std::int64_t> times;
  SplitMix64 random(2);
  std::int64_t now = 1'700'000'000'000'000'000;
  for (int i = 0; i < 30'000; ++i) {
    // Some repeats come after exactly a window.
    now += static_cast<std::int64_t>(random.next() % 5) * 5'000'000'000;
    keys.push_back(random.next() % (random.next() % 3'000 + 1));
    times.push_back(now);
  }
  feed(census, keys, times);
  const std::vector<WindowShare> windows = census.windows();
  ASSERT_EQ(windows.size(), 8U);  // the stream takes three days and a half
  for (const WindowShare& window : windows) {
    EXPECT_TRUE(window.share.exact());
    EXPECT_DOUBLE_EQ(window.share.value, held_share(keys, times, window.size)) << window.size;
  }
  EXPECT_EQ(windows.back().share.value, 1);
}

// By the definition of a window of records: the last n of them.
TEST(Census, AWindowOfRecordsHasAsManyAsItSays) {
  for (const std::uint64_t between : {998U, 999U, 1000U}) {
    Census census(Timeline::Axis::records, kAmple);
    std::vector<std::uint64_t> keys = {1};
    for (std::uint64_t i = 0; i < between; ++i) keys.push_back(2 + i);
    keys.push_back(1);
    feed(census, keys);
    ASSERT_EQ(census.windows().front().size, 1000);
    EXPECT_EQ(census.windows().front().share.value, between < 1000 ? 1 : 0) << between;
    EXPECT_TRUE(census.windows().front().share.exact());
  }
}

// Bursts: whole stretches in which no counted key is new, or in which all keys of the sample behave alike.
TEST(Census, NoEstimateHasAnErrorOfNothing) {
  Census census(Timeline::Axis::records, Census::kLeastBytes);
  constexpr std::uint64_t kKeys = 400'000;
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 0; key < kKeys; ++key) keys.insert(keys.end(), 2, key);
  keys.insert(keys.end(), 100'000, 7);
  feed(census, keys);
  ASSERT_FALSE(census.exact());
  for (const WindowShare& window : census.windows()) EXPECT_FALSE(window.share.exact());
  const Timeline::Points points = census.timeline().points(20);
  for (const Timeline::Point& point : points.points) {
    const Estimate share = point.duplicate_share();
    // The first stretch may have ended while all keys fit.
    EXPECT_TRUE(point.begin == 0 || !share.exact());
    const double truth = point.begin >= static_cast<std::int64_t>(2 * kKeys) ? 1 : 0.5;
    EXPECT_LE(std::abs(share.value - truth), 4 * share.standard_error) << point.begin;
  }
  EXPECT_EQ(points.points.back().distinct, 0);
  EXPECT_LT(points.points.back().duplicate_share().standard_error, 0.1);
}

TEST(Census, WithoutARepeatNoWindowHoldsBackAny) {
  Census census(Timeline::Axis::records, kAmple);
  EXPECT_TRUE(census.windows().empty());
  EXPECT_EQ(census.duplicates().value, 0);
  feed(census, {1, 2, 3});
  EXPECT_TRUE(census.windows().empty());
  EXPECT_TRUE(census.top().top(10).empty());
}

TEST(Census, TimesMayBeAnything) {
  Census census(Timeline::Axis::time, kAmple);
  constexpr auto kLow = std::numeric_limits<std::int64_t>::min();
  constexpr auto kHigh = std::numeric_limits<std::int64_t>::max();
  feed(census, {1, 1, 1, 2, 2}, {kLow, kHigh, kLow, 0, kHigh});
  EXPECT_EQ(census.distinct().value, 2);
  EXPECT_LE(census.timeline().points(20).points.size(), 20U);
  for (const WindowShare& window : census.windows()) EXPECT_LE(window.share.value, 1);
}

TEST(Census, StaysWithinItsMemory) {
  Census census(Timeline::Axis::records, Census::kLeastBytes);
  std::vector<std::uint64_t> keys(200'000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  feed(census, keys);
  EXPECT_FALSE(census.exact());
  EXPECT_GT(census.one_in(), 1U);
  EXPECT_LE(census.bytes(), Census::kLeastBytes);
}

TEST(TopKeys, BoundsHoldWhenKeysAreReplaced) {
  TopKeys top(kRecordWindows);
  std::map<std::uint64_t, std::uint64_t> times;
  SplitMix64 random(3);
  constexpr std::uint64_t kRecords = 300'000;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    // Every fourth record has one of 50 keys.
    const std::uint64_t key = i % 4 == 0 ? random.next() % 50 : 1000 + random.next() % 100'000;
    ++times[key];
    top.observe(digest_of(key), std::to_string(key), static_cast<std::int64_t>(i));
  }
  EXPECT_LE(top.floor(), kRecords / TopKeys::kKeys + 2);
  std::size_t frequent = 0;
  for (const TopKey& key : top.top(TopKeys::kKeys)) {
    const std::uint64_t truth = times[std::stoull(key.key)];
    EXPECT_LE(key.least, truth);
    EXPECT_GE(key.most, truth);
    frequent += std::stoull(key.key) < 50;
  }
  EXPECT_EQ(frequent, 50U);
  // The 50 are the first of the list.
  for (const TopKey& key : top.top(50)) EXPECT_LT(std::stoull(key.key), 50U);
}

TEST(TopKeys, LongKeysAreCut) {
  TopKeys top(kRecordWindows);
  const std::string longest(TopKeys::kKeyBytes, 'x'), longer = longest + "y";
  for (int i = 0; i < 3; ++i) {
    top.observe(digest_of(1), longest, i);
    top.observe(digest_of(2), longer, i);
  }
  const std::vector<TopKey> keys = top.top(2);
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].key, longest);
  EXPECT_EQ(keys[1].key, longest);
  EXPECT_NE(keys[0].cut, keys[1].cut);
}

TEST(Timeline, AddsUpWhateverTheNumberOfStretches) {
  Timeline line(Timeline::Axis::records);
  constexpr std::int64_t kRecords = 1'000'000;
  for (std::int64_t i = 0; i < kRecords; ++i) line.add(i, i < kRecords / 2 ? 1 : 0);
  for (const std::size_t most : {std::size_t{2}, std::size_t{20}, std::size_t{200}}) {
    const Timeline::Points points = line.points(most);
    EXPECT_LE(points.points.size(), most);
    EXPECT_GE(points.points.size() * 6, most);
    std::uint64_t records = 0;
    double distinct = 0;
    for (const Timeline::Point& point : points.points) {
      records += point.records;
      distinct += point.distinct;
    }
    EXPECT_EQ(records, static_cast<std::uint64_t>(kRecords));
    EXPECT_EQ(distinct, kRecords / 2);
    EXPECT_EQ(points.outside, 0U);
    if (most < 20) continue;
    EXPECT_EQ(points.points.front().duplicate_share().value, 0);
    EXPECT_EQ(points.points.back().duplicate_share().value, 1);
    EXPECT_TRUE(points.points.back().duplicate_share().exact());
  }
}

TEST(Timeline, AFewWildTimesDoNotHideTheRest) {
  constexpr std::int64_t kMinute = 60'000'000'000, kStart = 1'700'000'000'000'000'000;
  Timeline line(Timeline::Axis::time);
  for (std::int64_t i = 0; i < 100'000; ++i) line.add(kStart + i * kMinute / 1000, 1);
  line.add(0, 1);
  line.add(std::int64_t{1} << 61, 1);
  line.add(-(std::int64_t{1} << 61), 1);
  const Timeline::Points points = line.points(20);
  EXPECT_EQ(points.outside, 3U);
  EXPECT_GE(points.points.size(), 4U);
  EXPECT_LE(points.points.size(), 20U);
  EXPECT_LT(line.span(), 102 * kMinute);
  EXPECT_GE(line.span(), 99 * kMinute);
}

}  // namespace
}  // namespace sluice
