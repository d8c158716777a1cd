// Closed forms against the sums they stand for, age by age.
#include "sluice/model/posterior.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sluice/model/distinct_keys.hpp"

namespace sluice::model {
namespace {

constexpr double kClose = 1e-9;

double weight(const AgePrior& prior, double age) {
  if (age < prior.hold) return std::pow(1 - prior.inside, age);
  return prior.tail * std::pow(1 - prior.outside, age - prior.hold);
}

double likelihood(const AgePrior& prior, const AgeEvidence& evidence, double age) {
  if (age < evidence.from) return 0;
  if (age < evidence.to) return 1;
  return age < prior.hold ? evidence.inside : evidence.beyond;
}

struct Sums {
  double within, mean, mode;
};

// Until the tail is lost in rounding.
Sums sums(const AgePrior& prior, const AgeEvidence& evidence, double ticks) {
  double all = 0, below = 0, moment = 0, most = -1, mode = 0;
  const double end = prior.hold + 60 / prior.outside;
  for (double age = 0; age < end; ++age) {
    const double chance = weight(prior, age) * likelihood(prior, evidence, age);
    all += chance;
    below += age < ticks ? chance : 0;
    moment += age * chance;
    if (chance > most) most = chance, mode = age;
  }
  return {below / all, moment / all, mode};
}

TEST(Posterior, IsTheSumOverAges) {
  const AgePrior priors[] = {refreshed_age(0.01),          refreshed_age(0.3),
                             refreshed_age(0.0007),        renewal_age(0.01, 90),
                             renewal_age(0.002, 9, 10, 4), {0.001, 0.02, 80, 0.7}};
  const AgeEvidence sights[] = {{0, 7, 0.2, 0.2},   {14, 24, 0.01, 0.01}, {34, 44, 0, 0.05},
                                {84, 94, 0.3, 0.3}, {0, 0, 1, 1},         {94, 1e300, 0, 0}};
  for (const AgePrior& prior : priors) {
    for (const AgeEvidence& evidence : sights) {
      for (const double ticks : {1.0, 5.0, 20.0, 40.0, 80.0, 90.0}) {
        const Sums expected = sums(prior, evidence, ticks);
        EXPECT_NEAR(posterior_within(prior, evidence, ticks), expected.within, kClose);
        EXPECT_NEAR(posterior_mean(prior, evidence) / expected.mean, 1, kClose);
        EXPECT_EQ(posterior_mode(prior, evidence), expected.mode)
            << prior.hold << ' ' << evidence.from;
      }
    }
  }
}

// A window, a rare key: where the closed form of the mean would cancel.
TEST(Posterior, TheMeanKeepsItsDigits) {
  const AgePrior prior = refreshed_age(1e-7);
  const AgeEvidence own{100, 1100, 0, 0};
  double all = 0, moment = 0;
  for (int age = 100; age < 1100; ++age) {
    all += std::pow(1 - 1e-7, age);
    moment += age * std::pow(1 - 1e-7, age);
  }
  EXPECT_NEAR(posterior_mean(prior, own) * all / moment, 1, 1e-12);
}

// Theorems 2 to 5 by Lemmas 1 and 2: every age's prior (eq. 4) times its likelihood (eq. 22, 24).
TEST(Posterior, TheoremsTwoToFive) {
  for (const double p : {0.5, 0.03, 0.004}) {
    for (const double window : {20.0, 25.0, 60.0}) {
      for (const double block : {1.0, 5.0, 7.0}) {
        for (double b = 0; b < block; b += 2) {
          const unsigned last = timing_last_age(window, block, b);
          for (unsigned age = b > 0 ? 0 : 1; age <= last + 2; ++age) {
            // Nothing since the block that is seen can have touched the others.
            const bool fresh = age == 0 || (age == 1 && b == 0);
            const unsigned cells = 4, oldest = fresh ? 4 : 3;
            const double kept = timer_untouched(50, 4, (age - 1.0) * block + b);
            const double one = 1 - timer_untouched(50, 4, age == 0 ? b : block);
            const double touched = timers_pattern(oldest, 0, 1 - one);
            const double own = timers_pattern(cells, oldest, kept);  // F
            double below = 0, all = 0;
            for (double i = 0; i < 50 / p; ++i) {
              double seen;
              if (age == 0)
                seen = i < b ? 1 : touched;
              else
                seen = i < (age - 1.0) * block + b ? 0 : i < age * block + b ? own : touched * own;
              all += p * std::pow(1 - p, i) * seen;
              below += i < window ? p * std::pow(1 - p, i) * seen : 0;
            }
            const double expected = age > last ? 0 : below / all;
            const TimingSight sight{window, block, b, age, touched};
            EXPECT_NEAR(timing_posterior(p, sight), expected, kClose)
                << p << ' ' << window << ' ' << block << ' ' << b << ' ' << age;
            EXPECT_NEAR(posterior_within(refreshed_age(p), timing_evidence(sight), window),
                        expected, kClose);
          }
        }
      }
    }
  }
}

TEST(Posterior, TheoremOne) {
  for (const double p : {0.2, 0.001}) {
    for (const double n : {1.0, 10.0, 1000.0}) {
      for (const double fpr : {0.0, 0.01, 0.5}) {
        double written = 0;
        for (double i = 0; i < n; ++i) written += p * std::pow(1 - p, i);
        const double never = std::pow(1 - p, n);
        EXPECT_NEAR(classic_posterior(p, n, fpr), written / (written + never * fpr), kClose);
      }
    }
  }
}

TEST(Posterior, ARenewalAgeIsUniformOverTheWindow) {
  const double p = 0.002, window = 300;
  const AgeEvidence nothing{0, 0, 1, 1};
  for (const double ticks : {1.0, 30.0, 300.0})
    EXPECT_NEAR(posterior_within(renewal_age(p, window), nothing, ticks),
                ticks * p / (1 + window * p), kClose);
  EXPECT_EQ(timer_untouched(1, 3, 0), 1);
}

// A key's life by blocks, its chances carried from tick to tick until they stand still. Writes are
// not quite even over a block, as keys are let go at its beginning: 5 % with p·B = 0.1.
TEST(Posterior, ARenewalAgeByBlocks) {
  const double p = 0.013;
  const unsigned generations = 3, block = 8;
  const unsigned most = 4000;
  std::vector<double> chance(most), next(most);
  chance[0] = 1;
  // At the beginning of a tick at `position` the key has age i; it comes with chance p.
  const auto step = [&](unsigned position) {
    double written = 0;
    std::fill(next.begin(), next.end(), 0);
    for (unsigned i = 0; i + 1 < most; ++i) {
      const bool held = i < generations * block + position;
      written += held ? 0 : p * chance[i];
      next[i + 1] = held ? chance[i] : (1 - p) * chance[i];
    }
    next[0] = written;
    chance.swap(next);
  };
  for (unsigned tick = 0; tick < 400 * block; ++tick) step(tick % block);
  for (unsigned position = 0; position < block; ++position) {
    const AgePrior prior = renewal_age(p, generations, block, position);
    const AgeEvidence nothing{0, 0, 1, 1};
    double below = 0;
    for (unsigned i = 0; i < generations * block; ++i) {
      below += chance[i];
      EXPECT_NEAR(posterior_within(prior, nothing, i + 1.0), below, 0.05 * below)
          << position << ' ' << i;
    }
    step(position);
  }
}

TEST(DistinctKeys, AreTheSumOfEq15) {
  const auto sum = [](std::uint64_t keys, double arrivals, bool power_law) {
    double total = 0, distinct = 0;
    for (std::uint64_t x = 1; x <= keys; ++x) total += 1 / double(x);
    for (std::uint64_t x = 1; x <= keys; ++x)
      distinct +=
          1 - std::pow(1 - (power_law ? 1 / (double(x) * total) : 1 / double(keys)), arrivals);
    return distinct;
  };
  for (const std::uint64_t keys : {2u, 100u, 5000u}) {
    for (const double arrivals : {1.0, 7.0, 1000.0, 1e5}) {
      EXPECT_NEAR(uniform_distinct(double(keys), arrivals) / sum(keys, arrivals, false), 1, kClose);
      EXPECT_NEAR(power_law_distinct(keys, arrivals) / sum(keys, arrivals, true), 1, kClose);
      EXPECT_NEAR(DistinctKeys::power_law(keys)(arrivals) / sum(keys, arrivals, true), 1, 5e-3);
    }
  }
  EXPECT_EQ(DistinctKeys()(123), 123);
  EXPECT_NEAR(DistinctKeys::uniform(1000)(50), sum(1000, 50, false), 1e-6);
}

TEST(DistinctKeys, ThePowerLawBeyondWhatIsSummed) {
  const std::uint64_t keys = 300'000;
  const double total = harmonic(double(keys));
  for (const double arrivals : {1.0, 1e4, 1e6}) {
    double sum = 0;
    for (std::uint64_t x = keys; x > 0; --x)
      sum -= std::expm1(arrivals * std::log1p(-1 / (double(x) * total)));
    EXPECT_NEAR(power_law_distinct(keys, arrivals) / sum, 1, 1e-8);
  }
}

// Eq. 17 is good in the middle and no D at the ends.
TEST(DistinctKeys, WhereEq17Holds) {
  const std::uint64_t keys = 1u << 16;
  const auto off = [&](double arrivals) {
    return power_law_distinct_limit(double(keys), arrivals) / power_law_distinct(keys, arrivals) -
           1;
  };
  for (const double arrivals : {100.0, 1e3, 1e4}) EXPECT_NEAR(off(arrivals), 0, 0.01) << arrivals;
  EXPECT_GT(std::abs(off(1)), 0.1);
  EXPECT_GT(std::abs(off(4e6)), 0.1);
  EXPECT_NEAR(power_law_distinct(keys, 1), 1, 1e-9);
  EXPECT_EQ(DistinctKeys::power_law(keys)(1), 1);
}

TEST(DistinctKeys, MeasuredOnesAreStraightOnALogLogPlot) {
  const DistinctKeys::Point points[] = {{1, 1}, {100, 50}, {10'000, 800}};
  const DistinctKeys curve = DistinctKeys::measured(points);
  EXPECT_NEAR(curve(100), 50, 1e-9);
  EXPECT_NEAR(curve(10), std::sqrt(50), 1e-9);
  EXPECT_NEAR(curve(1000), std::sqrt(50.0 * 800), 1e-9);
  EXPECT_NEAR(curve(1e6), 800, 1e-9);
  const DistinctKeys::Point wrong[] = {{100, 200}};
  EXPECT_ANY_THROW(DistinctKeys::measured(wrong));
  EXPECT_ANY_THROW(DistinctKeys::measured({}));
}

}  // namespace
}  // namespace sluice::model
