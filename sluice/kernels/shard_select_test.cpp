#include "sluice/kernels/shard_select.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sluice/kernels/simd.hpp"
#include "tests/support/digests.hpp"

namespace sluice::kernels {
namespace {

using testing_support::random_digests;

// Of a digest whose shard_mix is this.
Digest digest_mixed(std::uint32_t mixed) {
  std::uint32_t inverse = kShardMixer;  // of the mixer: each turn doubles the bits that are right
  for (int turn = 0; turn < 5; ++turn) inverse *= 2 - kShardMixer * inverse;
  return {mixed * inverse, 0};
}

TEST(ShardSelect, RangesAreTheirShards) {
  for (const unsigned shards : {1u, 2u, 3u, 7u, 63u, 64u})
    for (unsigned begin = 0; begin < shards; ++begin)
      for (unsigned end = begin + 1; end <= shards; ++end) {
        const ShardRange range = shard_range(begin, end, shards);
        // The edges, and what is next to them.
        for (const std::uint32_t edge : {range.first, range.first + range.extent})
          for (const std::uint32_t mixed : {edge - 1, edge, edge + 1}) {
            const Digest digest = digest_mixed(mixed);
            ASSERT_EQ(shard_mix(digest), mixed);
            const unsigned shard = shard_of(digest, shards);
            EXPECT_EQ(range.has(digest), shard >= begin && shard < end) << mixed;
          }
      }
}

// At every level, for every number of records around the vectors' and for many: in order, nothing
// lost, and the verdicts back again. Vectors may touch the slack and nothing behind it.
void select_and_bring_back(std::span<const Digest> digests, const std::vector<unsigned>& bounds,
                           std::string_view level) {
  const auto verdict_of = [](const Digest& digest) {
    return static_cast<Verdict>(digest.hi >> 63);
  };
  const unsigned shards = bounds.back();
  const std::size_t bytes = (digests.size() + 7) / 8;
  const std::size_t planes = bounds.size() - 1;
  std::vector<std::uint8_t> marks(planes * bytes);
  for (std::size_t plane = 0; plane < planes; ++plane) {
    std::vector<Digest> expected;
    for (const Digest& digest : digests)
      if (shard_of(digest, shards) >= bounds[plane] && shard_of(digest, shards) < bounds[plane + 1])
        expected.push_back(digest);
    // No more room than needed, so that sanitizers see what is touched.
    std::vector<Digest> selected(expected.size() + kShardSlack);
    const std::span own(marks.data() + plane * bytes, bytes);
    const std::size_t count =
        select_shards(digests, shard_range(bounds[plane], bounds[plane + 1], shards),
                      selected.data(), own.data());
    ASSERT_EQ(count, expected.size()) << level;
    selected.resize(count);
    EXPECT_EQ(selected, expected) << level;
    for (std::size_t i = 0, next = 0; i < digests.size(); ++i) {
      const bool in = own[i / 8] >> (i % 8) & 1;
      EXPECT_EQ(in, next < count && digests[i] == selected[next]);
      next += in;
    }
    std::vector<Verdict> verdicts(count + kShardSlack, Verdict::duplicate);
    for (std::size_t i = 0; i < count; ++i) verdicts[i] = verdict_of(selected[i]);
    spread_verdicts(verdicts.data(), own);
  }
  std::vector<Verdict> verdicts(digests.size());
  unite_verdicts(marks.data(), planes, bytes, verdicts);
  for (std::size_t i = 0; i < digests.size(); ++i)
    EXPECT_EQ(verdicts[i], verdict_of(digests[i])) << level;
}

TEST(ShardSelect, EveryLevelSelectsInOrderAndBringsBack) {
  const std::string chosen(simd_level());
  for (const std::string_view level : simd_levels()) {
    force_simd_level(level);
    for (std::size_t count = 0; count < 200; count += count < 70 ? 1 : 53) {
      select_and_bring_back(random_digests(count, count), {0, 1, 2}, level);
      select_and_bring_back(random_digests(count, count), {0, 2, 3, 7}, level);
      select_and_bring_back(random_digests(count, count), {0, 64}, level);
      select_and_bring_back(std::vector(count, Digest{1, 2}), {0, 1, 2}, level);
    }
  }
  force_simd_level(chosen);
}

// In each shard the bits that filters take their places and fingerprints from, at either end of
// both words, are as often set as not: within five standard errors.
TEST(ShardSelect, ShardsAreDealtEquallyAndSayNothingOfPlaces) {
  constexpr std::size_t kKeys = 40'000;
  const std::vector<Digest> digests = random_digests(3, kKeys);
  for (const unsigned shards : {2u, 3u, 8u}) {
    std::vector<double> keys(shards);
    std::vector<std::vector<double>> ones(shards, std::vector<double>(128));
    for (const Digest& digest : digests) {
      const unsigned shard = shard_of(digest, shards);
      ++keys[shard];
      for (unsigned bit = 0; bit < 64; ++bit) {
        ones[shard][bit] += static_cast<double>(digest.lo >> bit & 1);
        ones[shard][64 + bit] += static_cast<double>(digest.hi >> bit & 1);
      }
    }
    const double share = 1.0 / shards;
    for (unsigned shard = 0; shard < shards; ++shard) {
      EXPECT_NEAR(keys[shard], kKeys * share, 5 * std::sqrt(kKeys * share * (1 - share)));
      for (const double set : ones[shard])
        EXPECT_NEAR(set, keys[shard] / 2, 5 * std::sqrt(keys[shard] / 4));
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
