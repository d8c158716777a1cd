// One filter over many sites: the numbers of Koloniari et al. (2011), and Propositions 1 and 2.
#include "sluice/model/sliced.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/timer.hpp"
#include "tests/support/counts.hpp"

namespace sluice::model {
namespace {

SlicedFilter filter_of(Slicing slicing, double m, unsigned k, double n, unsigned slices,
                       unsigned inner = 1) {
  return {.slicing = slicing, .bits = m, .probes = k, .keys = n, .slices = slices, .inner = inner};
}

// Σ_j (−1)^j C(k,j) (1 − s + s·q^j)^n, in long doubles: another way to the binomial mean, good for
// few probes. q^j: chance that j given bits stay clear while one key is written, each for itself.
double alternating(double slice_bits, unsigned k, double n, double share) {
  long double sum = 0, ways = 1;
  for (unsigned j = 0; j <= k; ++j) {
    const long double q =
        std::exp(static_cast<long double>(k) * j * std::log1p(-1.0L / slice_bits));
    sum += (j % 2 == 0 ? 1 : -1) * ways * std::exp(n * std::log1p(share * (q - 1)));
    ways = ways * (k - j) / (j + 1);
  }
  return static_cast<double>(sum);
}

double between(SplitMix64& random, double low, double high) {
  return low + (high - low) * random.next_unit();
}
unsigned whole(SplitMix64& random, unsigned low, unsigned high) {
  return low + static_cast<unsigned>(random.next_unit() * (high - low + 1));
}

TEST(SlicedModel, UnevenSlices) {
  const SlicedFilter filter = filter_of(Slicing::horizontal, 48400, 4, 5700, 400);
  EXPECT_NEAR(sliced_fpr_even(filter), 0.0202, 5e-5);
  EXPECT_NEAR(sliced_fpr(filter), 0.0242, 5e-5);
  // §3 with 40 slices: eq. 4 is hardly above eq. 3, the true load some thirty times farther.
  const SlicedFilter forty = filter_of(Slicing::horizontal, 48400, 4, 5700, 40);
  EXPECT_NEAR(sliced_fpr_even(filter_of(Slicing::vertical, 48400, 4, 5700, 40)), 0.01992, 5e-6);
  EXPECT_NEAR(sliced_fpr_even(forty), 0.01994, 5e-6);
  EXPECT_NEAR(sliced_fpr(forty), 0.02034, 5e-6);
  const TimerTable timers{.timers = 48400, .probes = 4, .slices = 40};
  EXPECT_NEAR(sliced_fpr(forty) / timer_fpr(timers, 5700), 1, 1e-6);
}

// The mean over a binomial load against its alternating sum.
TEST(SlicedModel, BinomialLoadByInclusionAndExclusion) {
  SplitMix64 random(11);
  for (int round = 0; round < testing_support::count_of(60, 300); ++round) {
    const unsigned slices = whole(random, 1, 500), k = whole(random, 1, 6);
    const double n = std::floor(between(random, 10, 20000));
    const double m = std::floor(n * between(random, 4, 12)) + 8 * slices;
    const double expected = alternating(m / slices, k, n, 1.0 / slices);
    if (expected < 1e-7) continue;  // less than the alternating sum can tell
    EXPECT_NEAR(sliced_fpr(filter_of(Slicing::horizontal, m, k, n, slices)) / expected, 1, 1e-6)
        << m << ' ' << k << ' ' << n << ' ' << slices;
  }
}

// Proposition 1: as filters grow, with as many bits per key and as many slices, all of them come to
// the error of the filter in one piece. The distance falls with the bits.
TEST(SlicedModel, Proposition1) {
  SplitMix64 random(1);
  for (int round = 0; round < testing_support::count_of(60, 300); ++round) {
    const unsigned slices = whole(random, 2, 64), k = whole(random, 1, 8);
    const double bits_per_key = between(random, 4, 16), n = between(random, 1e4, 1e5);
    const auto distance = [&](Slicing slicing, double scale) {
      const SlicedFilter filter =
          filter_of(slicing, bits_per_key * n * scale, k, std::round(n * scale), slices, 2);
      const double whole_fpr = bloom_fpr(filter.bits, k, filter.keys);
      EXPECT_GE(sliced_fpr_even(filter), whole_fpr * (1 - 1e-9));
      EXPECT_GE(sliced_fpr(filter), whole_fpr * (1 - 1e-9));
      return std::max(std::abs(sliced_fpr_even(filter) / whole_fpr - 1),
                      std::abs(sliced_fpr(filter) / whole_fpr - 1));
    };
    for (const Slicing slicing : {Slicing::horizontal, Slicing::vertical,
                                  Slicing::horizontal_vertical, Slicing::vertical_horizontal}) {
      const double near = distance(slicing, 1), far = distance(slicing, 16);
      EXPECT_LE(far, near / 12 + 1e-9) << slices << ' ' << k << ' ' << bits_per_key << ' ' << n;
    }
  }
}

// Proposition 2: no k₁ · k₂ = k improves on the filter in one piece. With an even load all are
// equal; with the true one, fewer slices a key are worse. As in Proposition 1 up to O(S/m): two
// bits of a key in one small slice may be the same, which leaves it a little emptier.
TEST(SlicedModel, Proposition2) {
  SplitMix64 random(2);
  for (int round = 0; round < testing_support::count_of(50, 200); ++round) {
    const unsigned k = 12, slices = whole(random, k, 200);
    const double n = std::floor(between(random, 20000, 200000));
    const double m = std::floor(n * between(random, 8, 24));
    const double whole_fpr = bloom_fpr(m, k, n);
    const double little = k * slices / m;
    double even = 0, before = 1;
    for (const unsigned k1 : {1u, 2u, 3u, 4u, 6u, 12u}) {
      const GeneralSlicing slicing{
          .bits = m, .keys = n, .slices = slices, .slices_per_key = k1, .bits_per_slice = k / k1};
      if (even == 0) even = general_fpr_even(slicing);
      EXPECT_NEAR(general_fpr_even(slicing) / even, 1, 1e-9);
      EXPECT_GE(general_fpr_even(slicing), whole_fpr);
      const double fpr = general_fpr(slicing);
      EXPECT_GE(fpr, whole_fpr * (1 - little));
      EXPECT_LE(fpr, before * (1 + little));
      before = fpr;
    }
    // One slice a key is horizontal.
    const GeneralSlicing one{
        .bits = m, .keys = n, .slices = slices, .slices_per_key = 1, .bits_per_slice = k};
    EXPECT_NEAR(general_fpr(one) / sliced_fpr(filter_of(Slicing::horizontal, m, k, n, slices)), 1,
                1e-9);
  }
}

// k = 8, 8 of 40 sites failed: the knee of false negatives is at x = 3 and 4.
TEST(SlicedModel, HybridRule) {
  const SlicedFilter filter = filter_of(Slicing::vertical, 66300, 8, 5700, 40);
  EXPECT_NEAR(sliced_errors(filter, 8, FaultRule::hybrid(3)).fnr, 0.0012, 5e-5);
  EXPECT_NEAR(sliced_errors(filter, 8, FaultRule::hybrid(4)).fnr, 0.0104, 5e-5);
  const double p = sliced_fpr(filter), rho = sliced_density(filter), gone = 0.2;
  EXPECT_NEAR(rho, std::pow(p, 1.0 / 8), 1e-12);
  // The rules `duplicate` and `distinct` are its ends.
  const SlicedErrors duplicate = sliced_errors(filter, 8, FaultRule::duplicate());
  EXPECT_NEAR(duplicate.fpr, std::pow(gone + (1 - gone) * rho, 8), 1e-12);
  EXPECT_EQ(duplicate.fnr, 0);
  const SlicedErrors distinct = sliced_errors(filter, 8, FaultRule::distinct(8));
  EXPECT_NEAR(distinct.fpr, std::pow((1 - gone) * rho, 8), 1e-12);
  EXPECT_NEAR(distinct.fnr, 1 - std::pow(1 - gone, 8), 1e-12);
  // Between them, stricter rules lose less and pass more.
  for (unsigned x = 1; x <= 8; ++x) {
    const SlicedErrors less = sliced_errors(filter, 8, FaultRule::hybrid(x - 1));
    const SlicedErrors more = sliced_errors(filter, 8, FaultRule::hybrid(x));
    EXPECT_LT(more.fpr, less.fpr);
    EXPECT_GT(more.fnr, less.fnr);
  }
}

TEST(SlicedModel, HorizontalFailures) {
  const SlicedFilter filter = filter_of(Slicing::horizontal, 48400, 4, 5700, 40);
  const double p = sliced_fpr(filter);
  const SlicedErrors duplicate = sliced_errors(filter, 4, FaultRule::duplicate());
  EXPECT_DOUBLE_EQ(duplicate.fpr, 0.1 + 0.9 * p);
  EXPECT_EQ(duplicate.fnr, 0);
  for (const FaultRule rule : {FaultRule::distinct(4), FaultRule::hybrid(1)}) {
    EXPECT_DOUBLE_EQ(sliced_errors(filter, 4, rule).fpr, 0.9 * p);
    EXPECT_DOUBLE_EQ(sliced_errors(filter, 4, rule).fnr, 0.1);
  }
}

// Every outcome of a key's probes over live and dead sites, one by one.
TEST(SlicedModel, FailuresByEnumeration) {
  constexpr unsigned kProbes = 3, kSites = 5;
  const SlicedFilter filter = filter_of(Slicing::vertical, 1000, kProbes, 100, kSites);
  const double rho = sliced_density(filter);
  for (unsigned failed = 0; failed <= kSites; ++failed) {
    for (unsigned x = 0; x <= kProbes; ++x) {
      double fpr = 0, fnr = 0;
      for (unsigned choice = 0; choice < 125; ++choice) {
        unsigned live = 0;
        for (unsigned probe = 0, rest = choice; probe < kProbes; ++probe, rest /= kSites)
          live += rest % kSites >= failed;
        if (live >= x)
          fpr += std::pow(rho, live) / 125;
        else
          fnr += 1.0 / 125;
      }
      const SlicedErrors errors = sliced_errors(filter, failed, FaultRule::hybrid(x));
      EXPECT_NEAR(errors.fpr, fpr, 1e-12);
      EXPECT_NEAR(errors.fnr, fnr, 1e-12);
    }
  }
}

// Diced: failed sites and probes drawn; fixed seed, four standard errors.
TEST(SlicedModel, DicedFailuresWhereChancePutsThem) {
  constexpr unsigned kProbes = 4, kFailed = 5;
  const SlicedFilter filter = filter_of(Slicing::horizontal_vertical, 48400, kProbes, 5700, 6, 4);
  EXPECT_EQ(filter.sites(), 24u);
  const double rho = sliced_density(filter);
  SplitMix64 random(7);
  for (const unsigned x : {0u, 2u, 4u}) {
    double sum = 0, squares = 0, lost = 0;
    constexpr int kRounds = 40000;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<bool> gone(24);
      for (unsigned left = kFailed; left > 0;) {
        const unsigned site = whole(random, 0, 23);
        if (!gone[site]) gone[site] = true, --left;
      }
      const unsigned row = whole(random, 0, 5);
      unsigned live = 0;
      for (unsigned probe = 0; probe < kProbes; ++probe)
        live += !gone[row * 4 + whole(random, 0, 3)];
      const double passes = live >= x ? std::pow(rho, live) : 0;
      sum += passes, squares += passes * passes, lost += live < x;
    }
    const double mean = sum / kRounds, fnr = lost / kRounds;
    const SlicedErrors errors = diced_errors(filter, kFailed, FaultRule::hybrid(x));
    EXPECT_NEAR(errors.fpr, mean, 4 * std::sqrt((squares / kRounds - mean * mean) / kRounds));
    EXPECT_NEAR(errors.fnr, fnr, 4 * std::sqrt(fnr * (1 - fnr) / kRounds) + 1e-12);
  }
  // Eq. 7 takes every key's sites alike.
  EXPECT_GT(diced_errors(filter, kFailed, FaultRule::duplicate()).fpr,
            sliced_errors(filter, kFailed, FaultRule::duplicate()).fpr);
}

// f = 4, P = .15: less than 20 sites vertical, more than 30 horizontal.
TEST(SlicedModel, FaultToleranceParameter) {
  EXPECT_NEAR(fault_tolerance(filter_of(Slicing::horizontal, 48336, 4, 5700, 1), 4, 0.15), 30.2,
              0.1);
  EXPECT_NEAR(fault_tolerance(filter_of(Slicing::vertical, 48336, 4, 5700, 1), 4, 0.15), 10.1, 0.1);
  EXPECT_NEAR(fault_tolerance(filter_of(Slicing::horizontal, 35608, 4, 5700, 1), 4, 0.15), 38.0,
              0.1);
  EXPECT_NEAR(fault_tolerance(filter_of(Slicing::vertical, 35608, 4, 5700, 1), 4, 0.15), 14.1, 0.1);
  EXPECT_TRUE(
      std::isinf(fault_tolerance(filter_of(Slicing::vertical, 48336, 4, 5700, 1), 4, 0.01)));
}

// So many sites, and the error is the one asked for.
TEST(SlicedModel, FaultToleranceIsInverse) {
  SplitMix64 random(5);
  for (int round = 0; round < 200; ++round) {
    const unsigned k = whole(random, 2, 10), failed = whole(random, 1, 40);
    const double limit = between(random, 0.05, 0.3);
    SlicedFilter filter = filter_of(Slicing::vertical, 1e6, k, 5e4, 1);
    const double whole_fpr = bloom_fpr(1e6, k, 5e4), rho = std::pow(whole_fpr, 1.0 / k);
    const double gone = failed / fault_tolerance(filter, failed, limit);
    EXPECT_NEAR(std::pow(gone + (1 - gone) * rho, k), limit, 1e-9);
    const unsigned x = whole(random, 1, k);
    const double sites = fault_tolerance_fnr(filter, failed, limit, FaultRule::hybrid(x));
    filter.slices = static_cast<unsigned>(std::ceil(sites));
    EXPECT_LE(sliced_errors(filter, failed, FaultRule::hybrid(x)).fnr, limit * (1 + 1e-9));
    if (filter.slices > failed + 1) {
      filter.slices = static_cast<unsigned>(std::ceil(sites)) - 1;
      EXPECT_GE(sliced_errors(filter, failed, FaultRule::hybrid(x)).fnr, limit * (1 - 1e-9));
    }
  }
  EXPECT_NEAR(fault_tolerance_fnr(filter_of(Slicing::horizontal, 1e6, 4, 5e4, 1), 4, 0.1,
                                  FaultRule::distinct(4)),
              40, 1e-12);
}

// S = 40, k = 4: 3.85 messages, and 1.78, 2.56, 3.34 pipelined at 80, 50 and 20 % distinct.
// From the error while all sites answer, under any rule, and for fewer failures as well.
TEST(SlicedModel, FaultToleranceOfAnError) {
  for (const Slicing slicing : {Slicing::horizontal, Slicing::vertical})
    for (const unsigned k : {4u, 8u, 20u})
      for (const double alive : {1e-6, 1e-3}) {
        const SlicedFilter cut = filter_of(slicing, 0, k, 0, 1);
        // As from bits and keys.
        const double n = 5700, m = bloom_bits(k, n, alive);
        const SlicedFilter whole = filter_of(slicing, m, k, n, 1);
        EXPECT_NEAR(fault_tolerance_at(cut, alive, 3, 0.02, FaultRule::duplicate()) /
                        fault_tolerance(whole, 3, 0.02),
                    1, 1e-6);
        EXPECT_TRUE(std::isinf(fault_tolerance_at(cut, alive, 3, alive, FaultRule::duplicate())));
        for (const unsigned x : {0u, 1u, 3u, k}) {
          const FaultRule rule = FaultRule::hybrid(x);
          const double sites = fault_tolerance_at(cut, alive, 3, 0.02, rule);
          SlicedFilter cut_so = cut;
          cut_so.slices = static_cast<unsigned>(std::ceil(sites * (1 - 1e-12)));
          for (unsigned failed = 0; failed <= 3; ++failed)
            EXPECT_LE(errors_at(cut_so, alive, failed, rule).fpr, 0.02 * (1 + 1e-9))
                << k << " " << alive << " " << x << " " << failed;
          // One site fewer does not.
          if (sites > 3.5 && --cut_so.slices >= 3) {
            EXPECT_GT(errors_at(cut_so, alive, 3, rule).fpr, 0.02) << k << " " << x;
          }
        }
      }
}

// With the bits and keys that have the error, as of a filter.
TEST(SlicedModel, ErrorsOfAnError) {
  for (const Slicing slicing : {Slicing::horizontal, Slicing::vertical,
                                Slicing::horizontal_vertical, Slicing::vertical_horizontal}) {
    const unsigned inner = slicing >= Slicing::horizontal_vertical ? 4 : 1;
    const SlicedFilter filter = filter_of(slicing, 48400, 4, 5700, 40 / inner, inner);
    for (const unsigned x : {0u, 2u, 4u}) {
      if (slicing == Slicing::horizontal && x == 2) continue;
      const SlicedErrors direct = diced_errors(filter, 8, FaultRule::hybrid(x));
      const SlicedErrors by_error = errors_at(filter_of(slicing, 0, 4, 0, 40 / inner, inner),
                                              sliced_fpr(filter), 8, FaultRule::hybrid(x));
      EXPECT_DOUBLE_EQ(direct.fpr, by_error.fpr);
      EXPECT_DOUBLE_EQ(direct.fnr, by_error.fnr);
    }
  }
}

TEST(SlicedModel, Messages) {
  const SlicedFilter filter = filter_of(Slicing::vertical, 48400, 4, 5700, 40);
  const double all = sites_of_key(filter), distinct = pipelined_sites_filling(filter);
  EXPECT_NEAR(all, 3.85, 0.005);
  EXPECT_NEAR(0.8 * distinct + 0.2 * all, 1.78, 0.01);
  EXPECT_NEAR(0.5 * distinct + 0.5 * all, 2.56, 0.01);
  EXPECT_NEAR(0.2 * distinct + 0.8 * all, 3.34, 0.01);
  EXPECT_EQ(sites_of_key(filter_of(Slicing::horizontal, 48400, 4, 5700, 40)), 1);
  // Empty, one site decides; full, all are asked.
  EXPECT_DOUBLE_EQ(pipelined_sites(filter, 0), 1);
  EXPECT_NEAR(pipelined_sites(filter, 1), all, 1e-12);
}

// Three probes on two sites, one by one: 8 choices of sites, 8 of bits.
TEST(SlicedModel, PipelineByEnumeration) {
  const SlicedFilter filter = filter_of(Slicing::vertical, 1000, 3, 100, 2);
  const double density = 0.3;
  double mean = 0;
  for (unsigned sites = 0; sites < 8; ++sites) {
    for (unsigned bits = 0; bits < 8; ++bits) {
      double chance = 1.0 / 8;
      bool first_passes = true, second = false;
      for (unsigned probe = 0; probe < 3; ++probe) {
        const bool set = bits >> probe & 1, elsewhere = (sites >> probe & 1) != (sites & 1);
        chance *= set ? density : 1 - density;
        second |= elsewhere;
        first_passes &= elsewhere || set;
      }
      mean += chance * (second && first_passes ? 2 : 1);
    }
  }
  EXPECT_NEAR(pipelined_sites(filter, density), mean, 1e-12);
}

// S = 40, Zipf(1): .84 vertical with k = 4, .57 horizontal.
TEST(SlicedModel, Fairness) {
  const double concentration = zipf_concentration(5700, 1);
  EXPECT_NEAR(expected_fairness(40, 4, concentration), 0.84, 0.005);
  EXPECT_NEAR(expected_fairness(40, 1, concentration), 0.57, 0.005);
  EXPECT_DOUBLE_EQ(fairness(std::vector<double>{2, 2, 2}), 1);
  EXPECT_DOUBLE_EQ(fairness(std::vector<double>{1, 0, 0, 0}), 0.25);
}

// S = 40, Zipf(1): one run has .063 vertical with k = 4, .132 horizontal.
TEST(SlicedModel, HighestLoad) {
  const HighestLoad vertical = zipf_highest_load(40, 4, 5700, 1);
  EXPECT_NEAR(vertical.mean, 0.0598, 0.001);
  EXPECT_NEAR(vertical.mean, 0.063, 1.5 * vertical.deviation);
  const HighestLoad horizontal = zipf_highest_load(40, 1, 5700, 1);
  EXPECT_NEAR(horizontal.mean, 0.132, 0.003);
  // One key is one slice's; one slice has it all; and keys alike are balls in bins: of a million
  // in 16 the fullest has 1.77 standard deviations of its 62500 more.
  EXPECT_NEAR(zipf_highest_load(40, 1, 1, 1).mean, 1, 1e-9);
  EXPECT_NEAR(zipf_highest_load(1, 4, 100, 1).mean, 1, 1e-12);
  EXPECT_NEAR((zipf_highest_load(16, 1, 1e6, 0).mean * 16 - 1) * std::sqrt(62500.0), 1.77, 0.1);
}

TEST(SlicedModel, BitsOnTheWire) {
  EXPECT_DOUBLE_EQ(wire_bits(filter_of(Slicing::horizontal, 65536, 4, 1, 16)), 4 * 12);
  EXPECT_DOUBLE_EQ(wire_bits(filter_of(Slicing::vertical, 65536, 4, 1, 1)), 4 * 16);
  EXPECT_DOUBLE_EQ(wire_bits(filter_of(Slicing::horizontal_vertical, 65536, 4, 1, 16, 4)), 4 * 10);
}

// The filters of §7, from the error and the keys.
TEST(SlicedModel, GrowthThresholdsAndSizes) {
  EXPECT_NEAR(bloom_bits(4, 5700, 0.02), 48336, 1);
  EXPECT_NEAR(bloom_bits(4, 5700, 0.05), 35608, 1);
  EXPECT_NEAR(bloom_bits(4, 5700, 0.08), 30043, 1);
  EXPECT_NEAR(bloom_bits(4, 2049, 0.02), 17375, 1);
  EXPECT_NEAR(bloom_bits(4, 16850, 0.02), 142890, 10);
  for (const double fpr : {0.2, 0.01, 1e-5}) {
    const double set = growth_density(1e5, 7, fpr);
    EXPECT_NEAR(growth_density_fpr(1e5, 7, set) / fpr, 1, 1e-12);
    // Both thresholds are passed together, on average.
    const double keys = bloom_keys(1e5, 7, fpr);
    EXPECT_NEAR(1e5 * -std::expm1(7 * keys * std::log1p(-1e-5)) / set, 1, 1e-9);
    EXPECT_NEAR(growth_fpr(growth_share(fpr, 5), 5) / fpr, 1, 1e-12);
  }
  EXPECT_NEAR(growth_fpr(0.05, 3), 0.142625, 1e-12);
}

}  // namespace
}  // namespace sluice::model
