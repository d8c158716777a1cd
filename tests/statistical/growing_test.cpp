// The growing filter's errors against its model, and its bars: how often it loses a key, bits per key
// at every moment, and how evenly growth is spread. Seeds are fixed; tolerances are four standard
// errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/growing/growing.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

using testing_support::full_counts;

constexpr std::size_t kBatch = 1024;

class Stream {
 public:
  explicit Stream(std::uint64_t seed) : random_(seed) {}
  std::span<const Digest> batch() {
    for (Digest& digest : digests_) digest = {random_.next(), random_.next()};
    return digests_;
  }

 private:
  SplitMix64 random_;
  std::vector<Digest> digests_ = std::vector<Digest>(kBatch);
};

double measured_fpr(const Growing& filter, std::uint64_t probes) {
  Stream stream(99);
  std::vector<Verdict> verdicts(kBatch);
  std::uint64_t wrong = 0;
  for (std::uint64_t asked = 0; asked < probes; asked += kBatch) {
    filter.may_contain(stream.batch(), verdicts);
    wrong += static_cast<std::uint64_t>(std::ranges::count(verdicts, Verdict::duplicate));
  }
  return static_cast<double>(wrong) / static_cast<double>(probes);
}

// 16-bit slots err often enough to be counted. From four buckets on: after 9 doublings the first
// keys have no bit left, and are in both halves from then on.
TEST(GrowingError, IsWhatTheModelSaysAtEverySize) {
  Growing filter = Growing::make({.slot_bits = 16, .expected_keys = 1, .target_fpr = 0.05});
  Stream stream(1);
  std::vector<Verdict> verdicts(kBatch);
  const std::uint64_t probes = full_counts() ? 20'000'000 / kBatch * kBatch : 1000 * kBatch;
  std::uint64_t keys = 0;
  double before = 0;
  for (const std::uint64_t until : {10'000u, 100'000u, 700'000u}) {
    for (; keys < until; keys += kBatch) filter.observe(stream.batch(), verdicts);
    const FilterStats stats = filter.stats();
    const double error = std::sqrt(stats.predicted_fpr / static_cast<double>(probes));
    // Which keys were written is also luck: their number a bucket, and what they have in common.
    const double between = stats.predicted_fpr / std::sqrt(static_cast<double>(keys));
    EXPECT_NEAR(measured_fpr(filter, probes), stats.predicted_fpr, 4 * (error + between)) << until;
    EXPECT_LE(stats.predicted_fpr, stats.planned_fpr);
    EXPECT_GT(stats.predicted_fpr, before);
    before = stats.predicted_fpr;
  }
}

// From empty at 10⁻⁶: short, 3 million keys; full, 200 million.
TEST(GrowingError, HoldsItsBarsFromEmptyOn) {
  Growing filter = Growing::make(Growing::Params::from({.fpr = 1e-6}, {}));
  const std::uint64_t keys = full_counts() ? 200'000'000 : 3'000'000;
  Stream stream(1);
  std::vector<Verdict> verdicts(kBatch);
  std::vector<std::uint64_t> lines;
  std::uint64_t lost = 0, touched = 0;
  double expected = 0, most_bits = 0;
  for (std::uint64_t done = 0; done < keys; done += kBatch) {
    filter.observe(stream.batch(), verdicts);
    lost += static_cast<std::uint64_t>(std::ranges::count(verdicts, Verdict::duplicate));
    lines.push_back(filter.lines_touched() - touched);
    touched = filter.lines_touched();
    const FilterStats stats = filter.stats();
    expected += stats.predicted_fpr * kBatch;
    if (stats.keys > 1'000'000)
      most_bits = std::max(most_bits,
                           static_cast<double>(stats.bytes) * 8 / static_cast<double>(stats.keys));
  }
  const auto middle = lines.begin() + static_cast<std::ptrdiff_t>(lines.size() / 2);
  std::nth_element(lines.begin(), middle, lines.end());
  EXPECT_LE(*std::ranges::max_element(lines), 20 * *middle);
  EXPECT_LE(most_bits, 60);
  EXPECT_LT(static_cast<double>(lost), 1e-6 * static_cast<double>(keys));
  EXPECT_NEAR(static_cast<double>(lost), expected, 4 * std::sqrt(expected) + 1);
  EXPECT_LT(filter.stats().predicted_fpr, 2e-7);
  RecordProperty("lost", std::to_string(lost));
  RecordProperty("bits_per_key", std::to_string(most_bits));
}

// What the choice of load rests on: hardly a key finds both buckets full, at any moment.
TEST(GrowingError, MovesAreRare) {
  for (const unsigned slot : {16u, 32u, 64u}) {
    Growing filter = Growing::make({.slot_bits = slot, .expected_keys = 0, .target_fpr = 0.05});
    Stream stream(1);
    std::vector<Verdict> verdicts(kBatch);
    std::uint64_t moves = 0;
    for (std::uint64_t done = 0; done < 600'000; done += 16 * kBatch) {
      for (int i = 0; i < 16; ++i) filter.observe(stream.batch(), verdicts);
      EXPECT_LT(filter.moves() - moves, 16 * kBatch / 50) << slot << ' ' << done;
      moves = filter.moves();
    }
    EXPECT_EQ(filter.stats().stash, 0u);
  }
}

}  // namespace
}  // namespace sluice
