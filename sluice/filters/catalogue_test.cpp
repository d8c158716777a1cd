#include "sluice/filters/catalogue.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/filters/bloom/blocked_bloom.hpp"
#include "sluice/filters/bloom/bloom.hpp"
#include "sluice/model/bloom.hpp"

namespace sluice {
namespace {

std::string error_of(std::string_view filter, const Wish& wish = {}) {
  try {
    make_filter(filter, wish);
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "no error";
}

std::string setting(const AnyFilter& filter, std::string_view name) {
  const Settings settings = filter.settings();
  for (const auto& [each, value] : settings.pairs())
    if (each == name) return value;
  return "not set";
}

// Of its table, without the object.
std::uint64_t table_bytes(const AnyFilter& filter) {
  if (const auto* blocked = filter.as<BlockedBloom>()) return blocked->bytes();
  return filter.as<Bloom>()->bytes();
}

// The error that the model gives once the filter holds the keys it is planned for.
double planned_fpr(const AnyFilter& filter) {
  const FilterStats stats = filter.stats();
  const double bits = static_cast<double>(table_bytes(filter)) * 8;
  const double keys = static_cast<double>(stats.capacity);
  const auto probes = static_cast<unsigned>(std::stoul(setting(filter, "probes")));
  return filter.kind() == FilterKind::blocked_bloom
             ? model::blocked_bloom_fpr(bits / 512, probes, keys)
             : model::bloom_fpr(bits, probes, keys);
}

TEST(Catalogue, EveryEntryIsMadeByItsNameAndExplainsItself) {
  for (const FilterInfo& info : catalogue()) {
    const AnyFilter filter = make_filter(info.name, Wish{.keys = 1000});
    EXPECT_EQ(name_of(filter.kind()), info.name);
    EXPECT_FALSE(info.summary.empty());
    for (const ParameterInfo& parameter : info.parameters) {
      EXPECT_FALSE(parameter.meaning.empty()) << parameter.name;
      EXPECT_FALSE(parameter.range.empty()) << parameter.name;
      EXPECT_FALSE(parameter.standard.empty()) << parameter.name;
    }
  }
}

TEST(Catalogue, ErrorsSayWhatWouldBeRight) {
  EXPECT_EQ(error_of("blom").find("there is no filter 'blom': there are bloom, "), 0u);
  EXPECT_EQ(error_of(""), "there is no filter ''" + error_of("blom").substr(25));
  EXPECT_EQ(error_of("bloom,size=3"),
            "filter 'bloom' has no parameter 'size': it has layout, bytes, probes, keys, fpr");
  EXPECT_EQ(error_of("bloom,keys=5,keys=6"),
            "filter parameter 'keys' is given twice: give it once");
  EXPECT_EQ(error_of("bloom,layout=blocked,probes=9"),
            "parameter 'probes' of filter 'bloom' is 9: with layout=blocked it takes 8 or 16");
  EXPECT_EQ(error_of("bloom,bytes=1"),
            "parameter 'bytes' of filter 'bloom' is '1': it takes 64 to 64TiB");
  EXPECT_EQ(error_of("bloom,probes=65"),
            "parameter 'probes' of filter 'bloom' is '65': it takes 1 to 64");
  EXPECT_EQ(error_of("none,keys=1"), "filter 'none' has no parameter 'keys': it has none");
}

// Refused before any filter sees it: some would search for a size forever, or divide by zero.
TEST(Catalogue, AWishThatNoFilterCanMeetIsRefusedByItsField) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const FilterInfo& info : catalogue()) {
    for (const double fpr :
         {0.0, 1.0, -1.0, 2.0, kNan, kInfinity, -kInfinity, 5e-324, 1e-307, 1 - 1e-16}) {
      EXPECT_EQ(error_of(info.name, {.keys = 1000, .fpr = fpr}),
                "`fpr` must lie between 1e-300 and 0.999999")
          << info.name << " " << fpr;
      EXPECT_THROW(forecast_filter(info.name, {.keys = 1000, .fpr = fpr}), BadParameters);
    }
    EXPECT_EQ(error_of(info.name, {.keys = 0}),
              "`keys` 0 leaves nothing to remember: give 1 or more");
  }
}

TEST(Catalogue, MoreThanMemoryCanHoldIsRefused) {
  EXPECT_NE(error_of("bloom,keys=17000G"), "no error");
  EXPECT_NE(error_of("bloom,layout=classic,fpr=1e-9,keys=17000G"), "no error");
  EXPECT_NE(error_of("exact,keys=17000G"), "no error");
}

TEST(Catalogue, ABloomFilterAtCapacityKeepsItsTarget) {
  for (const char* name :
       {"bloom", "bloom,layout=classic", "bloom,layout=blocked", "bloom,layout=blocked,probes=8",
        "bloom,layout=blocked,probes=16", "bloom,layout=classic,probes=3"}) {
    for (const double fpr : {0.2, 0.01, 1e-4, 1e-6, 1e-9}) {
      for (const std::uint64_t keys : {1000u, 123'457u}) {
        const AnyFilter filter = make_filter(name, Wish{.keys = keys, .fpr = fpr});
        EXPECT_EQ(filter.stats().capacity, keys);
        EXPECT_EQ(filter.stats().target_fpr, fpr);
        // The sizes are found by bisection to 12 digits; the fpr then has 10.
        EXPECT_LE(planned_fpr(filter), fpr * (1 + 1e-9)) << name << ' ' << fpr;
        // Nor is anything wasted: two blocks or words less would miss the target.
        const double bits = static_cast<double>(table_bytes(filter)) * 8;
        const auto probes = static_cast<unsigned>(std::stoul(setting(filter, "probes")));
        const double n = static_cast<double>(keys);
        EXPECT_GT(filter.kind() == FilterKind::blocked_bloom
                      ? model::blocked_bloom_fpr(bits / 512 - 2, probes, n)
                      : model::bloom_fpr(bits - 128, probes, n),
                  fpr)
            << name << ' ' << fpr;
      }
    }
  }
}

TEST(Catalogue, BytesWithoutKeysStateACapacityThatKeepsTheTarget) {
  for (const char* layout : {"blocked", "classic"}) {
    for (const double fpr : {0.01, 1e-6}) {
      const AnyFilter filter = make_filter(std::string("bloom,bytes=1MiB,layout=") + layout,
                                           Wish{.keys = {}, .fpr = fpr});
      EXPECT_EQ(table_bytes(filter), 1u << 20);
      EXPECT_LE(planned_fpr(filter), fpr * (1 + 1e-9));
      const double more = static_cast<double>(filter.stats().capacity) + 1;
      EXPECT_GT(more * 50, 8 << 20) << "a capacity of nothing keeps every target";
    }
  }
}

TEST(Catalogue, BytesAndKeysChooseTheProbesOfLeastError) {
  const AnyFilter roomy = make_filter("bloom,bytes=1MiB,layout=blocked", Wish{.keys = 200'000});
  EXPECT_EQ(setting(roomy, "probes"), "16");  // 42 bits per key
  const AnyFilter tight = make_filter("bloom,bytes=1MiB,layout=blocked", Wish{.keys = 1'000'000});
  EXPECT_EQ(setting(tight, "probes"), "8");  // 8 bits per key
  const AnyFilter classic = make_filter("bloom,bytes=1MiB,layout=classic", Wish{.keys = 838'861});
  EXPECT_EQ(setting(classic, "probes"), "7");  // 10 bits per key
}

TEST(Catalogue, TheLayoutFollowsTheTarget) {
  const auto made = [](double fpr) { return make_filter("bloom", Wish{.keys = 1000, .fpr = fpr}); };
  EXPECT_EQ(setting(made(0.01), "layout"), "blocked");
  EXPECT_EQ(setting(made(0.01), "probes"), "8");
  EXPECT_EQ(setting(made(1e-6), "layout"), "blocked");
  EXPECT_EQ(setting(made(1e-6), "probes"), "16");
  EXPECT_EQ(setting(made(1e-10), "layout"), "classic");
}

TEST(Catalogue, UnsizedFiltersSayWhatTheyArePlannedFor) {
  const AnyFilter filter = make_filter("bloom", Wish{});
  EXPECT_EQ(filter.stats().capacity, kStandardCapacity);
  EXPECT_EQ(filter.stats().target_fpr, Wish{}.fpr);
}

TEST(Catalogue, SettingsOutweighTheWish) {
  const AnyFilter filter = make_filter("bloom,keys=5k,fpr=0.1", Wish{.keys = 9, .fpr = 1e-9});
  EXPECT_EQ(filter.stats().capacity, 5000u);
  EXPECT_EQ(filter.stats().target_fpr, 0.1);
}

}  // namespace
}  // namespace sluice
