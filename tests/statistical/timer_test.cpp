// The errors of the timer filter as measured, pinned to those of model/timer.hpp, and the numbers
// of its paper. The standard error is taken between independent tables; all seeds are fixed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/timing/timer.hpp"
#include "sluice/lab/zipf.hpp"
#include "sluice/model/timer.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/mean.hpp"
#include "tests/support/window_reference.hpp"

namespace sluice {
namespace {

using testing_support::count_of;
using testing_support::mean_of;
using testing_support::Measured;

constexpr double kTolerance = 4;  // standard errors

Timer make(const std::string& settings) {
  return Timer::make(Timer::Params::from({}, Settings::parse(settings)));
}

struct Case {
  const char* name;
  const char* settings;
};
void PrintTo(const Case& it, std::ostream* out) {
  *out << it.settings;
}

class TimerError : public testing::TestWithParam<Case> {};

// A window full of new keys, rotated until 8-bit numbers have come round; then keys never written
// are asked for, and all that are live.
TEST_P(TimerError, IsWhatTheModelSays) {
  constexpr int kTables = 24;
  const Timer::Params params = make(GetParam().settings).params();
  const std::uint64_t block = params.capacity / params.generations;
  const model::TimerTable table{.timers = static_cast<double>(params.timers),
                                .probes = params.probes,
                                .slices = params.slices,
                                .vertical = params.layout == Timer::Layout::vertical};
  // The present generation is half full.
  const double live = static_cast<double>(block * params.generations + block / 2);
  const double live_generations = params.generations + (block > 1 ? 0.5 : 0.0);
  const double fpr = params.equal <= 1
                         ? model::timer_window_fpr(table, live)
                         : model::timer_equal_fpr(table, params.equal, live, live_generations);
  const double fnr = model::timer_equal_fnr(table, params.equal, live, live_generations);
  const auto probes = static_cast<std::uint64_t>(std::max(2e4, 6000 / fpr / kTables));
  std::vector<double> positives, negatives;
  for (int i = 0; i < kTables; ++i) {
    Timer filter = make(GetParam().settings);
    SplitMix64 random(static_cast<std::uint64_t>(500 + i));
    std::vector<Digest> window;
    const auto write = [&](std::uint64_t keys) {
      while (keys > 0) {
        const Digest key{random.next(), random.next()};
        if (filter.observe(key) == Verdict::duplicate) continue;
        window.push_back(key);
        --keys;
      }
    };
    const unsigned rounds = std::max(2 * params.generations, 300u);
    for (unsigned generation = 0; generation < rounds; ++generation) {
      write(block);
      filter.rotate();
    }
    write(block / 2);
    ASSERT_EQ(static_cast<double>(filter.live_keys()), live);
    window.erase(window.begin(), window.end() - static_cast<std::ptrdiff_t>(live));
    std::uint64_t found = 0, lost = 0;
    for (std::uint64_t probe = 0; probe < probes; ++probe)
      found += filter.may_contain({random.next(), random.next()});
    for (const Digest& key : window) lost += !filter.may_contain(key);
    positives.push_back(static_cast<double>(found) / static_cast<double>(probes));
    negatives.push_back(static_cast<double>(lost) / live);
  }
  const Measured positive = mean_of(positives), negative = mean_of(negatives);
  EXPECT_NEAR(positive.mean, fpr, kTolerance * positive.standard_error);
  EXPECT_LT(positive.standard_error, 0.06 * fpr) << "too few probes to tell anything";
  EXPECT_LT(positive.mean, params.target_fpr + kTolerance * positive.standard_error);
  if (params.equal <= 1) {
    EXPECT_EQ(negative.mean, 0);
  } else {
    EXPECT_NEAR(negative.mean, fnr, kTolerance * negative.standard_error);
    EXPECT_LT(negative.standard_error, 0.1 * fnr);
  }
}

constexpr Case kCases[] = {
    {"vertical", "keys=4800,fpr=0.01"},
    {"vertical_small_error", "keys=4800,fpr=0.001,generations=100"},
    {"plain", "keys=4800,fpr=0.01,layout=plain"},
    {"horizontal", "keys=4800,fpr=0.01,layout=horizontal,slices=40"},
    {"horizontal_many", "keys=2400,fpr=0.05,layout=horizontal,slices=100"},
    {"horizontal_few_keys_in_each", "keys=4800,fpr=0.01,layout=horizontal,slices=2000"},
    {"horizontal_one_key_in_ten", "keys=4800,fpr=0.01,layout=horizontal,slices=48000"},
    {"horizontal_few_keys_small_error", "keys=4800,fpr=0.001,layout=horizontal,slices=2400"},
    {"vertical_equal2", "keys=2000,fpr=0.02,probes=8,equal=2,generations=2000"},
    {"vertical_equal3", "keys=2000,fpr=0.3,probes=8,equal=3,generations=500"},
    {"plain_equal2", "keys=2000,fpr=0.02,layout=plain,probes=6,equal=2,generations=1000"},
    {"vertical_equal3_blocks", "keys=2000,fpr=0.1,probes=8,equal=3,generations=50"},
    {"horizontal_equal3",
     "keys=2000,fpr=0.02,layout=horizontal,slices=40,probes=8,equal=3,generations=2000"},
};

INSTANTIATE_TEST_SUITE_P(Shapes, TimerError, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// 16-bit numbers do not come round within this test, so they are absolute times; 8-bit ones do,
// many times, and must decide exactly alike. Generations are such that the sweep has one to do its
// work.
TEST(TimerNumbers, ThatWrapEqualAbsoluteOnes) {
  for (const char* settings :
       {"keys=400,fpr=0.05,generations=253", "keys=400,fpr=0.05,generations=20",
        "keys=400,fpr=0.2,generations=252,layout=plain",
        "keys=400,fpr=0.05,generations=250,equal=2"}) {
    for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed}) {
      Timer wrapping = make(std::string(settings) + ",timer=8");
      Timer absolute = make(std::string(settings) + ",timer=16");
      SplitMix64 random(77);
      const unsigned generations = wrapping.generations();
      std::uint64_t duplicates = 0;
      const int steps = count_of(8000, 30'000);
      for (int step = 0; step < steps; ++step) {
        const Digest key{random.next() % 700, 5};
        const Digest mixed{SplitMix64(key.lo).next(), SplitMix64(key.lo + 1'000'000).next()};
        const double draw = random.next_unit();
        std::optional<Verdict> one, other;
        if (draw < 0.2) {
          const auto age = static_cast<unsigned>(random.next() % (generations + 1));
          one = wrapping.admit_aged(mixed, age, anchor);
          other = absolute.admit_aged(mixed, age, anchor);
        } else {
          one = wrapping.admit_aged(mixed, 0, anchor);
          other = absolute.admit_aged(mixed, 0, anchor);
        }
        ASSERT_EQ(one, other) << settings << " at step " << step;
        duplicates += one == Verdict::duplicate;
        ASSERT_EQ(wrapping.live_keys(), absolute.live_keys());
        const std::uint64_t rotations = draw > 0.999 ? 300 : draw > 0.4;
        for (std::uint64_t i = 0; i < rotations; ++i) {
          wrapping.rotate();
          absolute.rotate();
        }
      }
      EXPECT_GT(duplicates, static_cast<std::uint64_t>(steps) / 30);
    }
  }
}

// The paper's experiment on its synthetic stream: Zipf(1) over 5700 events, a window of 1000 time
// units with an event in each, 8 probes, and a table for 2 % at the 432 events that are live.
struct Errors {
  double positives, negatives;
};
Errors errors_on_zipf(const std::string& layout, unsigned equal, std::uint64_t seed) {
  Timer filter = make("keys=1000,fpr=0.02,generations=1000,timer=16,probes=8,timers=3638," +
                      layout + ",equal=" + std::to_string(equal));
  testing_support::WindowReference truth(1000);
  const ZipfSampler zipf(5700, 1.0);
  SplitMix64 random(seed);
  double false_positive = 0, all_new = 0, false_negative = 0, all_old = 0;
  for (int time = 0; time < 150'000; ++time) {
    SplitMix64 name(seed * 1'000'000 + zipf.draw(random));
    const std::uint64_t lo = name.next();
    const Digest event{lo, name.next()};
    const bool old = truth.holds(event);
    const Verdict verdict = filter.observe(event);
    if (verdict == Verdict::distinct) truth.write(event);
    if (time > 3000) {
      (old ? all_old : all_new) += 1;
      false_negative += old && verdict == Verdict::distinct;
      false_positive += !old && verdict == Verdict::duplicate;
    }
    filter.rotate();
    truth.rotate();
  }
  return {false_positive / all_new, false_negative / all_old};
}

// Which events share timers is drawn once per table, so tables differ: the mean of several.
struct MeasuredErrors {
  Measured positives, negatives;
};
MeasuredErrors measure_on_zipf(const std::string& layout, unsigned equal) {
  const std::uint64_t tables = count_of(6, 12);
  std::vector<double> positives, negatives;
  for (std::uint64_t table = 1; table <= tables; ++table) {
    const Errors errors = errors_on_zipf(layout, equal, table);
    positives.push_back(errors.positives);
    negatives.push_back(errors.negatives);
  }
  const MeasuredErrors measured{mean_of(positives), mean_of(negatives)};
  std::string name = layout + "_equal" + std::to_string(equal);
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  testing::Test::RecordProperty(
      name, fmt::format("{:.5f} ± {:.5f} false positives, {:.5f} ± {:.5f} false negatives",
                        measured.positives.mean, measured.positives.standard_error,
                        measured.negatives.mean, measured.negatives.standard_error));
  return measured;
}

// The known values for this experiment are .024 to .0013 at 1.0 % and .044 to .014 at 3.7 %. Their
// stream is known only as Zipf(1), and the values depend on its size: of 2000 to 20000 events
// tried, 5700, the paper's synthetic set, comes nearest, and 10000 gives a fifth to two fifths
// more. So the bands below are wide, and no test of agreement in standard errors:
// docs/filters/timer.md has both.
TEST(TimerPaperError, EqualTimersOnTheSyntheticStream) {
  const MeasuredErrors vertical = measure_on_zipf("layout=vertical", 0);
  EXPECT_NEAR(vertical.positives.mean, 0.024, 0.003);
  EXPECT_EQ(vertical.negatives.mean, 0);
  const MeasuredErrors two_equal = measure_on_zipf("layout=vertical", 2);
  EXPECT_NEAR(two_equal.positives.mean, 0.0013, 0.0005);
  EXPECT_NEAR(two_equal.negatives.mean, 0.010, 0.002);
  const MeasuredErrors horizontal = measure_on_zipf("layout=horizontal,slices=40", 0);
  EXPECT_NEAR(horizontal.positives.mean, 0.044, 0.005);
  EXPECT_EQ(horizontal.negatives.mean, 0);
  const MeasuredErrors three_equal = measure_on_zipf("layout=horizontal,slices=40", 3);
  EXPECT_NEAR(three_equal.positives.mean, 0.014, 0.002);
  EXPECT_NEAR(three_equal.negatives.mean, 0.037, 0.008);
}

}  // namespace
}  // namespace sluice
