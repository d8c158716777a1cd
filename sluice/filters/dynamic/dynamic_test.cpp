#include "sluice/filters/dynamic/dynamic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/filters/bloom/bloom_family.hpp"
#include "sluice/model/bloom.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/dynamic_test_util.hpp"

namespace sluice {
namespace {

using namespace dynamic_test;
using testing_support::random_digests;

std::string error_of(const std::string& settings) {
  try {
    make(settings);
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "no error";
}

TEST(Dynamic, GrowsByWholeFilters) {
  for (const char* settings : {kPaper, kPaperCounted}) {
    Dynamic filter = make(settings);
    EXPECT_EQ(filter.params().bits, 1280u);
    EXPECT_EQ(filter.series().filters, 1u) << "there is one from the start";
    write(filter, 1, 133);
    EXPECT_EQ(filter.series().filters, 1u);
    EXPECT_EQ(filter.series().room, 0u);
    write(filter, 2, 1);
    EXPECT_EQ(keys_of(filter), (std::vector<std::uint64_t>{133, 1}));
    EXPECT_EQ(filter.stats().keys, 134u);
    EXPECT_EQ(filter.stats().capacity, 266u);
    // A full one was offered more keys than it has taken: here one in a thousand.
    const double full = classic_fpr_of_taken(1280, 7, 133, 1000), one = classic_fpr(1280, 7, 1);
    EXPECT_GT(full, classic_fpr(1280, 7, 133));
    EXPECT_LT(full, 1.01 * classic_fpr(1280, 7, 133));
    EXPECT_NEAR(filter.stats().predicted_fpr, 1 - (1 - full) * (1 - one), 1e-12);
  }
}

// Through all widths of rows, and into a third group of 64.
TEST(Dynamic, BothLayoutsAreTheSameFilters) {
  Dynamic plain = make("bytes=16,probes=5,keys=8,fpr=0.01,layout=plain");
  Dynamic matrix = make("bytes=16,probes=5,keys=8,fpr=0.01,layout=matrix");
  const std::vector<Digest> strangers = random_digests(9, 50);
  SplitMix64 random(4);
  while (matrix.series().filters < 130) {
    const Digest digest{random.next(), random.next()};
    ASSERT_EQ(plain.observe(digest), matrix.observe(digest));
    if (plain.stats().keys % 8 != 1) continue;
    ASSERT_EQ(encoded(plain).payload, encoded(matrix).payload) << plain.series().filters;
    for (const Digest& stranger : strangers)
      ASSERT_EQ(plain.may_contain(stranger), matrix.may_contain(stranger));
  }
  // A snapshot of one layout is that of the other but for the parameter.
  const Dynamic copy = decoded(encoded(matrix));
  EXPECT_EQ(encoded(copy).payload, encoded(plain).payload);
  matrix.clear();
  EXPECT_EQ(encoded(matrix).payload, encoded(make("bytes=16,probes=5,keys=8,fpr=0.01")).payload);
}

TEST(Dynamic, AMatrixLeavesAtMostAThirdIdle) {
  Dynamic filter = make("bytes=4096,probes=5,keys=1,fpr=0.01");
  for (std::uint64_t filters = 1; filters <= 64; ++filters) {
    if (filters > 1) write(filter, filters, 1);
    if (filters == 1) write(filter, filters, 1);
    ASSERT_EQ(filter.series().filters, filters);
    EXPECT_LE(filter.stats().bytes, filters * 4096 * 3 / 2 + 64 * 200 + 16) << filters;
  }
}

// What keeps exchanged differences small.
TEST(Dynamic, APayloadOnlyGrowsAtItsEnd) {
  for (const char* settings : {kPaper, kPaperCounted}) {
    Dynamic filter = make(settings);
    write(filter, 5, 3 * 133);
    const Bytes before = encoded(filter);
    write(filter, 6, 200);
    const Bytes after = encoded(filter);
    EXPECT_EQ(keys_of(filter).size(), 5u);
    ASSERT_GT(after.payload.size(), before.payload.size());
    EXPECT_TRUE(
        std::ranges::equal(before.payload, std::span(after.payload).first(before.payload.size())));
    EXPECT_EQ(before.header.size(), after.header.size());
  }
}

// --- asking before writing ----------------------------------------------------------------------

// §3.5.1: from n·f₂(n)/c ≥ 1 on, which at f = .05 comes in the fifth filter.
TEST(Dynamic, InsertBeginsToAskWhenRepeatsWouldCostAFilter) {
  Dynamic filter = make("bytes=160,probes=7,keys=190,fpr=0.05,ask=auto");
  const double one = model::bloom_fpr(1280, 7, 190);
  const auto rule = [&](double keys) {
    const double filters = std::ceil(keys / 190);
    return keys * (1 - std::pow(1 - one, filters - 1)) / 190 >= 1;
  };
  SplitMix64 random(20);
  const Digest repeated{1, 2};
  while (!filter.series().insert_asks) {
    filter.insert(random.next() % 8 == 0 ? repeated : Digest{random.next(), random.next()});
    const double keys = static_cast<double>(filter.stats().keys);
    ASSERT_EQ(filter.series().insert_asks, rule(keys)) << keys;
    ASSERT_LT(keys, 3000);
  }
  EXPECT_GT(filter.series().filters, 2u);
  const std::uint64_t keys = filter.stats().keys;
  for (int i = 0; i < 100; ++i) filter.insert(repeated);
  EXPECT_EQ(filter.stats().keys, keys) << "now it asks";
  Dynamic copy = decoded(encoded(filter));
  EXPECT_TRUE(copy.series().insert_asks) << "once on, it stays on";
  copy.clear();
  EXPECT_FALSE(copy.series().insert_asks);
}

TEST(Dynamic, InsertAlwaysAsksUnlessToldOtherwise) {
  for (const char* settings : {kPaper, kPaperCounted, "keys=100,tighten=0.5"}) {
    Dynamic filter = make(settings);
    EXPECT_TRUE(filter.series().insert_asks);
    for (int i = 0; i < 100; ++i) filter.insert(Digest{1, 2});
    EXPECT_EQ(filter.stats().keys, 1u);
  }
}

// --- tightening ---------------------------------------------------------------------------------

TEST(Dynamic, ATighteningSeriesStaysBelowItsErrorHoweverLong) {
  for (const char* settings :
       {"keys=100,fpr=0.01,tighten=0.5", "keys=100,fpr=0.01,tighten=0.9,growth=1",
        "keys=100,fpr=1e-6,tighten=0.8,growth=4"}) {
    Dynamic filter = make(settings);
    const Dynamic::Params& params = filter.params();
    double sum = 0;
    for (std::size_t i = 0; i < 24 / params.growth; ++i) {
      const DynamicShape shape = params.shape(i);
      EXPECT_EQ(shape.capacity,
                static_cast<std::uint64_t>(100 * std::pow(params.growth, static_cast<double>(i))));
      const double fpr = model::bloom_fpr(static_cast<double>(shape.bits), shape.probes,
                                          static_cast<double>(shape.capacity));
      const double planned = params.target_fpr * (1 - params.tighten) *
                             std::pow(params.tighten, static_cast<double>(i));
      EXPECT_LE(fpr, planned * (1 + 1e-9));
      EXPECT_GT(fpr, planned * 0.7) << "larger than it has to be";
      sum += fpr;
    }
    EXPECT_LT(sum, params.target_fpr);
    const std::vector<Digest> written = write(filter, 21, 3000);
    EXPECT_GT(filter.series().filters, 2u);
    EXPECT_LT(filter.stats().predicted_fpr, params.target_fpr);
    EXPECT_LT(filter.stats().planned_fpr, params.target_fpr);
    const Dynamic copy = decoded(encoded(filter));
    for (const Digest& digest : written) ASSERT_TRUE(copy.may_contain(digest));
  }
}

// --- parameters ---------------------------------------------------------------------------------

TEST(Dynamic, NonsenseIsRefusedWithASentence) {
  EXPECT_NE(error_of("forget=yes,layout=matrix").find("layout=plain"), std::string::npos);
  EXPECT_NE(error_of("tighten=0.5,layout=matrix").find("layout=plain"), std::string::npos);
  EXPECT_NE(error_of("tighten=0.5,forget=yes").find("cannot be used with"), std::string::npos);
  EXPECT_NE(error_of("forget=yes,ask=auto").find("ask=always"), std::string::npos);
  EXPECT_NE(error_of("growth=2").find("together with tighten="), std::string::npos);
  EXPECT_NE(error_of("tighten=0.5,bytes=1MiB").find("keys and fpr"), std::string::npos);
  EXPECT_NE(error_of("tighten=0.5,probes=3").find("keys and fpr"), std::string::npos);
  EXPECT_NE(error_of("tighten=1").find("tighten"), std::string::npos);
  EXPECT_NE(error_of("tighten=0.05").find("0.1 to 0.99"), std::string::npos);
  EXPECT_NE(error_of("growth=17,tighten=0.5").find("1 to 16"), std::string::npos);
  EXPECT_NE(error_of("forget=maybe").find("no or yes"), std::string::npos);
  EXPECT_NE(error_of("keys=10000G,fpr=1e-15").find("64 TiB"), std::string::npos);
}

}  // namespace
}  // namespace sluice
