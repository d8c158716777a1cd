// The numbers of a Census that is too small for its stream, pinned to the exact ones.
//
// Each case counts kRounds streams of the same shape, each under its own seed, in the least memory. What a
// Census says of its own error is tested: the errors in units of the standard error that it reports have
// mean 0 and mean square 1, and its intervals hold the truth as often as 95 % says. All seeds are fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/count/census.hpp"
#include "sluice/lab/synthetic.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

using testing_support::count_of;

struct Shape {
  StreamShape shape;
  double distinct;
  std::uint64_t records = 200'000;
  // Each record has one of so many keys, drawn alike: few come often, and repeats come late; and all keys fit
  // in four times the least memory, so that only the windows are estimated. None: `shape`.
  std::uint64_t among = 0;
  // Half of the records have one of so many other keys, key k in proportion to 1/k. So hundreds of keys are too
  // rare to be certainly among the most repeated ones, but decide the result by being in the sample or not.
  double harmonic = 0;
  // So many in a hundred records have keys of their own; the others have one of 30,000 keys, key k in
  // proportion to k^-1.2. So a key that is too rare to be certainly among the most repeated ones may stand for
  // more repeats, if it is in the sample, than there are.
  unsigned fresh = 0;
};

std::vector<Digest> stream_of(const Shape& shape) {
  std::vector<Digest> stream(shape.records);
  if (shape.fresh != 0) {
    std::vector<double> sums(30'000);
    double sum = 0;
    for (std::size_t k = 0; k < sums.size(); ++k)
      sums[k] = sum += std::pow(static_cast<double>(k + 1), -1.2);
    SplitMix64 random(7);
    for (std::size_t i = 0; i < stream.size(); ++i) {
      std::uint64_t number = sums.size() + i;
      if (random.next() % 100 >= shape.fresh) {
        const double at = static_cast<double>(random.next()) * 0x1p-64 * sum;
        number = static_cast<std::uint64_t>(std::ranges::lower_bound(sums, at) - sums.begin());
      }
      SplitMix64 key(number);
      stream[i] = {key.next(), key.next()};
    }
    return stream;
  }
  if (shape.among != 0) {
    SplitMix64 random(7);
    for (Digest& digest : stream) {
      std::uint64_t number = random.next() % shape.among;
      if (shape.harmonic > 0 && random.next() % 2 == 0) {
        const double share = static_cast<double>(random.next()) * 0x1p-64;
        number = shape.among + static_cast<std::uint64_t>(std::pow(shape.harmonic, share));
      }
      SplitMix64 key(number);
      digest = {key.next(), key.next()};
    }
    return stream;
  }
  SyntheticStream made(
      {.shape = shape.shape, .records = shape.records, .distinct = shape.distinct, .seed = 7});
  for (std::size_t filled = 0; filled < stream.size();)
    filled += made.fill(std::span(stream).subspan(filled));
  return stream;
}

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << name_of(shape.shape) << " " << shape.distinct << " of " << shape.records;
}

class CountError : public testing::TestWithParam<Shape> {};

struct Key {
  std::uint64_t records = 0;
  RepeatWindows windows;
};

struct HashDigest {
  std::size_t operator()(const Digest& digest) const noexcept { return digest.lo; }
};
using Truth = std::unordered_map<Digest, Key, HashDigest>;

// Another secret: other digests of the same keys, so that another sample is drawn.
Digest under(std::uint64_t secret, const Digest& digest) {
  SplitMix64 lo(digest.lo ^ secret), hi(digest.hi + secret);
  return {lo.next(), hi.next()};
}

// Errors in units of the standard error.
struct Errors {
  double sum = 0, squares = 0;
  int inside = 0, rounds = 0;

  void add(const Estimate& estimate, double truth) {
    // A window longer than the stream holds back all duplicates, whichever keys are sampled.
    if (truth == 1) {
      EXPECT_EQ(estimate.value, 1);
    }
    const double error = truth == 1 ? 0 : (estimate.value - truth) / estimate.standard_error;
    sum += error;
    squares += error * error;
    inside += truth >= estimate.low() && truth <= estimate.high();
    ++rounds;
  }
  double mean() const { return sum / rounds; }
  double square() const { return squares / rounds; }
};

