// Tables 2 to 5 of Dutta et al. 2012: the filters `stable` and `reservoir`.
//
// A stream draws uniformly from a universe so large that the stated share of its records is
// distinct; an exact set says what is. FNR is the share of duplicates let through, FPR the share of
// distinct records held back, both in percent as in the paper. Tables 2 and 3 are run as they are,
// 4 and 5 with records and bits divided by `scale`. Seeds are fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/reservoir.hpp"
#include "sluice/filters/stable.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

using Variant = Reservoir::Variant;

using testing_support::full_counts;

Digest digest_of(std::uint64_t key, std::uint64_t seed) {
  SplitMix64 random(key * 0xD1342543DE82EF95ULL + seed);
  const std::uint64_t lo = random.next();
  return {lo, random.next()};
}

// The universe from which n draws hold share·n distinct keys: U(1 − e^{−n/U}) = share·n.
double universe_of(double records, double share) {
  double low = 1, high = records * 1000;
  for (int step = 0; step < 200; ++step) {
    const double middle = (low + high) / 2;
    (middle * -std::expm1(-records / middle) < share * records ? low : high) = middle;
  }
  return high;
}

struct Errors {
  double fnr = 0, fpr = 0;  // percent
  double distinct = 0;      // records, all streams together
};

struct Stream {
  double records;
  double share;
  int repeats = 1;  // number of streams, each with its own filter
};

template <class F>
Errors errors_of(const typename F::Params& params, const Stream& stream) {
  const auto universe = static_cast<std::uint64_t>(universe_of(stream.records, stream.share));
  double missed = 0, lost = 0, duplicates = 0, distinct = 0;
  std::vector<Digest> digests(500);
  std::vector<Verdict> verdicts(digests.size());
  std::vector<bool> was(digests.size());
  for (int repeat = 0; repeat < stream.repeats; ++repeat) {
    typename F::Params mine = params;
    mine.seed = static_cast<std::uint64_t>(repeat + 1);
    F filter = F::make(mine);
    SplitMix64 random(static_cast<std::uint64_t>(1000 + repeat));
    std::vector<bool> seen(universe);
    for (double done = 0; done < stream.records; done += static_cast<double>(digests.size())) {
      for (std::size_t i = 0; i < digests.size(); ++i) {
        const std::uint64_t key = scale_to(random.next(), universe);
        was[i] = seen[key];
        seen[key] = true;
        digests[i] = digest_of(key, mine.seed);
      }
      filter.observe(digests, verdicts);
      for (std::size_t i = 0; i < digests.size(); ++i) {
        (was[i] ? duplicates : distinct) += 1;
        (was[i] ? missed : lost) += was[i] == (verdicts[i] == Verdict::distinct);
      }
    }
  }
  return {100 * missed / duplicates, 100 * lost / distinct, distinct};
}

Errors stable_errors(std::uint64_t bits, unsigned probes, unsigned decrements, const Stream& stream,
                     Stable::Draws draws = Stable::Draws::run) {
  return errors_of<Stable>(
      {.bits = bits, .probes = probes, .decrements = decrements, .draws = draws, .target_fpr = 0.1},
      stream);
}

Errors reservoir_errors(std::uint64_t bits, unsigned filters, Variant variant,
                        const Stream& stream) {
  return errors_of<Reservoir>(
      {.bits = bits, .filters = filters, .variant = variant, .target_fpr = 0.1}, stream);
}

// A row of a table as printed, in percent, but for the cells that `note` names.
struct Row {
  const char* name;
  double records;  // as in the paper
  double share;
  double bits;       // as in the paper
  unsigned filters;  // k
  double stable_fnr, reservoir_fnr, stable_fpr, reservoir_fpr;
  bool scaled = false;
  // The biased rule with k filters must cut the false negatives of the paper's by this.
  double gain = 1;
  const char* note = "";
};

// The paper's rule gives three filters. Tables 4 and 5 are only met with two, but for the first
// row.
constexpr Row kRows[] = {
    {"T2_16384", 1e5, .76, 16384, 3, 85.06, 84.49, 10.05, 11.22},
    {"T2_65536", 1e5, .76, 65536, 3, 74.37, 74.85, 8.093, 8.384},
    {"T2_4194304", 1e5, .76, 4194304, 3, 5.51, 6.29, .0382, .00263, false, 1.15,
     "stable FPR printed .00382"},
    {"T3_16384", 1e7, .49, 16384, 3, 88.83, 87.52, 11.08, 12.464},
    {"T3_262144", 1e7, .49, 262144, 3, 88.11, 86.89, 10.86, 12.12},
    {"T3_4194304", 1e7, .49, 4194304, 3, 77.33, 77.73, 7.822, 7.914},
    {"T4_262144", 6.95e8, .15, 262144, 3, 88.86, 87.47, 11.1, 12.51, true, 1,
     "the two FPRs printed the other way round"},
    {"T4_67108864", 6.95e8, .15, 67108864, 2, 82.48, 67.38, 8.3, 16.51, true, 1.2,
     "reservoir printed 58.2818 and 8.4, which no reading gives: ours as found before; T5 agrees"},
    {"T4_1073741824", 6.95e8, .15, 1073741824, 2, 37.79, 23.12, .742, .89, true, 5},
    {"T4_4294967296", 6.95e8, .15, 4294967296, 2, 12.94, 7.37, .069, .072, true, 6},
    {"T5_67108864", 1e9, .1, 67108864, 2, 82.58, 67.66, 8.262, 16.262, true, 1.2,
     "reservoir FPR printed 10.262"},
    {"T5_1073741824", 1e9, .1, 1073741824, 2, 38.17, 23.47, .7, .83, true, 7},
    {"T5_4294967296", 1e9, .1, 4294967296, 2, 13.163, 7.53, .0634, .0664, true, 8},
};

