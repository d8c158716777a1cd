#include "sluice/lab/synthetic.hpp"

#include <gtest/gtest.h>

#include <array>
#include <unordered_map>
#include <vector>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr std::array kShapes = {StreamShape::uniform, StreamShape::zipf, StreamShape::power,
                                StreamShape::bursty};

// Keys by the order in which they first came: 0, 1, …; `chunk` records per call.
std::vector<std::uint64_t> keys_of(const SyntheticOptions& options, std::size_t chunk = 1000) {
  SyntheticStream stream(options);
  std::vector<Digest> digests(chunk);
  std::unordered_map<std::uint64_t, std::uint64_t> numbers;
  std::vector<std::uint64_t> keys;
  while (const std::size_t count = stream.fill(digests))
    for (std::size_t i = 0; i < count; ++i)
      keys.push_back(numbers.try_emplace(digests[i].lo, numbers.size()).first->second);
  EXPECT_EQ(numbers.size(), stream.distinct());
  return keys;
}

std::uint64_t distinct_in(const std::vector<std::uint64_t>& keys, std::size_t begin,
                          std::size_t end, std::uint64_t seen) {
  const std::uint64_t before = seen;
  for (std::size_t i = begin; i < end; ++i)
    if (keys[i] >= seen) seen = keys[i] + 1;
  return seen - before;
}

TEST(SyntheticStream, HasAsManyRecordsAndKeysAsAskedFor) {
  for (const StreamShape shape : kShapes)
    for (const double share : {1e-9, 0.01, 0.5, 0.97, 1.0}) {
      const SyntheticOptions options{.shape = shape, .records = 30'000, .distinct = share};
      const std::vector<std::uint64_t> keys = keys_of(options);
      EXPECT_EQ(keys.size(), 30'000u) << name_of(shape);
      const auto wanted = static_cast<std::uint64_t>(share * 30'000 + 0.5);
      EXPECT_EQ(SyntheticStream(options).distinct(), wanted == 0 ? 1 : wanted) << name_of(shape);
    }
}

// Held constant: seed 1, 200,000 records, half of them new. A quarter's share of new keys has a
// standard error of 0.002; bursts of a mean of 512 make it some 0.05.
TEST(SyntheticStream, HasTheSameShareThroughout) {
  for (const StreamShape shape : kShapes) {
    const std::vector<std::uint64_t> keys = keys_of({.shape = shape, .records = 200'000});
    const double tolerance = shape == StreamShape::bursty ? 0.2 : 0.01;
    std::uint64_t seen = 0;
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      const std::uint64_t fresh = distinct_in(keys, quarter * 50'000, (quarter + 1) * 50'000, seen);
      seen += fresh;
      EXPECT_NEAR(static_cast<double>(fresh) / 50'000, 0.5, tolerance) << name_of(shape);
    }
  }
}

TEST(SyntheticStream, IsTheSameFromTheSameSeedInChunksOfAnySize) {
  for (const StreamShape shape : kShapes) {
    const SyntheticOptions options{.shape = shape, .records = 5000, .seed = 9};
    EXPECT_EQ(keys_of(options, 5000), keys_of(options, 7)) << name_of(shape);
    SyntheticOptions other = options;
    other.seed = 10;
    EXPECT_NE(keys_of(options), keys_of(other)) << name_of(shape);
    Digest one, two;
    SyntheticStream(options).fill({&one, 1});
    SyntheticStream(other).fill({&two, 1});
    EXPECT_NE(one, two);
  }
}

// Recorded results say a seed and mean these digests.
TEST(SyntheticStream, IsTheSameOnEveryMachine) {
  constexpr std::array<std::uint64_t, kShapes.size()> kSums = {
      0x4b4d14e28638d9f8, 0xd8cab38a9ccc4924, 0x5429086230d01dae, 0xf3e408375b948863};
  for (std::size_t s = 0; s < kShapes.size(); ++s) {
    std::vector<Digest> digests(20'000);
    SyntheticStream stream({.shape = kShapes[s], .records = 20'000, .distinct = 0.3, .seed = 42});
    ASSERT_EQ(stream.fill(digests), digests.size());
    std::uint64_t sum = 0;
    for (const Digest& digest : digests) sum = SplitMix64(sum ^ digest.lo ^ digest.hi).next();
    EXPECT_EQ(sum, kSums[s]) << name_of(kShapes[s]);
  }
}

// What tells the shapes apart, by factors that no seed comes near.
TEST(SyntheticStream, RepeatsWhatItsShapeSays) {
  std::array<std::uint64_t, kShapes.size()> famous{}, recent{}, in_a_row{};
  for (std::size_t s = 0; s < kShapes.size(); ++s) {
    const std::vector<std::uint64_t> keys = keys_of({.shape = kShapes[s], .records = 100'000});
    std::uint64_t seen = 1;
    for (std::size_t i = 1; i < keys.size(); ++i) {
      if (keys[i] == seen) {
        ++seen;
        continue;
      }
      famous[s] += keys[i] < 10;
      recent[s] += seen - keys[i] <= 100;
      in_a_row[s] += keys[i] == keys[i - 1] + 1;
    }
  }
  const auto [uniform, zipf, power, bursty] = std::array<std::size_t, 4>{0, 1, 2, 3};
  EXPECT_GT(famous[zipf], 20 * famous[uniform]);
  EXPECT_GT(famous[zipf], 20 * famous[power]);
  EXPECT_GT(recent[power], 20 * recent[uniform]);
  EXPECT_GT(in_a_row[bursty], 45'000u);
  EXPECT_LT(in_a_row[uniform], 1'000u);
}

TEST(SyntheticStream, RefusesWhatCannotBe) {
  EXPECT_THROW(SyntheticStream({.records = 0}), BadParameters);
  EXPECT_THROW(SyntheticStream({.distinct = 0}), BadParameters);
  EXPECT_THROW(SyntheticStream({.distinct = 1.01}), BadParameters);
  EXPECT_THROW(parse_stream_shape("--stream", "Zipf"), BadParameters);
  for (const StreamShape shape : kShapes)
    EXPECT_EQ(parse_stream_shape("--stream", name_of(shape)), shape);
}

}  // namespace
}  // namespace sluice
