#include "sluice/filters/slice_sort.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice {
namespace {

// Space for a number of records, on the heap so that sanitizers see its ends.
struct Space {
  Space(std::size_t records, unsigned slices)
      : digests(SliceSpace::length_of(records, slices)),
        places(digests.size()),
        verdicts(digests.size()),
        slice_of_record(records),
        space{digests.data(), places.data(), verdicts.data(), slice_of_record.data(), records} {}
  std::vector<Digest> digests;
  std::vector<std::uint16_t> places;
  std::vector<Verdict> verdicts;
  std::vector<std::uint8_t> slice_of_record;
  SliceSpace space;
};

std::vector<Digest> random_digests(std::size_t count, std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<Digest> digests(count);
  for (Digest& digest : digests) digest = {random.next(), random.next()};
  return digests;
}

TEST(SliceSort, KeepsTheOrderWithinASlice) {
  for (const unsigned slices : {1u, 2u, 3u, 7u, 64u})
    for (const std::size_t count : {0u, 1u, 2u, 255u, 1000u}) {
      const std::vector<Digest> digests = random_digests(count, slices);
      Space space(1000, slices);
      SliceSort sort(space.space);
      sort.sort(digests, slices);
      std::vector<std::size_t> next(slices);
      for (std::size_t i = 0; i < count; ++i) {
        const unsigned slice = slice_of(digests[i], slices);
        ASSERT_LT(slice, slices);
        const std::size_t at = next[slice]++;
        ASSERT_LT(at, sort.size(slice));
        EXPECT_EQ(sort.digests(slice)[at], digests[i]);
      }
      for (unsigned slice = 0; slice < slices; ++slice) {
        EXPECT_EQ(sort.size(slice), next[slice]);
        std::size_t visited = 0;
        sort.for_each_place(slice, [&](std::size_t at, std::size_t place) {
          EXPECT_EQ(at, visited++);
          EXPECT_EQ(digests[place], sort.digests(slice)[at]);
        });
        EXPECT_EQ(visited, next[slice]);
      }
    }
}

TEST(SliceSort, GathersVerdictsWhereTheirDigestsWere) {
  const auto verdict_of = [](const Digest& digest) { return static_cast<Verdict>(digest.lo & 1); };
  for (const unsigned slices : {1u, 2u, 5u}) {
    const std::vector<Digest> digests = random_digests(700, 9);
    Space space(700, slices);
    SliceSort sort(space.space);
    sort.sort(digests, slices);
    for (unsigned slice = 0; slice < slices; ++slice)
      for (std::size_t i = 0; i < sort.size(slice); ++i)
        sort.verdicts(slice)[i] = verdict_of(sort.digests(slice)[i]);
    std::vector<Verdict> verdicts(digests.size());
    sort.gather(verdicts);
    for (std::size_t i = 0; i < digests.size(); ++i) EXPECT_EQ(verdicts[i], verdict_of(digests[i]));
  }
}

// In each slice the bits that filters take their places and fingerprints from, at either end of
// both words, are as often set as not: within five standard errors.
TEST(SliceSort, SlicesAreDealtEquallyAndSayNothingOfPlaces) {
  constexpr std::size_t kKeys = 40'000;
  const std::vector<Digest> digests = random_digests(kKeys, 3);
  for (const unsigned slices : {2u, 3u, 8u}) {
    std::vector<double> keys(slices);
    std::vector<std::vector<double>> ones(slices, std::vector<double>(128));
    for (const Digest& digest : digests) {
      const unsigned slice = slice_of(digest, slices);
      ++keys[slice];
      for (unsigned bit = 0; bit < 64; ++bit) {
        ones[slice][bit] += static_cast<double>(digest.lo >> bit & 1);
        ones[slice][64 + bit] += static_cast<double>(digest.hi >> bit & 1);
      }
    }
    const double share = 1.0 / slices;
    for (unsigned slice = 0; slice < slices; ++slice) {
      EXPECT_NEAR(keys[slice], kKeys * share, 5 * std::sqrt(kKeys * share * (1 - share)));
      for (const double set : ones[slice])
        EXPECT_NEAR(set, keys[slice] / 2, 5 * std::sqrt(keys[slice] / 4));
    }
  }
}

}  // namespace
}  // namespace sluice
