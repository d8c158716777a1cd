#include "sluice/filters/sharded/shard_crew.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/random.hpp"

namespace sluice {
namespace {

// For any numbers of threads and shards, each record comes to its own shard once, in order, and its
// verdict goes back to where it came from.
TEST(ShardCrew, EachShardSeesItsRecordsInOrder) {
  SplitMix64 random(1);
  std::vector<Digest> digests(2 * ShardCrew::kTogether + 1001);
  for (Digest& digest : digests) digest = {random.next(), random.next()};
  for (std::size_t i = 40'000; i < 50'000; ++i) digests[i] = digests[0];  // all of one shard
  const auto verdict_of = [](const Digest& digest) { return static_cast<Verdict>(digest.lo & 1); };
  for (const unsigned shards : {1u, 2u, 5u, 64u})
    for (const unsigned threads : {1u, 2u, 5u}) {
      if (threads > shards) continue;
      ShardCrew crew(shards, threads, default_memory());
      for (const std::size_t count : {std::size_t{1}, ShardCrew::kFewest - 1, ShardCrew::kAlone + 9,
                                      ShardCrew::kTogether, digests.size()}) {
        std::vector<std::vector<Digest>> seen(shards);
        std::vector<Verdict> verdicts(count);
        for (std::size_t done = 0; done < count;)
          done += crew.step(std::span(digests).subspan(done, count - done),
                            std::span(verdicts).subspan(done),
                            [&](unsigned shard, std::span<const Digest> part, auto part_verdicts) {
                              for (std::size_t i = 0; i < part.size(); ++i) {
                                seen[shard].push_back(part[i]);
                                part_verdicts[i] = verdict_of(part[i]);
                              }
                            });
        std::vector<std::vector<Digest>> expected(shards);
        for (std::size_t i = 0; i < count; ++i) {
          expected[shard_of(digests[i], shards)].push_back(digests[i]);
          ASSERT_EQ(verdicts[i], verdict_of(digests[i])) << i;
        }
        EXPECT_EQ(seen, expected) << shards << " shards, " << threads << " threads, " << count;
      }
    }
}

}  // namespace
}  // namespace sluice
