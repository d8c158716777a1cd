#include "sluice/kernels/sample.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::kernels {
namespace {

// Every key of the sample is found, in order, from every start, on every instruction set.
TEST(Sample, EqualsPortableOnEveryLevel) {
  const std::string before(simd_level());
  SplitMix64 random(3);
  for (const std::string_view level : simd_levels()) {
    force_simd_level(level);
    for (std::size_t size = 0; size < 80; ++size) {
      std::vector<Digest> digests(size);
      for (Digest& digest : digests) digest = {random.next(), random.next()};
      for (const std::uint64_t sample : {1ull, 2ull, 7ull, 40ull, 1ull << 40}) {
        const std::uint64_t threshold = ~std::uint64_t{0} / sample;
        for (std::size_t from = 0; from <= size; ++from)
          ASSERT_EQ(next_sampled(digests, from, threshold),
                    next_sampled_portable(digests, from, threshold))
              << level << ": " << size << " keys from " << from << ", 1/" << sample;
      }
    }
  }
  force_simd_level(before);
}

// A word at the threshold is in, one above is not: in both halves.
TEST(Sample, EndsAtTheThreshold) {
  std::vector<Digest> digests(40, Digest{~std::uint64_t{0} >> 40, ~std::uint64_t{0} >> 40});
  const std::uint64_t word = sample_word(digests[0]);
  EXPECT_EQ(next_sampled(digests, 0, word), 0u);
  EXPECT_EQ(next_sampled(digests, 0, word - 1), 40u);
  digests[33] = {0, 0};
  EXPECT_EQ(next_sampled(digests, 0, word - 1), 33u);
  EXPECT_EQ(next_sampled(digests, 34, 0), 40u);
  EXPECT_EQ(next_sampled(digests, 3, 0), 33u);
}

}  // namespace
}  // namespace sluice::kernels