// What is held to the print: FNR to a point, FPR to 6 % of itself. Rates of some events in a stream
// are not known so well, neither by us nor by the paper: four standard errors of the counts.
void expect_as_printed(const Errors& ours, double fnr, double fpr, double printed_distinct) {
  EXPECT_NEAR(ours.fnr, fnr, 1);
  const double ours_error = std::sqrt(fpr / 100 / ours.distinct);
  const double theirs_error = std::sqrt(fpr / 100 / printed_distinct);
  EXPECT_NEAR(ours.fpr, fpr, std::max(.06 * fpr, 400 * std::hypot(ours_error, theirs_error)));
}

class DuttaTablesError : public testing::TestWithParam<Row> {
 protected:
  // For docs/filters: --gtest_output=json:FILE writes them down.
  static void record(const std::string& name, const Errors& errors) {
    RecordProperty(name + "_fnr", std::to_string(errors.fnr));
    RecordProperty(name + "_fpr", std::to_string(errors.fpr));
  }
};

// The large streams are for full counts; the short ones still run a cell of table 3, and tables 4
// and 5 at a tenthousandth.
TEST_P(DuttaTablesError, AreReproduced) {
  const Row& row = GetParam();
  const double scale = row.scaled ? (full_counts() ? 100 : 10'000) : 1;
  const bool many = !row.scaled && row.records > 1e6;
  if (!full_counts() && (row.bits / scale < 1000 || (many && row.bits != 4194304)))
    GTEST_SKIP() << "at full counts only";
  const auto bits = static_cast<std::uint64_t>(std::round(row.bits / scale / 64)) * 64;
  const Stream stream{row.records / scale, row.share, row.records / scale < 1e6 ? 4 : 1};
  const double distinct = row.records * row.share;
  const Errors paper = reservoir_errors(bits, row.filters, Variant::paper, stream);
  expect_as_printed(paper, row.reservoir_fnr, row.reservoir_fpr, distinct);
  if (many && !full_counts()) return;
  const Errors stable = stable_errors(bits, 2, 4, stream, Stable::Draws::independent);
  expect_as_printed(stable, row.stable_fnr, row.stable_fpr, distinct);

  const Errors run = stable_errors(bits, 2, 4, stream);
  EXPECT_NEAR(run.fnr, stable.fnr, .5) << "a run of cells errs like single draws";
  const double error = 400 * std::sqrt(2 * stable.fpr / 100 / stable.distinct);
  EXPECT_NEAR(run.fpr, stable.fpr, error);

  // What the paper's filter gains over stable is k resets instead of four.
  const Errors same = stable_errors(bits, row.filters, row.filters, stream);
  EXPECT_NEAR(same.fnr, paper.fnr, 1);
  const double apart = 400 * std::sqrt((same.fpr + paper.fpr) / 100 / paper.distinct);
  EXPECT_NEAR(same.fpr, paper.fpr, std::max(.06 * paper.fpr, apart));

  // The biased rule. Where the table is small both errors are those of a full one, and add up to
  // nearly 100 in all variants; where it is large, it cuts false negatives several-fold for a few
  // more false positives, or with one filter more both.
  const Errors biased = reservoir_errors(bits, row.filters, Variant::biased, stream);
  const Errors more = reservoir_errors(bits, row.filters + 1, Variant::biased, stream);
  EXPECT_LT(biased.fnr * row.gain, paper.fnr);
  record("stable", stable);
  record("stable_run", run);
  record("stable_equal", same);
  record("paper", paper);
  record("biased", biased);
  record("biased_more", more);
  if (row.gain >= 5) {
    EXPECT_LT(biased.fpr, 1.2 * paper.fpr + error);
    EXPECT_LT(more.fnr, .6 * paper.fnr);
    EXPECT_LT(more.fpr, .6 * paper.fpr);
  }
}

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name << ' ' << row.note;
}

INSTANTIATE_TEST_SUITE_P(Rows, DuttaTablesError, testing::ValuesIn(kRows),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace sluice
