// Age-partitioned filters at parameters that no table lists, against other ways to the same
// numbers: every pattern of matches one by one, sums over where the first run ends, closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/model/apbf.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/shtul_tables.hpp"

namespace sluice::model {
namespace {

struct Asked {
  bool found;
  unsigned accesses;
};

// The paper's query, on one pattern of matching segments.
Asked ask(unsigned pattern, unsigned k, unsigned l) {
  int at = static_cast<int>(l);
  unsigned current = 0, previous = 0, accesses = 0;
  while (at >= 0) {
    ++accesses;
    if (pattern >> at & 1) {
      ++current, ++at;
      if (current + previous == k) return {true, accesses};
    } else {
      at -= static_cast<int>(k);
      previous = current, current = 0;
    }
  }
  return {false, accesses};
}

struct Counted {
  double fpr = 0;
  QueryAccesses accesses = {0, 0, 0};
};

Counted by_patterns(std::span<const double> matches, unsigned k) {
  const auto segments = static_cast<unsigned>(matches.size());
  const unsigned l = segments - k;
  Counted all;
  double negative = 0;
  for (unsigned pattern = 0; pattern < 1u << segments; ++pattern) {
    double chance = 1;
    for (unsigned i = 0; i < segments; ++i)
      chance *= pattern >> i & 1 ? matches[i] : 1 - matches[i];
    const Asked absent = ask(pattern, k, l);
    (absent.found ? all.fpr : negative) += chance;
    (absent.found ? all.accesses.positive : all.accesses.negative) += chance * absent.accesses;
    for (unsigned age = 0; age < l; ++age)
      all.accesses.window += chance * ask(pattern | ((1u << k) - 1) << age, k, l).accesses / l;
  }
  all.accesses.positive /= all.fpr;
  all.accesses.negative /= negative;
  return all;
}

TEST(ApbfOracle, EveryPattern) {
  for (unsigned k = 1; k <= 6; ++k) {
    for (unsigned l = 1; k + l <= 13; ++l) {
      SCOPED_TRACE(testing::Message() << k << ',' << l);
      for (const Fills fills : {Fills::linear, Fills::exact}) {
        const std::vector<double> matches = segment_matches(k, l, fills);
        const Counted expected = by_patterns(matches, k);
        EXPECT_NEAR(run_of_matches(matches, k) / expected.fpr, 1, 1e-9);
        const QueryAccesses accesses = query_accesses(matches, k);
        EXPECT_NEAR(accesses.window / expected.accesses.window, 1, 1e-9);
        EXPECT_NEAR(accesses.positive / expected.accesses.positive, 1, 1e-9);
        EXPECT_NEAR(accesses.negative / expected.accesses.negative, 1, 1e-9);
      }
    }
  }
}

// Sum over where the first run of k ends: all k match, the one before does not, and there was no
// run up to that.
double first_runs(const std::vector<long double>& matches, unsigned k) {
  std::vector<long double> found(matches.size() + 1);  // among the first i
  for (std::size_t end = 1; end <= matches.size(); ++end) {
    found[end] = found[end - 1];
    if (end < k) continue;
    long double run = 1;
    for (std::size_t i = end - k; i < end; ++i) run *= matches[i];
    if (end > k) run *= (1 - matches[end - k - 1]) * (1 - found[end - k - 1]);
    found[end] += run;
  }
  return static_cast<double>(found.back());
}

TEST(ApbfOracle, WorstErrorAtAnyParameters) {
  SplitMix64 random(3);
  for (int round = 0; round < 500; ++round) {
    const auto k = static_cast<unsigned>(1 + random.next() % 40);
    const auto l = static_cast<unsigned>(1 + random.next() % 200);
    std::vector<long double> linear, exact, after_shift;
    for (unsigned i = 0; i < k + l; ++i) {
      const long double held = i < k ? i + 1 : k;
      linear.push_back(held / (2 * k));
      exact.push_back(1 - std::pow(2.0L, -held / k));
      after_shift.push_back(i < k ? 1 - std::pow(2.0L, -static_cast<long double>(i) / k) : 0.5L);
    }
    SCOPED_TRACE(testing::Message() << k << ',' << l);
    EXPECT_NEAR(apbf_fpr(k, l, Fills::linear) / first_runs(linear, k), 1, 1e-9);
    EXPECT_NEAR(apbf_fpr(k, l) / first_runs(exact, k), 1, 1e-9);
    EXPECT_NEAR(
        run_of_matches(segment_matches(k, l, Fills::exact, 1, 0), k) / first_runs(after_shift, k),
        1, 1e-9);
  }
}

// What a query reads, computed forwards: the distribution of its position after each access. Every
// access is of a segment not read before, so each matches by its own chance; those from `age` on
// that hold the key match always.
Counted followed(const std::vector<double>& matches, unsigned k, int age = -1) {
  const int l = static_cast<int>(matches.size() - k);
  using State = std::array<int, 3>;  // at, matches in a row, matches before them
  std::map<State, double> states{{{l, 0, 0}, 1.0}};
  Counted all;
  double negative = 0;
  for (unsigned accesses = 1; !states.empty(); ++accesses) {
    std::map<State, double> next;
    for (const auto& [state, chance] : states) {
      const auto [at, current, previous] = state;
      const bool sure = age >= 0 && at >= age && at < age + static_cast<int>(k);
      const double match = sure ? 1 : matches[static_cast<std::size_t>(at)];
      if (current + 1 + previous == static_cast<int>(k)) {
        all.fpr += chance * match;
        all.accesses.positive += chance * match * accesses;
      } else {
        next[{at + 1, current + 1, previous}] += chance * match;
      }
      if (match == 1) continue;
      if (at < static_cast<int>(k)) {
        negative += chance * (1 - match);
        all.accesses.negative += chance * (1 - match) * accesses;
      } else {
        next[{at - static_cast<int>(k), 0, current}] += chance * (1 - match);
      }
    }
    states.swap(next);
  }
  all.accesses.positive /= all.fpr;
  if (negative > 0) all.accesses.negative /= negative;
  return all;
}

TEST(ApbfOracle, AccessesAtAnyParameters) {
  SplitMix64 random(5);
  for (int round = 0; round < testing_support::count_of(8, 30, 30); ++round) {
    const auto k = static_cast<unsigned>(1 + random.next() % 16);
    const auto l = static_cast<unsigned>(1 + random.next() % 40);
    SCOPED_TRACE(testing::Message() << k << ',' << l);
    for (const Fills fills : {Fills::linear, Fills::exact}) {
      const std::vector<double> matches = segment_matches(k, l, fills);
      const QueryAccesses accesses = query_accesses(matches, k);
      const Counted absent = followed(matches, k);
      EXPECT_NEAR(run_of_matches(matches, k) / absent.fpr, 1, 1e-9);
      EXPECT_NEAR(accesses.positive / absent.accesses.positive, 1, 1e-9);
      EXPECT_NEAR(accesses.negative / absent.accesses.negative, 1, 1e-9);
      double window = 0;
      for (unsigned age = 0; age < l; ++age)
        window += followed(matches, k, static_cast<int>(age)).accesses.positive / l;
      EXPECT_NEAR(accesses.window / window, 1, 1e-9);
    }
  }
}

// E[(1 − c^X)^b] = Σ_j (−1)^j C(b,j) e^{−λ(1 − c^j)} for X Poisson.
long double poisson_match(unsigned block, unsigned bits, long double mean) {
  const long double kept = 1 - static_cast<long double>(bits) / block;
  long double sum = 0, ways = 1;
  for (unsigned j = 0; j <= bits; ++j) {
    sum += (j % 2 == 0 ? 1 : -1) * ways *
           std::exp(-mean * (1 - std::pow(kept, static_cast<long double>(j))));
    ways = ways * (bits - j) / (j + 1);
  }
  return sum;
}

TEST(ApbfOracle, BlocksAtAnyParameters) {
  SplitMix64 random(4);
  for (int round = 0; round < 200; ++round) {
    const auto k = static_cast<unsigned>(1 + random.next() % 6);
    const auto l = static_cast<unsigned>(1 + random.next() % 20);
    const auto bits = static_cast<unsigned>(1 + random.next() % 6);
    const auto block = static_cast<unsigned>(bits * (4 + random.next() % 200));
    SCOPED_TRACE(testing::Message() << k << ',' << l << ',' << block << ',' << bits);
    const long double lane = static_cast<long double>(block) / bits;
    const long double capacity = std::log(2.0L) / -std::log1p(-1 / lane);
    std::vector<long double> matches;
    for (unsigned i = 0; i < k + l; ++i)
      matches.push_back(poisson_match(block, bits, capacity * (i < k ? i + 1 : k) / k));
    const BlockShape shape{block, bits};
    EXPECT_NEAR(apbbf_fpr(k, l, shape) / first_runs(matches, k), 1, 1e-6);
    EXPECT_NEAR(
        apbbf_bits(k, l, shape) / ((k + l) * k * block / (l * static_cast<double>(capacity))), 1,
        1e-9);
    const double full = static_cast<double>(matches.back());
    double reported = 0;  // a key that left i generations ago matches where it no longer is
    for (unsigned i = 0; i < k; ++i) reported += std::pow(full, i) / l;
    EXPECT_NEAR(apbf_npws(k, l, full) / reported, 1, 1e-9);
  }
}

// Just after a shift, and the mean from shift to shift.
TEST(ApbfOracle, Phases) {
  struct Row {
    unsigned k, l;
    double worst, best, mean, window, positive, negative;
  };
  for (const Row& row :
       {Row{4, 3, 0.107402, 0.0702397, 0.0879385, 4.708, 4.418, 2.158},
        Row{10, 25, 0.0103163, 0.00983046, 0.0100618, 12.455, 11.849, 5.922},
        Row{10, 7, 0.00147355, 0.000998521, 0.00122343, 10.858, 10.476, 1.919},
        Row{21, 54, 9.84097e-06, 9.60255e-06, 9.71765e-06, 23.611, 22.870, 5.709}}) {
    SCOPED_TRACE(testing::Message() << row.k << ',' << row.l);
    const std::vector<double> before = segment_matches(row.k, row.l, Fills::exact);
    const std::vector<double> after = segment_matches(row.k, row.l, Fills::exact, 1, 0);
    EXPECT_NEAR(run_of_matches(before, row.k) / row.worst, 1, 1e-5);
    EXPECT_NEAR(run_of_matches(after, row.k) / row.best, 1, 1e-5);
    EXPECT_NEAR(apbf_mean_fpr(row.k, row.l) / row.mean, 1, 3e-4);
    const QueryAccesses accesses = query_accesses(before, row.k);
    EXPECT_NEAR(accesses.window, row.window, 0.00051);
    EXPECT_NEAR(accesses.positive, row.positive, 0.00051);
    EXPECT_NEAR(accesses.negative, row.negative, 0.00051);
  }
}

TEST(ApbfOracle, GenerationsAreInverse) {
  SplitMix64 random(6);
  for (int round = 0; round < 100; ++round) {
    const auto k = static_cast<unsigned>(3 + random.next() % 20);
    const double fpr =
        std::min(0.9, std::exp2(-static_cast<double>(k)) * (2 + 60 * random.next_unit()));
    for (const Fills fills : {Fills::linear, Fills::exact}) {
      const unsigned l = apbf_generations(k, fpr, fills);
      EXPECT_TRUE(l == 0 || apbf_fpr(k, l, fills) <= fpr);
      EXPECT_GT(apbf_fpr(k, l + 1, fills), fpr);
    }
  }
  EXPECT_EQ(apbf_generations(30, 0.99), kMostGenerations);
}

// Table 1 as printed; its decimals are cut off.
TEST(ApbfOracle, Table1) {
  for (const testing_support::Row1& row : testing_support::kTable1) {
    EXPECT_EQ(half_full_parts(row.aimed), row.k);
    EXPECT_NEAR(row.k / std::log(2.0) - 0.005, row.bits, 0.005);
    EXPECT_NEAR(std::exp2(-static_cast<double>(row.k)), row.fpr, 1e-10);
    EXPECT_NEAR(half_full_negative_accesses(row.k), row.negative, 0.006);
    // A plain filter is one without generations to look through.
    const std::vector<double> halves(row.k, 0.5);
    const QueryAccesses accesses = query_accesses(halves, row.k);
    EXPECT_NEAR(accesses.negative, half_full_negative_accesses(row.k), 1e-9);
    EXPECT_NEAR(accesses.positive, row.k, 1e-9);
  }
}

}  // namespace
}  // namespace sluice::model
