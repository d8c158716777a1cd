// Errors and slack of age-partitioned filters as measured, pinned to model/apbf.hpp.
//
// Each case brings kTables filters of one size to their worst: k + l full generations, just before
// a shift. Every key is written (`refreshed`), as the model has it. The standard error is taken
// between the tables, so it holds both kinds of luck: which bits were set, and which keys were
// asked for. All seeds are fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/apbf/apbbf.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/model/apbf.hpp"
#include "tests/support/mean.hpp"

namespace sluice {
namespace {

using testing_support::mean_of;
using testing_support::Measured;

using model::BlockShape;
using model::Fills;

constexpr double kTolerance = 4;  // standard errors
constexpr int kTables = 12;
constexpr std::size_t kBatch = 1024;

// A filter with a stream of fresh keys of its own.
class Stream {
 public:
  Stream(const std::string& filter, std::uint64_t seed)
      : filter_(make_filter(filter, Wish{})),
        random_(seed),
        a_generation_((filter_.stats().capacity + filter_.generations() - 1) /
                      filter_.generations()) {}

  const AnyFilter& filter() const { return filter_; }
  AnyFilter& filter() { return filter_; }
  std::uint64_t a_generation() const { return a_generation_; }

  std::vector<Digest> fresh(std::size_t count) {
    std::vector<Digest> digests(count);
    for (Digest& digest : digests) digest = {random_.next(), random_.next()};
    return digests;
  }

  // Fills the present generation, and returns what it was filled with.
  std::vector<Digest> fill() {
    const std::vector<Digest> keys = fresh(a_generation_);
    std::vector<Verdict> verdicts(keys.size());
    std::uint64_t budget = keys.size();
    EXPECT_EQ(filter_.admit(keys, verdicts, budget, Anchor::refreshed), keys.size());
    EXPECT_EQ(budget, 0u);
    return keys;
  }

  // `count` full generations; the last is not rotated away.
  void run(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      if (i > 0) filter_.rotate();
      fill();
    }
  }

  double reported(const std::vector<Digest>& keys) const {
    std::vector<Verdict> verdicts(keys.size());
    filter_.may_contain(keys, verdicts);
    return static_cast<double>(std::ranges::count(verdicts, Verdict::duplicate)) /
           static_cast<double>(keys.size());
  }

  double false_positive_share(std::uint64_t probes) {
    double sum = 0;
    std::uint64_t batches = 0;
    for (; batches * kBatch < probes; ++batches) sum += reported(fresh(kBatch));
    return sum / static_cast<double>(batches);
  }

