#include "sluice/filters/slice_crew.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/random.hpp"

namespace sluice {
namespace {

// Whatever the threads and slices, more of these or more of those: each record comes to its own
// slice once, in order, and its verdict goes back to where it came from.
TEST(SliceCrew, EachSliceSeesItsRecordsInOrder) {
  SplitMix64 random(1);
  std::vector<Digest> digests(2 * SliceCrew::kTogether + 1001);
  for (Digest& digest : digests) digest = {random.next(), random.next()};
  for (std::size_t i = 40'000; i < 50'000; ++i) digests[i] = digests[0];  // all of one slice
  const auto verdict_of = [](const Digest& digest) { return static_cast<Verdict>(digest.lo & 1); };
  for (const unsigned slices : {1u, 2u, 5u, 64u})
    for (const unsigned threads : {1u, 2u, 5u}) {
      if (threads > slices) continue;
      SliceCrew crew(slices, threads);
      for (const std::size_t count : {std::size_t{1}, SliceCrew::kFewest - 1, SliceCrew::kAlone + 9,
                                      SliceCrew::kTogether, digests.size()}) {
        std::vector<std::vector<Digest>> seen(slices);
        std::vector<Verdict> verdicts(count);
        for (std::size_t done = 0; done < count;)
          done += crew.step(std::span(digests).subspan(done, count - done),
                            std::span(verdicts).subspan(done),
                            [&](unsigned slice, std::span<const Digest> part, auto part_verdicts) {
                              for (std::size_t i = 0; i < part.size(); ++i) {
                                seen[slice].push_back(part[i]);
                                part_verdicts[i] = verdict_of(part[i]);
                              }
                            });
        std::vector<std::vector<Digest>> expected(slices);
        for (std::size_t i = 0; i < count; ++i) {
          expected[slice_of(digests[i], slices)].push_back(digests[i]);
          ASSERT_EQ(verdicts[i], verdict_of(digests[i])) << i;
        }
        EXPECT_EQ(seen, expected) << slices << " slices, " << threads << " threads, " << count;
      }
    }
}

}  // namespace
}  // namespace sluice