// Held constant: the stream, so the truth. What varies is the secret.
TEST_P(CountError, IsWhatItSays) {
  // Keys that the sample seldom has take more rounds to be noticed.
  const int rounds =
      GetParam().harmonic > 0 || GetParam().fresh > 0 ? count_of(48, 200) : count_of(16, 200);
  const bool all_fit = GetParam().among != 0;
  const std::uint64_t records = GetParam().records;
  const std::vector<Digest> stream = stream_of(GetParam());
  Truth truth;
  for (std::size_t i = 0; i < records; ++i) {
    Key& key = truth[stream[i]];
    if (key.records++ == 0)
      key.windows.begin(static_cast<std::int64_t>(i));
    else
      key.windows.observe(static_cast<std::int64_t>(i), kRecordWindows);
  }
  std::array<double, kRepeatWindows> held{};
  for (const auto& [digest, key] : truth)
    for (std::size_t w = 0; w < kRepeatWindows; ++w)
      held[w] += static_cast<double>(key.windows.held(w));
  const auto distinct = static_cast<double>(truth.size());
  const double duplicates = static_cast<double>(records) - distinct;

  Errors keys;
  std::array<Errors, 3> windows;  // of a thousand, ten and a hundred thousand records
  const std::vector<std::string_view> texts(2048, "key");
  for (int round = 0; round < rounds; ++round) {
    const auto secret = static_cast<std::uint64_t>(round) * 0x9E3779B97F4A7C15ULL + 99;
    Census census(Timeline::Axis::records, all_fit ? Census::kLeastBytes * 4 : Census::kLeastBytes);
    std::vector<Digest> batch(2048);
    std::unordered_map<Digest, std::uint64_t, HashDigest> times;
    for (std::size_t begin = 0; begin < records; begin += batch.size()) {
      const std::size_t size = std::min(batch.size(), records - begin);
      for (std::size_t i = 0; i < size; ++i) batch[i] = under(secret, stream[begin + i]);
      census.feed(std::span(batch).first(size), {}, std::span(texts).first(size));
    }
    ASSERT_EQ(census.exact(), all_fit);
    ASSERT_GT(census.windows_one_in(), 1u);
    if (!all_fit) keys.add(census.distinct(), distinct);
    EXPECT_EQ(census.duplicates().standard_error, census.distinct().standard_error);
    const std::vector<WindowShare> shares = census.windows();
    for (std::size_t w = 0; w < windows.size(); ++w)
      windows[w].add(shares.at(w).share, held[w] / duplicates);
    // Points add up to the whole.
    double points = 0;
    for (const Timeline::Point& point : census.timeline().points(50).points)
      points += point.distinct;
    EXPECT_NEAR(points, census.distinct().value, 1e-6 * distinct);
    if (round > 0) continue;
    for (const auto& [digest, key] : truth) times[under(secret, digest)] = key.records;
    std::uint64_t most_unlisted = 0;
    const std::vector<TopKey> top = census.top().top(TopKeys::kKeys);
    for (const TopKey& key : top) {
      EXPECT_LE(key.least, times[key.digest]);
      EXPECT_GE(key.most, times[key.digest]);
      times.erase(key.digest);
    }
    for (const auto& [digest, count] : times) most_unlisted = std::max(most_unlisted, count);
    EXPECT_LE(most_unlisted, census.top().most_beside(top));
  }
  // The mean of n errors has a standard error of 1 / sqrt(n), their mean square one of sqrt(2 / n);
  // four of these. Windows get a tenth more: their own standard error is estimated from a few keys.
  const double mean = 4 / std::sqrt(rounds), square = 4 * std::sqrt(2.0 / rounds);
  if (!all_fit) {
    EXPECT_NEAR(keys.mean(), 0, mean);
    EXPECT_NEAR(keys.square(), 1, square);
  }
  const double missed = 0.05 * rounds + 4 * std::sqrt(0.05 * 0.95 * rounds);
  if (!all_fit) {
    EXPECT_GE(keys.inside, rounds - missed);
  }
  for (std::size_t w = 0; w < windows.size(); ++w) {
    EXPECT_NEAR(windows[w].mean(), 0, mean + 0.1) << w;
    EXPECT_LE(windows[w].square(), 1 + square + 0.1) << w;
    EXPECT_GE(windows[w].inside, rounds - missed - 0.01 * rounds) << w;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CountError,
    testing::Values(
        Shape{StreamShape::uniform, 0.5}, Shape{StreamShape::uniform, 0.5, 60'000, 30'000},
        Shape{StreamShape::uniform, 0.9}, Shape{StreamShape::uniform, 0.6, 200'001, 1'200'000, 4e5},
        Shape{.shape = StreamShape::zipf, .distinct = 0.95, .records = 600'000, .fresh = 95},
        Shape{StreamShape::zipf, 0.4}, Shape{StreamShape::power, 0.5},
        Shape{StreamShape::bursty, 0.6}),
    [](const auto& shape) {
      return std::string(name_of(shape.param.shape)) +
             std::to_string(static_cast<int>(100 * shape.param.distinct)) + "of" +
             std::to_string(shape.param.records);
    });

}  // namespace
}  // namespace sluice
