// Streams and trials at small sizes: what the figures are made of.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "repro/dautrich/trials.hpp"
#include "repro/run.hpp"
#include "sluice/base/error.hpp"

namespace sluice::repro::dautrich {
namespace {

TEST(ReproDautrich, TruthIsWhetherAnItemIsAmongTheLast) {
  Stream stream;
  stream.items = {0, 1, 2, 0, 1, 1, 2};
  stream.digests.resize(3);
  stream.chances = {0.3, 0.4, 0.3};
  stream.warm = 2;
  const Truth truth = truth_of(stream, 3);
  // 2 is new, 0 and 1 came three before, 1 one before, 2 four before.
  EXPECT_EQ(truth.in_window, (std::vector<bool>{false, true, true, true, false}));
  EXPECT_EQ(truth.positives, 3u);
  EXPECT_DOUBLE_EQ(truth.odds(), 1.5);
  EXPECT_NEAR(truth.chances[1], 1 - std::pow(0.6, 3), 1e-12);
}

TEST(ReproDautrich, StreamsHaveTheOddsOfTheirPriors) {
  for (const bool power : {false, true}) {
    const Length length{4000, 40'000};
    const Stream stream = power ? power_stream(2000, length, 1) : uniform_stream(2000, length, 1);
    ASSERT_EQ(stream.items.size(), 44'000u);
    const Truth truth = truth_of(stream, 1000);
    double inside = 0, all = 0;
    for (std::size_t i = 0; i < stream.chances.size(); ++i)
      inside += stream.chances[i] * truth.chances[i], all += stream.chances[i];
    EXPECT_NEAR(all, 1, 1e-9);
    EXPECT_NEAR(static_cast<double>(truth.positives) / 40'000, inside, 0.012) << power;
  }
}

TEST(ReproDautrich, APriorThatIsLearntIsHowOftenAKeyComes) {
  const Stream stream = packet_stream(
      {.active = 50, .pace = 0.5, .packets = 5, .addresses = 1000, .skew = 1}, {1000, 9000}, 3);
  double all = 0;
  for (const double chance : stream.chances) all += chance;
  EXPECT_NEAR(all, 1, 1e-9);
  EXPECT_LT(stream.distinct(5000), 1000);
  EXPECT_GT(stream.distinct(5000), stream.distinct(500));
  EXPECT_THROW(packet_stream({.active = 0, .packets = 5, .addresses = 9}, {1, 1}, 3),
               BadParameters);
}

TEST(ReproDautrich, AFileIsAStream) {
  const std::string path = testing::TempDir() + "/dautrich_addresses.txt";
  {
    std::ofstream file(path);
    for (int i = 0; i < 100; ++i) file << "10.0.0." << i % 7 << '\n';
  }
  const Stream stream = stream_of_file(path, {.warm = 1000, .asked = 1000}, 1);
  EXPECT_EQ(stream.items.size(), 100u);
  EXPECT_EQ(stream.digests.size(), 7u);
  EXPECT_EQ(stream.warm, 20u);
  EXPECT_EQ(truth_of(stream, 6).positives, 0u);
  EXPECT_EQ(truth_of(stream, 7).positives, 80u);
  EXPECT_EQ(stream_of_file(path, {.warm = 10, .asked = 30}, 1).items.size(), 40u);
}

TEST(ReproDautrich, CalibrationIsTheDistanceToTheMiddleOfBins) {
  Calibration right, wrong;
  for (int i = 0; i < 40; ++i) {
    right.add(0.525, i % 40 < 21);
    wrong.add(0.01, true);
  }
  EXPECT_NEAR(right.error(), 0, 1e-12);
  EXPECT_NEAR(wrong.error(), 0.975, 1e-12);
}

TEST(ReproDautrich, LeastCostIsLessAndTheBestProbesAreFound) {
  const Stream stream = power_stream(4096, {2000, 40'000}, 5);
  const Truth truth = truth_of(stream, 512);
  const Trial trial{stream, truth, 512, 4, 7};
  const Best best = best_of(trial, {.from = 1, .most = 8});
  EXPECT_LT(best.inferred.inferred, best.standard);
  EXPECT_LT(best.inferred.inferred, best.inferred.prior_only);
  const Best all = best_of(trial, {.from = 1, .most = 8, .all = true});
  EXPECT_LE(all.inferred.inferred, best.inferred.inferred);
  EXPECT_GE(1.05 * all.inferred.inferred, best.inferred.inferred);
}

TEST(ReproDautrich, ParametersThatCannotBeAreRefused) {
  for (const char* setting : {"bits=-1", "penalty=0.5", "w1=3", "kmax=0"}) {
    const Wish wish{.papers = {"dautrich"}, .only = {"fig7"}, .scale = 1e-4, .settings = {setting}};
    EXPECT_THROW(run(tasks_of(wish), 1, {}), BadParameters) << setting;
  }
}

}  // namespace
}  // namespace sluice::repro::dautrich
