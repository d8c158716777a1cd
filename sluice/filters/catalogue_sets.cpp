// The catalogue's rows of filters without a window.
#include <algorithm>

#include "sluice/filters/bloom/blocked_bloom.hpp"
#include "sluice/filters/bloom/bloom.hpp"
#include "sluice/filters/bloom/bloom_family.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/filters/counting.hpp"
#include "sluice/filters/dynamic/dynamic.hpp"
#include "sluice/filters/exact/exact.hpp"
#include "sluice/filters/growing/growing.hpp"
#include "sluice/filters/reservoir.hpp"
#include "sluice/filters/stable.hpp"

namespace sluice {
namespace {

Forecast forecast_dynamic(const Wish& wish, const Settings& settings) {
  const auto params = Dynamic::Params::from(wish, settings);
  return in_holder<Dynamic>(
      params.forecast(wish.keys.value_or(std::max(params.capacity, kStandardCapacity))));
}

FilterInfo bloom_row() {
  static constexpr PlanFamily kFamilies[] = {
      {Role::set, "bloom"},
      {Role::set, "bloom,layout=blocked"},
      {Role::set, "bloom,layout=classic"},
  };
  static constexpr std::string_view kConformance[] = {
      "bloom,keys=3000",
      "bloom,keys=600k",
      "bloom,keys=3000,fpr=0.01",
      "bloom,keys=2M,fpr=0.01",
      "bloom,layout=classic,keys=3000",
      "bloom,layout=classic,keys=700k",
      "bloom,layout=classic,bytes=4096,probes=1",
  };
  static constexpr std::string_view kLarge[] = {
      "bloom,keys=500k",
      "bloom,keys=2M,fpr=0.01",
      "bloom,layout=classic,keys=500k,fpr=1e-6",
  };
  static constexpr GoldenSample kGolden[] = {
      {"bloom-1", "bloom,layout=classic,bytes=128,probes=5,keys=100,fpr=0.01", true},
      {"blocked_bloom-1", "bloom,layout=blocked,bytes=256,probes=8,keys=100,fpr=0.01"},
      {"blocked_bloom16-1", "bloom,layout=blocked,bytes=512,probes=16,keys=100,fpr=1e-6"},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "bloom, blocked, 8 probes",
       .filter = "bloom,layout=blocked,probes=8",
       .fpr = 1e-2,
       .every_level = true},
      {.name = "bloom, blocked, 16 probes",
       .filter = "bloom,layout=blocked,probes=16",
       .fpr = 1e-4,
       .every_level = true},
      {.name = "bloom, classic", .filter = "bloom,layout=classic", .fpr = 1e-2},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Bloom, BlockedBloom>,
                                  .families = kFamilies,
                                  .conformance = kConformance,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {.name = "bloom",
          .summary =
              "a set of a known number of keys in bits: small, fast, and wrong at most at the rate "
              "asked "
              "for",
          .parameters = bloom_parameters(),
          .make = make_bloom,
          .forecast = forecast_bloom,
          .row = &kRow};
}

FilterInfo growing_row() {
  static constexpr PlanFamily kFamilies[] = {
      {Role::set, "growing"},
      {Role::growing_set, "growing"},
  };
  static constexpr std::string_view kConformance[] = {
      "growing",
      "growing,keys=1",
      "growing,keys=200k",
      "growing,slot=16,keys=1,fpr=0.05",
      "growing,slot=16,keys=2M,fpr=0.05",
      "growing,slot=64",
      "growing,fpr=1e-9,keys=1",
  };
  static constexpr std::string_view kLarge[] = {
      "growing",
      "growing,slot=16,fpr=0.05",
      "growing,slot=64,keys=200k",
  };
  static constexpr GoldenSample kGolden[] = {
      {"growing16-1", "growing,slot=16,keys=400,fpr=0.05"},
      {"growing32-1", "growing,slot=32,keys=400", true},
      {"growing64-1", "growing,slot=64,keys=400"},
      {"growing_list-1", "growing"},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "growing, from empty",
       .filter = "growing",
       .fpr = 1e-6,
       .every_level = true,
       .uneven = true,
       .grows = true},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Growing>,
                                  .families = kFamilies,
                                  .conformance = kConformance,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {.name = "growing",
          .summary =
              "a set of any number of keys in fingerprints, in a table that grows bucket by "
              "bucket: keeps the error asked for at every size",
          .parameters = Growing::Params::known(),
          .make = make_from<Growing>,
          .forecast = forecast_of<Growing>,
          .row = &kRow};
}

FilterInfo dynamic_row() {
  static constexpr PlanFamily kFamilies[] = {
      {Role::set, "dynamic"},
      // Half the error for each filter of twice the keys: as many as come.
      {Role::growing_set, "dynamic,tighten=0.5"},
  };
  static constexpr std::string_view kConformance[] = {
      "dynamic",
      "dynamic,keys=700,fpr=1e-4",
      "dynamic,keys=700,fpr=1e-4,layout=plain",
      "dynamic,keys=100,fpr=1e-4",
      "dynamic,keys=3000,fpr=1e-4,forget=yes",
      "dynamic,keys=700k,forget=yes",
      "dynamic,keys=700k,layout=plain",
      "dynamic,keys=500,fpr=0.01,tighten=0.8",
      "dynamic,keys=800k,tighten=0.5,growth=1",
  };
  static constexpr std::string_view kLarge[] = {
      "dynamic,keys=1M,fpr=1e-3",
      "dynamic,keys=60k,fpr=1e-6",
      "dynamic,layout=plain,keys=1M,fpr=1e-3",
      "dynamic,keys=200k,fpr=1e-3,forget=yes",
  };
  static constexpr GoldenSample kGolden[] = {
      {"dynamic-1", "dynamic,keys=12,fpr=0.001,layout=matrix", true},
      {"dynamic_counted-1", "dynamic,keys=12,fpr=0.001,forget=yes"},
      {"dynamic_tighten-1", "dynamic,keys=12,fpr=0.001,tighten=0.5"},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "dynamic", .filter = "dynamic", .fpr = 1e-2},
      {.name = "dynamic, from empty", .filter = "dynamic,keys=3500", .fpr = 1e-2, .grows = true},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Dynamic>,
                                  .families = kFamilies,
                                  .conformance = kConformance,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {.name = "dynamic",
          .summary =
              "a set of any number of keys in a series of Bloom filters: grows, can be "
              "merged, and can forget keys",
          .parameters = Dynamic::Params::known(),
          .make = make_from<Dynamic>,
          .forecast = forecast_dynamic,
          .row = &kRow};
}

FilterInfo counting_row() {
  static constexpr PlanFamily kFamilies[] = {
      {Role::set, "counting"},
  };
  static constexpr std::string_view kConformance[] = {
      "counting,keys=13k,fpr=0.01",
      "counting,keys=300k",
      "counting,bytes=4096,probes=1",
  };
  static constexpr std::string_view kLarge[] = {
      "counting,keys=400k,fpr=0.01",
  };
  static constexpr GoldenSample kGolden[] = {
      {"counting-1", "counting,bytes=512,probes=5,keys=100,fpr=0.01", true},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "counting", .filter = "counting", .fpr = 1e-2},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Counting>,
                                  .families = kFamilies,
                                  .conformance = kConformance,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {.name = "counting",
          .summary =
              "a set of a known number of keys in small counters: like bloom, and can forget keys",
          .parameters = Counting::Params::known(),
          .make = make_from<Counting>,
          .forecast = forecast_of<Counting>,
          .row = &kRow};
}

FilterInfo exact_row() {
  static constexpr PlanFamily kFamilies[] = {
      {Role::set, "exact"},
      {Role::growing_set, "exact"},
  };
  static constexpr std::string_view kConformance[] = {
      "exact",
      "exact,keys=200k",
  };
  static constexpr std::string_view kLarge[] = {
      "exact",
      "exact,keys=100k",
  };
  static constexpr GoldenSample kGolden[] = {
      {"exact-1", "exact,keys=40", true},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "exact", .filter = "exact", .fpr = 0.5},
      {.name = "exact, from empty", .filter = "exact,keys=1000", .fpr = 0.5, .grows = true},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Exact>,
                                  .families = kFamilies,
                                  .conformance = kConformance,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {.name = "exact",
          .summary = "every key's digest: never wrong, and grows with the keys",
          .parameters = Exact::Params::known(),
          .make = make_from<Exact>,
          .forecast = forecast_of<Exact>,
          .row = &kRow};
}

FilterInfo reservoir_row() {
  static constexpr PlanFamily kFamilies[] = {
      {Role::forgetting, "reservoir"},
  };
  static constexpr std::string_view kConformance[] = {
      "reservoir,bytes=8KiB,fpr=0.01",
      "reservoir,bytes=1000,filters=3,resets=1,seed=0",
      "reservoir,bytes=4MiB,fpr=0.001",
      "reservoir,bytes=64,fpr=0.1,aim=few-false-negatives",
      "reservoir,bytes=200,fpr=0.1,aim=mean,variant=paper",
      "reservoir,bytes=16KiB,fpr=0.1,aim=few-false-positives,variant=paper,threshold=0.5",
      "reservoir,bytes=4MiB,fpr=0.1,aim=few-false-negatives,variant=paper,seed=9",
  };
  static constexpr std::string_view kLarge[] = {
      "reservoir,bytes=3MiB,fpr=0.01",
      "reservoir,bytes=3MiB,fpr=0.01,variant=paper",
  };
  static constexpr GoldenSample kGolden[] = {
      {"reservoir-1", "reservoir,bytes=512,filters=5,resets=2,fpr=0.1,seed=3"},
      {"reservoir_paper-1", "reservoir,bytes=512,filters=3,variant=paper,threshold=0.04,fpr=0.1",
       true},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "reservoir", .filter = "reservoir", .fpr = 1e-2},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Reservoir>,
                                  .families = kFamilies,
                                  .forgetting = &kForgetting<Reservoir>,
                                  .conformance = kConformance,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {.name = "reservoir",
          .summary =
              "an endless stream in fixed memory, forgetting at random: where repeats are far "
              "apart and "
              "one let through costs little",
          .parameters = Reservoir::Params::known(),
          .make = make_from<Reservoir>,
          .forecast = forecast_of<Reservoir>,
          .row = &kRow};
}

FilterInfo stable_row() {
  static constexpr PlanFamily kFamilies[] = {
      {Role::forgetting, "stable"},
  };
  static constexpr std::string_view kConformance[] = {
      "stable,bytes=32KiB,fpr=0.01",
      "stable,bytes=24KiB,probes=3,decrements=70,max=3",
      "stable,bytes=24KiB,probes=2,decrements=7,max=9,draws=independent",
      "stable,bytes=4MiB,fpr=0.001,seed=7",
      "stable,bytes=4MiB,fpr=0.01,draws=independent",
  };
  static constexpr std::string_view kLarge[] = {
      "stable,bytes=3MiB,fpr=0.01",
      "stable,bytes=3MiB,fpr=0.01,max=3,draws=independent",
  };
  static constexpr GoldenSample kGolden[] = {
      {"stable-1", "stable,bytes=1024,probes=4,decrements=9,max=3,fpr=0.01,seed=3"},
      {"stable_independent-1", "stable,bytes=512,probes=2,decrements=4,draws=independent,fpr=0.1",
       true},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "stable", .filter = "stable", .fpr = 1e-2},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Stable>,
                                  .families = kFamilies,
                                  .forgetting = &kForgetting<Stable>,
                                  .conformance = kConformance,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {.name = "stable",
          .summary = "the same by another rule: the baseline that `reservoir` is compared with",
          .parameters = Stable::Params::known(),
          .make = make_from<Stable>,
          .forecast = forecast_of<Stable>,
          .row = &kRow};
}

}  // namespace

std::vector<FilterInfo> set_rows() {
  return {bloom_row(), growing_row(),   dynamic_row(), counting_row(),
          exact_row(), reservoir_row(), stable_row()};
}

}  // namespace sluice
