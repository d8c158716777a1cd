#include "sluice/kernels/slice_sort.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::kernels {
namespace {

// At every level, for every number of records around the vectors' and for many: in order, nothing
// lost, and back again. Vectors may touch the slack and nothing behind it.
TEST(SliceKernels, EveryLevelSortsInOrderAndBringsBack) {
  const std::string chosen(simd_level());
  SplitMix64 random(1);
  for (const std::string_view level : simd_levels()) {
    force_simd_level(level);
    for (std::size_t count = 0; count < 200; count += count < 40 ? 1 : 53) {
      std::vector<Digest> digests(count);
      for (Digest& digest : digests) digest = {random.next(), random.next()};
      const std::size_t apart = count + kSliceSlack;
      std::vector<Digest> sorted(2 * apart);
      std::vector<std::uint8_t> marks((count + 7) / 8);
      const std::size_t seconds =
          sort_two(digests.data(), count, sorted.data(), apart, marks.data());
      std::size_t to_first = 0, to_second = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const unsigned slice = slice_of(digests[i], 2);
        EXPECT_EQ(slice, marks[i / 8] >> (i % 8) & 1u);
        EXPECT_EQ(sorted[slice == 0 ? to_first++ : apart + to_second++], digests[i]) << level;
      }
      EXPECT_EQ(to_second, seconds);
      const auto verdict_of = [](const Digest& digest) {
        return static_cast<Verdict>(digest.hi >> 63);
      };
      std::vector<Verdict> judged(2 * apart);
      for (std::size_t i = 0; i < to_first; ++i) judged[i] = verdict_of(sorted[i]);
      for (std::size_t i = apart; i < apart + to_second; ++i) judged[i] = verdict_of(sorted[i]);
      std::vector<Verdict> verdicts(count);
      gather_two(marks.data(), count, judged.data(), apart, verdicts.data());
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(verdicts[i], verdict_of(digests[i]));
    }
  }
  force_simd_level(chosen);
}

}  // namespace
}  // namespace sluice::kernels
