// The errors of the timing filter as measured, pinned to those of model/timing.hpp.
//
// Each case runs kTables independent windows, of keys that are all new, until every number has come
// round, and asks for keys that were never written at three points of a generation. The standard
// error is taken between the tables. All seeds are fixed. Two shapes of one and two
// generations with errors of 5 % and more are left out: there the model is 1 to 3 % off, more than
// this would allow (docs/filters/timing.md).
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/timing/timing.hpp"
#include "sluice/model/timing.hpp"

namespace sluice {
namespace {

constexpr double kTolerance = 4;  // standard errors
constexpr int kTables = 32;

Timing make(const std::string& settings) {
  return Timing::make(Timing::Params::from({}, Settings::parse(settings)));
}

// A key that is taken for an old one is not written: then another is, so that the number of written
// keys is held constant.
void write_new(Timing& filter, SplitMix64& random, std::uint64_t keys) {
  while (keys > 0) keys -= filter.observe({random.next(), random.next()}) == Verdict::distinct;
}

class TimingError : public testing::TestWithParam<const char*> {};

TEST_P(TimingError, IsWhatTheModelSays) {
  const Timing::Params params = make(GetParam()).params();
  const std::uint64_t block = params.capacity / params.generations;
  for (const double fill : {0.0, 0.5, 1.0}) {
    const auto extra = static_cast<std::uint64_t>(static_cast<double>(block) * fill);
    const std::uint64_t live = block * params.generations + extra;
    const double expected = model::timing_window_fpr(static_cast<double>(params.timers),
                                                     params.probes, static_cast<double>(live));
    const auto probes = static_cast<std::uint64_t>(std::max(5e4, 1e4 / expected / kTables));
    double sum = 0, squares = 0;
    for (int table = 0; table < kTables; ++table) {
      Timing filter = make(GetParam());
      SplitMix64 random(static_cast<std::uint64_t>(100 + table));
      const unsigned rounds = 2 * params.generations + params.padding + 4;
      for (unsigned generation = 0; generation < rounds; ++generation) {
        write_new(filter, random, block);
        filter.rotate();
      }
      write_new(filter, random, extra);
      ASSERT_EQ(filter.live_keys(), live);
      EXPECT_NEAR(filter.stats().predicted_fpr / expected, 1, 1e-9);
      std::uint64_t found = 0;
      for (std::uint64_t i = 0; i < probes; ++i)
        found += filter.may_contain({random.next(), random.next()});
      const double share = static_cast<double>(found) / static_cast<double>(probes);
      sum += share;
      squares += share * share;
    }
    const double mean = sum / kTables;
    const double error = std::sqrt((squares / kTables - mean * mean) / (kTables - 1));
    EXPECT_NEAR(mean, expected, kTolerance * error) << "fill " << fill;
    EXPECT_LT(error, 0.03 * expected) << "too few probes to tell anything";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TimingError,
                         testing::Values("keys=4000,fpr=0.01", "keys=4000,fpr=0.01,generations=24",
                                         "keys=4000,fpr=0.001,generations=5",
                                         "keys=4000,fpr=0.05,probes=2",
                                         "keys=3000,fpr=0.01,probes=7,generations=30",
                                         "keys=500,fpr=0.01,probes=7,timer=13",
                                         "keys=4000,bytes=40000,probes=3,generations=12"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

// The oldest timestamp tells a key's age unless every timer was written since, which is a false
// positive's chance; and it is never older than the key.
TEST(TimingAge, IsTheKeysAgeButForOverwrittenTimers) {
  Timing filter = make("keys=4000,fpr=0.01,generations=20");
  const unsigned generations = filter.generations();
  SplitMix64 random(5);
  std::vector<std::vector<Digest>> written;
  for (unsigned generation = 0; generation < 3 * generations; ++generation) {
    written.emplace_back();
    for (int i = 0; i < 200; ++i) {
      const Digest key{random.next(), random.next()};
      if (filter.observe(key) == Verdict::distinct) written.back().push_back(key);
    }
    filter.rotate();
  }
  unsigned exact = 0, all = 0;
  for (unsigned age = 1; age <= generations; ++age) {
    for (const Digest& key : written[written.size() - age]) {
      const auto trace = filter.age_of(key);
      ASSERT_TRUE(trace.has_value());
      EXPECT_LE(trace->age, age);
      EXPECT_GE(trace->oldest, 1u);
      EXPECT_LE(trace->oldest, trace->cells);
      EXPECT_LE(trace->cells, filter.params().probes);
      exact += trace->age == age;
      ++all;
    }
  }
  EXPECT_GT(exact, all * 985 / 1000);
}

}  // namespace
}  // namespace sluice
