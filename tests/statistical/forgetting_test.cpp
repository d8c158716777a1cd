// How far back `stable` and `reservoir` remember, as measured, pinned to model/stable.hpp and
// model/reservoir.hpp.
//
// Each case runs kTables filters of their own seeds; the standard error is taken between them. A
// filter first sees enough new keys for its fill to settle. All seeds are fixed.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/reservoir.hpp"
#include "sluice/filters/stable.hpp"

namespace sluice {
namespace {

constexpr double kTolerance = 4;  // standard errors
constexpr int kTables = 8;
constexpr double kBits = 1 << 14;

struct Sample {
  double sum = 0, squares = 0;
  int count = 0;
  void add(double value) {
    sum += value;
    squares += value * value;
    ++count;
  }
  double mean() const { return sum / count; }
  double error() const {
    return std::sqrt(std::max(squares / count - mean() * mean(), 0.0) / (count - 1));
  }
};

Digest next_key(SplitMix64& random) {
  const std::uint64_t lo = random.next();
  return {lo, random.next()};
}

double model_caught(const AnyFilter& filter, double distance) {
  if (const auto* stable = filter.as<Stable>())
    return model::stable_caught(stable->params().shape(), distance);
  return model::reservoir_caught(filter.as<Reservoir>()->params().shape(), distance);
}

class ForgettingError : public testing::TestWithParam<const char*> {};

// A key that repeats after d new ones is caught as often as the model says; one that never was, as
// often as a false positive; and stats() says the latter from the fill.
TEST_P(ForgettingError, IsWhatTheModelSays) {
  constexpr std::size_t kKeys = 30'000;
  constexpr std::size_t kDistances[] = {0, 100, 400, 1600, 6400};
  const std::string settings = GetParam() + std::string(",bytes=2048,seed=");
  Sample caught[std::size(kDistances)], lost, predicted;
  for (int table = 1; table <= kTables; ++table) {
    AnyFilter filter = make_filter(settings + std::to_string(table), {.fpr = 0.1});
    SplitMix64 random(static_cast<std::uint64_t>(table));
    // The paper's variant writes every new key after s/p* = 33 s of them.
    std::vector<Digest> keys(static_cast<std::size_t>(40 * kBits) /
                             (settings.find("paper") != settings.npos ? 1 : 8));
    for (Digest& key : keys) key = next_key(random);
    filter.insert(keys);
    double found[std::size(kDistances)] = {}, wrong = 0, fpr = 0;
    for (std::size_t i = 0; i < kKeys; ++i) {
      keys.push_back(next_key(random));
      filter.insert({&keys.back(), 1});
      Verdict verdict{};
      for (std::size_t j = 0; j < std::size(kDistances); ++j) {
        filter.may_contain({&keys[keys.size() - 1 - kDistances[j]], 1}, {&verdict, 1});
        found[j] += verdict == Verdict::duplicate;
      }
      const Digest fresh = next_key(random);
      filter.may_contain({&fresh, 1}, {&verdict, 1});
      wrong += verdict == Verdict::duplicate;
      if (i % 100 == 0) fpr += 100 * filter.stats().predicted_fpr;
    }
    for (std::size_t j = 0; j < std::size(kDistances); ++j) caught[j].add(found[j] / kKeys);
    lost.add(wrong / kKeys);
    predicted.add(fpr / kKeys);
  }
  const AnyFilter filter = make_filter(settings + "1", {.fpr = 0.1});
  for (std::size_t j = 0; j < std::size(kDistances); ++j)
    EXPECT_NEAR(caught[j].mean(), model_caught(filter, static_cast<double>(kDistances[j])),
                kTolerance * caught[j].error() + .002)
        << "after " << kDistances[j] << " keys";
  const double planned = filter.stats().planned_fpr;
  EXPECT_NEAR(lost.mean(), planned, kTolerance * lost.error() + .01 * planned);
  EXPECT_NEAR(predicted.mean(), lost.mean(), kTolerance * lost.error());
  EXPECT_LT(lost.error(), .05 * planned) << "too few keys to tell anything";
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ForgettingError,
    testing::Values("stable,probes=2,decrements=4", "stable,probes=3,decrements=12,max=3",
                    "stable,probes=2,decrements=30,max=7,draws=independent", "stable",
                    "reservoir,filters=3,resets=1", "reservoir,filters=2,resets=1",
                    "reservoir,filters=4,resets=2", "reservoir",
                    "reservoir,filters=3,variant=paper", "reservoir,filters=1,variant=paper"),
    [](const auto& test) {
      std::string name = test.param;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

// Share of repeats let through on a stream that is uniform over a universe, once it has settled.
double uniform_fnr(AnyFilter filter, std::uint64_t universe) {
  const std::uint64_t records = 200'000 + 12 * universe;
  SplitMix64 random(7);
  std::uint64_t missed = 0;
  for (std::uint64_t i = 0; i < records; ++i) {
    SplitMix64 hash(scale_to(random.next(), universe));
    const Digest digest = next_key(hash);
    Verdict verdict{};
    filter.observe({&digest, 1}, {&verdict, 1});
    missed += verdict == Verdict::distinct && i >= records / 2;
  }
  return 2 * static_cast<double>(missed) / static_cast<double>(records);
}

// Where the rate feeds back on itself, luck does not average out as fast as a count of records
// would have it: 2 points.
TEST(ForgettingUniformError, IsWhatTheModelSays) {
  for (const unsigned filters : {2u, 3u}) {
    for (const std::uint64_t universe : {5'000u, 10'000u, 40'000u}) {
      const Reservoir::Params params{
          .bits = 1 << 16, .filters = filters, .resets = 1, .target_fpr = 0.1};
      EXPECT_NEAR(uniform_fnr(AnyFilter(Reservoir::make(params)), universe),
                  model::reservoir_uniform_fnr(params.shape(), static_cast<double>(universe)), .02)
          << filters << ' ' << universe;
    }
  }
  for (const unsigned max : {1u, 3u}) {
    const Stable::Params params{
        .bits = 1 << 16, .probes = 2, .decrements = 9, .max = max, .target_fpr = 0.1};
    for (const std::uint64_t universe : {3'000u, 10'000u, 40'000u})
      EXPECT_NEAR(uniform_fnr(AnyFilter(Stable::make(params)), universe),
                  model::stable_uniform_fnr(params.shape(), static_cast<double>(universe)), .01)
          << max << ' ' << universe;
  }
}

// With few enough keys the biased rule comes to rest: it knows all of them, and resets nothing
// more.
TEST(ForgettingUniformError, IsNothingForFewKeys) {
  const Reservoir::Params params{.bits = 1 << 16, .filters = 2, .resets = 1, .target_fpr = 0.1};
  EXPECT_EQ(model::reservoir_uniform_fnr(params.shape(), 6'000), 0);
  EXPECT_EQ(uniform_fnr(AnyFilter(Reservoir::make(params)), 6'000), 0);
  EXPECT_GT(uniform_fnr(AnyFilter(Reservoir::make(params)), 30'000), 0.1);
}

// The paper has its filter converge faster than stable. At its three filters and stable's 2 probes
// and 4 decrements both approach their fill at the same rate, 6/M per record; and after the first s
// records sampling slows the paper's down.
TEST(ForgettingConvergenceError, IsTheSameForBoth) {
  constexpr std::uint64_t kTableBits = 3 << 18;
  Stable stable =
      Stable::make({.bits = kTableBits, .probes = 2, .decrements = 4, .target_fpr = 0.1});
  Reservoir paper = Reservoir::make(
      {.bits = kTableBits, .filters = 3, .variant = Reservoir::Variant::paper, .target_fpr = 0.1});
  SplitMix64 random(1);
  const auto observe = [&](std::uint64_t records) {
    for (std::uint64_t i = 0; i < records; ++i) {
      const Digest digest = next_key(random);
      stable.observe(digest);
      paper.observe(digest);
    }
  };
  observe(kTableBits / 6);
  EXPECT_NEAR(stable.fill() * 3, 1 - std::exp(-1.0), .01);
  EXPECT_NEAR(paper.fill() * 2, 1 - std::exp(-1.0), .01);
  observe(kTableBits);
  EXPECT_NEAR(1 - stable.fill() * 3, std::exp(-7.0), .003);
  // s records written, then s·ln(3.5).
  EXPECT_NEAR(1 - paper.fill() * 2, std::exp(-2 * (1 + std::log(3.5))), .004);
}

}  // namespace
}  // namespace sluice
