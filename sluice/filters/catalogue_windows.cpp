// The catalogue's rows of window filters, of `sharded` and of `none`.
#include "sluice/filters/apbf/apbbf.hpp"
#include "sluice/filters/apbf/apbf.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/filters/cohort/cohort.hpp"
#include "sluice/filters/exact/exact_window.hpp"
#include "sluice/filters/none.hpp"
#include "sluice/filters/sharded/sharded.hpp"
#include "sluice/filters/timing/timer.hpp"
#include "sluice/filters/timing/timing.hpp"

namespace sluice {
namespace {

FilterInfo cohort_row() {
  static constexpr PlanFamily kFamilies[] = {
      {Role::window, "cohort"},
  };
  static constexpr std::string_view kConformance[] = {
      "cohort,keys=14k,slot=16",  "cohort,keys=14k,slot=24", "cohort,keys=14k,slot=32",
      "cohort,keys=14k,slot=40",  "cohort,keys=14k,slot=48", "cohort,keys=300k",
      "cohort,keys=300k,slot=24",
  };
  static constexpr std::string_view kWindows[] = {
      "cohort,keys=2000,slot=16",
      "cohort,keys=2000,slot=16,generations=1",
      "cohort,keys=2000,slot=24",
      "cohort,keys=2000,slot=32,generations=61",
      "cohort,keys=2000,slot=40,generations=13",
      "cohort,keys=2000,slot=48,generations=3",
  };
  static constexpr std::string_view kLarge[] = {
      "cohort,keys=600k,slot=16", "cohort,keys=500k,slot=24", "cohort,keys=450k,slot=32",
      "cohort,keys=450k,slot=40", "cohort,keys=450k,slot=48",
  };
  static constexpr GoldenSample kGolden[] = {
      {"cohort16-1", "cohort,slot=16,keys=100,fpr=0.02"},
      {"cohort24-1", "cohort,slot=24,keys=100,fpr=0.01"},
      {"cohort32-1", "cohort,slot=32,keys=100,fpr=0.01", true},
      {"cohort40-1", "cohort,slot=40,keys=100,fpr=0.01"},
      {"cohort48-1", "cohort,slot=48,keys=100,fpr=0.01"},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "cohort, 16-bit slots",
       .filter = "cohort,slot=16",
       .fpr = 2e-2,
       .every_level = true,
       .uneven = true},
      {.name = "cohort, 24-bit slots",
       .filter = "cohort,slot=24",
       .fpr = 1e-4,
       .every_level = true,
       .uneven = true},
      {.name = "cohort, 32-bit slots",
       .filter = "cohort,slot=32",
       .fpr = 1e-6,
       .every_level = true,
       .uneven = true},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Cohort>,
                                  .families = kFamilies,
                                  .conformance = kConformance,
                                  .windows = kWindows,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {.name = "cohort",
          .summary =
              "a sliding window of fingerprints stamped with generations: the default for windows",
          .parameters = Cohort::Params::known(),
          .make = make_from<Cohort>,
          .forecast = forecast_of<Cohort>,
          .row = &kRow};
}

FilterInfo apbbf_row() {
  static constexpr PlanFamily kFamilies[] = {
      {.role = Role::window, .text = "apbbf,layout=line", .many_shapes = true, .by_parts = true},
      {.role = Role::window, .text = "apbbf,layout=column", .many_shapes = true, .by_parts = true},
      {.role = Role::window, .text = "apbbf,layout=segment", .many_shapes = true, .by_parts = true},
  };
  static constexpr std::string_view kConformance[] = {
      "apbbf,keys=70k,k=2,l=5,block=512,bits=8",
      "apbbf,keys=70k,k=2,l=5,block=512,bits=4",
      "apbbf,keys=70k,k=2,l=5,block=64,bits=8",
      "apbbf,keys=120k,k=3,l=8,block=64,bits=4",
      "apbbf,keys=1M,l=8",
      "apbbf,layout=column,keys=70k,k=2,l=5,block=512,bits=8",
      "apbbf,layout=column,keys=70k,k=2,l=5,block=512,bits=4",
      "apbbf,layout=column,keys=70k,k=2,l=5,block=64,bits=8",
      "apbbf,layout=column,keys=70k,k=2,l=5,block=64,bits=4",
      "apbbf,layout=column,keys=1M,l=8",
      "apbbf,layout=line,keys=200k,k=5,l=11",
      "apbbf,layout=line,keys=1M,fpr=0.02",
      "apbbf,layout=line,keys=90k,k=3,l=5",
      "apbbf,layout=line,keys=300k,k=12,l=20",
  };
  static constexpr std::string_view kLarge[] = {
      "apbbf,keys=2500k,k=2,l=5,layout=segment",
      "apbbf,keys=2500k,k=2,l=5,layout=column",
      "apbbf,keys=2500k,k=2,l=5,layout=column,block=64",
      "apbbf,keys=6M,k=4,l=12,layout=line",
  };
  static constexpr GoldenSample kGolden[] = {
      {"apbbf-1", "apbbf,k=2,l=5,block=512,bits=8,bytes=896,keys=200,fpr=0.01", true},
      {"apbbf_column-1",
       "apbbf,layout=column,k=2,l=5,block=512,bits=4,bytes=448,keys=200,fpr=0.01"},
      {"apbbf_line-1", "apbbf,layout=line,k=5,l=11,bytes=1280,keys=440,fpr=0.02"},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "apbbf, line",
       .filter = "apbbf,layout=line",
       .fpr = 2e-2,
       .every_level = true,
       .uneven = true},
      {.name = "apbbf, column",
       .filter = "apbbf,layout=column,k=2,l=5",
       .fpr = 2e-4,
       .every_level = true,
       .uneven = true},
      {.name = "apbbf, segment",
       .filter = "apbbf,layout=segment,k=2,l=5",
       .fpr = 2e-4,
       .every_level = true,
       .uneven = true},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Apbbf>,
                                  .families = kFamilies,
                                  .conformance = kConformance,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {.name = "apbbf",
          .summary =
              "a sliding window in blocks of bits: the fastest, in one cache line, where an error "
              "of 1 % "
              "will do",
          .parameters = ApbbfParams::known(),
          .make = make_from<Apbbf>,
          .forecast = forecast_of<Apbbf>,
          .row = &kRow};
}

FilterInfo apbf_row() {
  static constexpr PlanFamily kFamilies[] = {
      {.role = Role::window, .text = "apbf", .many_shapes = true, .by_parts = true},
  };
  static constexpr std::string_view kConformance[] = {
      "apbf,keys=200k,l=14",
      "apbf,keys=60k,k=4,l=3",
      "apbf,keys=1M",
      "apbf,keys=100k,k=3,l=5,parts=4",
  };
  static constexpr std::string_view kLarge[] = {
      "apbf,keys=2500k,k=4,l=3",
      "apbf,keys=2500k,k=2,l=3,parts=2",
  };
  static constexpr GoldenSample kGolden[] = {
      {"apbf-1", "apbf,k=7,l=5,bytes=768,keys=250,fpr=0.01"},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "apbf", .filter = "apbf", .fpr = 1e-2, .uneven = true},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Apbf>,
                                  .families = kFamilies,
                                  .conformance = kConformance,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {
      .name = "apbf",
      .summary = "a sliding window in plain bits, in segments: where a window is split over sites",
      .parameters = ApbfParams::known(),
      .make = make_from<Apbf>,
      .forecast = forecast_of<Apbf>,
      .row = &kRow};
}

FilterInfo timing_row() {
  static constexpr PlanFamily kFamilies[] = {
      {Role::window, "timing"},
  };
  static constexpr std::string_view kConformance[] = {
      "timing,keys=14k",
      "timing,keys=14k,fpr=0.05,generations=9",
      "timing,keys=300k,fpr=0.001,generations=24",
      "timing,keys=14k,fpr=0.01,probes=3,timer=15",
  };
  static constexpr std::string_view kWindows[] = {
      "timing,keys=2000,fpr=0.01",
      "timing,keys=2000,fpr=0.001,generations=1",
      "timing,keys=2000,fpr=0.001,generations=24",
      "timing,keys=2000,fpr=0.01,probes=4,timer=4",
      "timing,keys=2000,fpr=0.01,generations=13,timer=4,padding=0",
      "timing,keys=2000,fpr=0.01,probes=6,timer=13",
  };
  static constexpr std::string_view kLarge[] = {
      "timing,keys=450k",
  };
  static constexpr GoldenSample kGolden[] = {
      {"timing-1", "timing,keys=100,fpr=0.01,generations=6,probes=5", true},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "timing", .filter = "timing", .fpr = 1e-2, .uneven = true},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Timing>,
                                  .families = kFamilies,
                                  .conformance = kConformance,
                                  .windows = kWindows,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {.name = "timing",
          .summary = "a sliding window of timestamps of few bits: for questions about age",
          .parameters = Timing::Params::known(),
          .make = make_from<Timing>,
          .forecast = forecast_of<Timing>,
          .row = &kRow};
}

FilterInfo timer_row() {
  static constexpr PlanFamily kFamilies[] = {
      {Role::window, "timer"},
  };
  static constexpr std::string_view kConformance[] = {
      "timer,keys=14k",
      "timer,keys=300k,fpr=0.001,generations=200",
      "timer,keys=14k,layout=plain,fpr=0.01",
      "timer,keys=14k,layout=horizontal,slices=7,fpr=0.01,timer=16",
      "timer,keys=14k,fpr=0.01,equal=2",
  };
  static constexpr std::string_view kWindows[] = {
      "timer,keys=2000,fpr=0.01,generations=1",
      "timer,keys=2000,fpr=0.001",
      "timer,keys=2000,fpr=0.01,generations=253,timer=8",
      "timer,keys=2000,fpr=0.01,generations=500",
      "timer,keys=2000,fpr=0.01,layout=plain",
      "timer,keys=2000,fpr=0.01,layout=horizontal,slices=9,generations=11",
  };
  static constexpr std::string_view kForgetfulWindows[] = {
      "timer,keys=2000,fpr=0.01,equal=2",
      "timer,keys=2000,fpr=0.01,equal=5,layout=plain",
  };
  static constexpr std::string_view kLarge[] = {
      "timer,keys=450k,fpr=0.01",
  };
  static constexpr GoldenSample kGolden[] = {
      {"timer-1", "timer,keys=100,fpr=0.01,generations=6,probes=5"},
  };
  static constexpr GuardSample kGuard[] = {
      {.name = "timer", .filter = "timer", .fpr = 1e-2, .uneven = true},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<Timer>,
                                  .families = kFamilies,
                                  .conformance = kConformance,
                                  .windows = kWindows,
                                  .forgetful_windows = kForgetfulWindows,
                                  .large = kLarge,
                                  .golden = kGolden,
                                  .guard = kGuard};
  return {.name = "timer",
          .summary =
              "a sliding window of delivery times: for slices over several sites, and late events",
          .parameters = Timer::Params::known(),
          .make = make_from<Timer>,
          .forecast = forecast_of<Timer>,
          .row = &kRow};
}

FilterInfo exact_window_row() {
  static constexpr PlanFamily kFamilies[] = {
      {Role::window, "exact-window"},
  };
  static constexpr std::string_view kConformance[] = {
      "exact-window,generations=5",
      "exact-window,generations=1,keys=200k",
  };
  static constexpr std::string_view kWindows[] = {
      "exact-window,generations=1",
      "exact-window,generations=7",
      "exact-window,generations=300,keys=100",
  };
  static constexpr std::string_view kLarge[] = {
      "exact-window,generations=20",
  };
  static constexpr GoldenSample kGolden[] = {
      {"exact_window-1", "exact-window,keys=40,generations=3"},
  };
  static constexpr FilterRow kRow{.kinds = kKinds<ExactWindow>,
                                  .families = kFamilies,
                                  .conformance = kConformance,
                                  .windows = kWindows,
                                  .large = kLarge,
                                  .golden = kGolden};
  return {.name = "exact-window",
          .summary = "every key's digest for as long as its window lasts: never wrong, any rate",
          .parameters = ExactWindow::Params::known(),
          .make = make_from<ExactWindow>,
          .forecast = forecast_of<ExactWindow>,
          .row = &kRow};
}

FilterInfo sharded_row() {
  static constexpr std::string_view kConformance[] = {
      "sharded,keys=14k",
      "sharded,shards=3,keys=600k,fpr=0.01",
      "sharded,shards=64,of=bloom,layout=classic,keys=20k",
      "sharded,of=exact",
      "sharded,shards=5,of=counting,keys=20k,fpr=0.01",
      "sharded,of=dynamic,keys=700,fpr=1e-4",
      "sharded,shards=3,of=dynamic,keys=3000,fpr=1e-4,forget=yes",
      "sharded,of=growing",
      "sharded,of=stable,bytes=32KiB,fpr=0.01",
      "sharded,of=reservoir,bytes=8KiB,fpr=0.01",
      "sharded,of=cohort,keys=14k,slot=32",
      "sharded,shards=4,of=cohort,keys=300k,slot=24",
      "sharded,shards=3,of=exact-window,generations=5",
      "sharded,of=apbf,keys=200k,l=14",
      "sharded,shards=3,of=apbf,keys=100k,k=3,l=5,of.parts=4",
      "sharded,of=apbbf,layout=column,keys=70k,k=2,l=5,block=512,bits=4",
      "sharded,of=timer,keys=14k,layout=horizontal,of.slices=7,fpr=0.01,timer=16",
  };
  static constexpr GoldenSample kGolden[] = {
      {"sharded-1", "sharded,shards=3,of=bloom,layout=blocked,keys=100,fpr=0.01"},
      {"sharded_window-1", "sharded,shards=2,of=cohort,slot=24,keys=100,fpr=0.01", true},
  };
  static constexpr FilterRow kRow{
      .kinds = kKinds<Sharded, ShardedWindow>, .conformance = kConformance, .golden = kGolden};
  return {
      .name = "sharded",
      .summary =
          "several filters of one kind, each for its share of the keys and on a thread of its own: "
          "where one thread cannot keep up",
      .parameters = sharded_parameters(),
      .make = make_sharded,
      .forecast = forecast_sharded,
      .row = &kRow};
}

Forecast forecast_none(const Wish&, const Settings& settings) {
  SettingsReader("none", settings, {});
  return {.fnr = 1};
}

AnyFilter make_none(const Wish&, const Settings& settings, MemoryResource& memory) {
  SettingsReader("none", settings, {});
  return AnyFilter(None::make({}, memory));
}

FilterInfo none_row() {
  static constexpr std::string_view kConformance[] = {
      "none",
  };
  static constexpr GoldenSample kGolden[] = {
      {"none-1", "none"},
  };
  static constexpr FilterRow kRow{
      .kinds = kKinds<None>, .conformance = kConformance, .golden = kGolden};
  return {.name = "none",
          .summary = "lets everything through: the baseline of benchmarks",
          .parameters = {},
          .make = make_none,
          .forecast = forecast_none,
          .row = &kRow};
}

}  // namespace

std::vector<FilterInfo> window_rows() {
  return {cohort_row(), apbbf_row(),        apbf_row(),    timing_row(),
          timer_row(),  exact_window_row(), sharded_row(), none_row()};
}

}  // namespace sluice
