#include "sluice/cluster/slice_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "sluice/base/error.hpp"
#include "tests/support/digests.hpp"

namespace sluice::cluster {
namespace {

using testing_support::digest_of;

std::vector<Place> places_of(const SliceMap& map, std::uint64_t key) {
  std::vector<Place> places(map.probes());
  map.places(digest_of(key), places);
  return places;
}

std::set<std::uint32_t> sites_of(const SliceMap& map, std::uint64_t key) {
  std::set<std::uint32_t> sites;
  for (const Place& place : places_of(map, key)) sites.insert(place.site);
  return sites;
}

TEST(SliceMap, EveryPlaceIsOnASite) {
  for (const SliceParams& params : {SliceParams{Slicing::horizontal, 1000, 4, 7, 1, 1},
                                    SliceParams{Slicing::vertical, 1000, 4, 7, 1, 1},
                                    SliceParams{Slicing::horizontal_vertical, 1000, 4, 3, 5, 1},
                                    SliceParams{Slicing::vertical_horizontal, 1000, 4, 3, 5, 1},
                                    SliceParams{Slicing::general, 1000, 6, 7, 1, 3}}) {
    const SliceMap map(params);
    EXPECT_GE(map.site_bits() * map.sites(), params.bits);
    std::set<std::uint32_t> used;
    for (std::uint64_t key = 0; key < 2000; ++key)
      for (const Place& place : places_of(map, key)) {
        ASSERT_LT(place.site, map.sites()) << name_of(params.slicing);
        ASSERT_LT(place.position, map.site_bits()) << name_of(params.slicing);
        used.insert(place.site);
      }
    EXPECT_EQ(used.size(), map.sites()) << name_of(params.slicing);
  }
}

TEST(SliceMap, SlicingsPutAKeysBitsWhereTheySay) {
  const SliceMap horizontal({Slicing::horizontal, 4000, 4, 10, 1, 1});
  const SliceMap rows({Slicing::horizontal_vertical, 4000, 4, 5, 8, 1});
  const SliceMap parts({Slicing::vertical_horizontal, 4000, 4, 5, 8, 1});
  const SliceMap general({Slicing::general, 4000, 6, 10, 1, 3});
  for (std::uint64_t key = 0; key < 500; ++key) {
    EXPECT_EQ(sites_of(horizontal, key).size(), 1u);
    std::set<std::uint32_t> row, part;
    for (const std::uint32_t site : sites_of(rows, key)) row.insert(site / 8);
    for (const std::uint32_t site : sites_of(parts, key)) part.insert(site % 8);
    EXPECT_EQ(row.size(), 1u);
    EXPECT_EQ(part.size(), 1u);
    // Exactly three different slices, two bits in each.
    EXPECT_EQ(sites_of(general, key).size(), 3u);
    EXPECT_EQ(general.claim_site(digest_of(key)), places_of(general, key)[0].site);
  }
}

TEST(SliceMap, ProbesAreSpreadEvenly) {
  // 40 sites, 4 probes of 20,000 keys: 2000 a site, standard error 44.
  const SliceMap map({Slicing::vertical, 48400, 4, 40, 1, 1});
  std::array<unsigned, 40> counts{};
  for (std::uint64_t key = 0; key < 20000; ++key)
    for (const Place& place : places_of(map, key)) ++counts[place.site];
  EXPECT_GT(*std::ranges::min_element(counts), 1800u);
  EXPECT_LT(*std::ranges::max_element(counts), 2200u);
}

// What fault rules are about: six or more of eight bits in one fifth of the sites have a chance of
// .00123, so 369 of 300,000 keys with a standard error of 19; bits that follow each other had four
// times as many.
TEST(SliceMap, ProbesOfAKeyDoNotFollowEachOther) {
  const SliceMap map({Slicing::vertical, 48400, 8, 40, 1, 1});
  int crowded = 0;
  for (std::uint64_t key = 0; key < 300'000; ++key)
    crowded += std::ranges::count_if(places_of(map, key),
                                     [](const Place& place) { return place.site < 8; }) >= 6;
  EXPECT_NEAR(crowded, 369, 80);
}

TEST(SliceMap, KnowsWhetherAKeyHasOneSite) {
  EXPECT_TRUE(SliceMap({Slicing::horizontal, 100, 4, 5, 1, 1}).one_site_per_key());
  EXPECT_TRUE(SliceMap({Slicing::vertical, 100, 4, 1, 1, 1}).one_site_per_key());
  EXPECT_TRUE(SliceMap({Slicing::general, 100, 4, 5, 1, 1}).one_site_per_key());
  EXPECT_FALSE(SliceMap({Slicing::vertical, 100, 4, 5, 1, 1}).one_site_per_key());
  EXPECT_FALSE(SliceMap({Slicing::horizontal_vertical, 100, 4, 5, 2, 1}).one_site_per_key());
}

TEST(SliceMap, RefusesWhatCannotBe) {
  EXPECT_THROW(SliceMap({Slicing::vertical, 100, 0, 5, 1, 1}), BadParameters);
  EXPECT_THROW(SliceMap({Slicing::vertical, 100, 65, 5, 1, 1}), BadParameters);
  EXPECT_THROW(SliceMap({Slicing::vertical, 100, 4, 0, 1, 1}), BadParameters);
  EXPECT_THROW(SliceMap({Slicing::vertical, 100, 4, 5, 2, 1}), BadParameters);
  EXPECT_THROW(SliceMap({Slicing::vertical, 4, 4, 5, 1, 1}), BadParameters);
  EXPECT_THROW(SliceMap({Slicing::horizontal_vertical, 1 << 20, 4, 1 << 16, 1 << 16, 1}),
               BadParameters);
  EXPECT_THROW(SliceMap({Slicing::general, 100, 4, 5, 1, 3}), BadParameters);
  EXPECT_THROW(SliceMap({Slicing::general, 100, 8, 5, 1, 8}), BadParameters);
}

}  // namespace
}  // namespace sluice::cluster