 private:
  AnyFilter filter_;
  SplitMix64 random_;
  std::uint64_t a_generation_;
};

struct Case {
  unsigned k, l;
  unsigned parts = 1;  // of apbf
  BlockShape shape{};  // of apbbf
  const char* layout = "";
};

// A table of 64 Ki bits per part, or as many blocks, and as many keys as that holds.
std::string settings_of(const Case& it) {
  const std::string cut = ",k=" + std::to_string(it.k) + ",l=" + std::to_string(it.l) +
                          ",bytes=" + std::to_string((it.k + it.l) * it.parts * 8192);
  if (*it.layout == '\0') return "apbf" + cut + ",parts=" + std::to_string(it.parts);
  const std::string blocked = "apbbf,layout=" + std::string(it.layout) + cut;
  if (std::string(it.layout) == "line") return blocked;
  return blocked + ",block=" + std::to_string(it.shape.block) +
         ",bits=" + std::to_string(it.shape.bits);
}

void PrintTo(const Case& it, std::ostream* out) {
  *out << settings_of(it);
}

double expected_fpr(const Case& it) {
  if (*it.layout == '\0') return model::apbf_fpr(it.k, it.l, Fills::exact, it.parts);
  if (std::string(it.layout) == "segment") return model::apbbf_fpr(it.k, it.l, it.shape);
  const unsigned segments = it.k + it.l;
  const bool line = std::string(it.layout) == "line";
  return model::column_fpr(it.k, it.l, line ? BlockShape{512 / segments, 32 / segments} : it.shape);
}

class ApbfError : public testing::TestWithParam<Case> {};

TEST_P(ApbfError, JustBeforeAShiftIsWhatTheModelSays) {
  const Case& it = GetParam();
  const double expected = expected_fpr(it);
  // Enough that about 4,000 false positives are found in all.
  const auto probes = static_cast<std::uint64_t>(std::max(2e5, 4000 / expected) / kTables);
  std::vector<double> shares, predictions;
  for (int table = 0; table < kTables; ++table) {
    Stream stream(settings_of(it), static_cast<std::uint64_t>(1000 + table));
    stream.run(it.k + it.l);
    shares.push_back(stream.false_positive_share(probes));
    predictions.push_back(stream.filter().stats().predicted_fpr);
  }
  const Measured share = mean_of(shares);
  // A column's model is itself drawn.
  const double slop = std::string(it.layout) == "column" ? 0.02 * expected : 0.005 * expected;
  EXPECT_NEAR(share.mean, expected, kTolerance * share.standard_error + slop);
  EXPECT_LT(share.standard_error, 0.05 * expected) << "too few samples to tell";
  // The filter's own prediction draws fewer columns, and counts only keys that set a bit.
  if (expected < 0.05) {
    EXPECT_NEAR(mean_of(predictions).mean, expected, 0.12 * expected);
  }
}

// Table 2 of the paper: the rows whose error can be measured, at exact fills; then other cuts.
INSTANTIATE_TEST_SUITE_P(Table2, ApbfError,
                         testing::Values(Case{4, 3}, Case{5, 7}, Case{6, 14}, Case{7, 28},
                                         Case{7, 5}, Case{8, 8}, Case{9, 14}, Case{10, 25},
                                         Case{10, 7}, Case{11, 9}, Case{12, 14}, Case{14, 11}));
INSTANTIATE_TEST_SUITE_P(OtherCuts, ApbfError,
                         testing::Values(Case{1, 4}, Case{2, 1}, Case{3, 3}, Case{5, 20},
                                         Case{9, 4}, Case{3, 5, 2}, Case{2, 5, 4}, Case{5, 8, 2}));
// Table 3.
INSTANTIATE_TEST_SUITE_P(
    Table3, ApbfError,
    testing::Values(Case{2, 3, 1, {64, 4}, "segment"}, Case{2, 3, 1, {512, 4}, "segment"},
                    Case{2, 5, 1, {64, 4}, "segment"}, Case{2, 5, 1, {512, 4}, "segment"},
                    Case{3, 5, 1, {64, 4}, "segment"}, Case{3, 5, 1, {512, 4}, "segment"},
                    Case{3, 8, 1, {64, 4}, "segment"}, Case{3, 8, 1, {512, 4}, "segment"},
                    Case{2, 3, 1, {64, 8}, "segment"}, Case{2, 5, 1, {64, 8}, "segment"},
                    Case{2, 5, 1, {512, 8}, "segment"}));
INSTANTIATE_TEST_SUITE_P(
    OtherBlocks, ApbfError,
    testing::Values(Case{1, 6, 1, {512, 8}, "segment"}, Case{4, 7, 1, {64, 4}, "segment"},
                    Case{2, 12, 1, {512, 4}, "segment"}, Case{2, 5, 1, {512, 4}, "column"},
                    Case{2, 5, 1, {512, 8}, "column"}, Case{3, 8, 1, {64, 4}, "column"},
                    Case{2, 3, 1, {64, 8}, "column"}, Case{5, 11, 1, {}, "line"},
                    Case{3, 13, 1, {}, "line"}, Case{8, 8, 1, {}, "line"},
                    Case{3, 5, 1, {}, "line"}, Case{2, 6, 1, {}, "line"},
                    Case{10, 22, 1, {}, "line"}));

class Slack : public testing::TestWithParam<const char*> {};

// Keys are all reported for l generations after their own, fade over the next k − 1, and then stand
// out no more.
TEST_P(Slack, KeysFadeAndAreForgotten) {
  Stream stream(GetParam(), 5);
  const unsigned l = stream.filter().generations();
  stream.run(30);
  stream.filter().rotate();
  const std::vector<Digest> keys = stream.fill();
  for (unsigned age = 0; age <= l; ++age) {
    EXPECT_EQ(stream.reported(keys), 1) << age;
    if (age < l) {
      stream.filter().rotate();
      stream.fill();
      EXPECT_EQ(stream.reported(keys), 1) << age;
    }
  }
  double before = 1, halves = 1;
  unsigned k = 0;
  const Settings settings = stream.filter().settings();
  for (const auto& [name, value] : settings.pairs())
    if (name == "k") k = static_cast<unsigned>(std::stoul(value));
  for (unsigned missing = 1; missing <= k; ++missing) {
    stream.filter().rotate();
    stream.fill();
    const double share = stream.reported(keys);
    const double spread = std::sqrt(share / static_cast<double>(keys.size()));
    EXPECT_LE(share, before) << missing;
    if (std::string(GetParam()).starts_with("apbf,") && missing < k) {
      // Each slice gone leaves the chance of the one that would have to stand in: a half, or less
      // where l < k and that one is still filling.
      halves *= model::segment_matches(k, l, Fills::exact)[l + missing - 1];
      const double background = stream.filter().stats().predicted_fpr;
      EXPECT_GE(share, halves - kTolerance * spread - 0.01 * halves) << missing;
      EXPECT_LE(share, halves + background + kTolerance * spread + 0.01 * halves) << missing;
    }
    before = share;
  }
  const double background = stream.false_positive_share(400'000);
  const double n = static_cast<double>(keys.size());
  EXPECT_NEAR(before, background, kTolerance * std::sqrt(background / n + background / 4e5));
}

INSTANTIATE_TEST_SUITE_P(Filters, Slack,
                         testing::Values("apbf,k=7,l=5,keys=100k", "apbf,k=4,l=9,keys=180k",
                                         "apbbf,k=2,l=5,bits=4,keys=100k",
                                         "apbbf,layout=column,k=2,l=5,bits=4,keys=100k",
                                         "apbbf,layout=line,k=5,l=11,keys=220k",
                                         "apbbf,layout=line,k=3,l=5,keys=100k"),
                         [](const auto& test) { return "case" + std::to_string(test.index); });

// Bits per key of a window of a million, everything counted: Table 4.
TEST(ApbbfSize, Table4) {
  // The paper counts the table. What we keep beside it, to empty segments step by step, is little.
  const auto bits = [](const char* name) {
    const AnyFilter filter = make_filter(name, Wish{});
    const auto table = static_cast<double>(filter.as<Apbbf>()->params().table_bytes());
    EXPECT_LT(static_cast<double>(filter.bytes()), 1.011 * table) << name;
    return table * 8 / 1e6;
  };
  EXPECT_NEAR(bits("apbbf,k=2,l=5,block=512,bits=4,keys=1M"), 16.2, 0.051);
  EXPECT_NEAR(bits("apbbf,k=3,l=8,block=512,bits=4,keys=1M"), 23.9, 0.051);
  EXPECT_NEAR(bits("apbbf,k=2,l=5,block=512,bits=8,keys=1M"), 32.6, 0.051);
  EXPECT_NEAR(bits("apbbf,k=3,l=8,block=512,bits=8,keys=1M"), 48.0, 0.051);
}

}  // namespace
}  // namespace sluice
