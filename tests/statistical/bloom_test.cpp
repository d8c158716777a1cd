// The errors of Bloom filters as measured, pinned to those of model/bloom.hpp.
//
// Each case fills kTables independent filters of the same size with keys of their own, and asks
// each for keys that were never inserted. The standard error is taken between the tables, so it
// holds both kinds of luck: which bits were set, and which keys were asked for. All seeds are
// fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "sluice/base/quantity.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/model/bloom.hpp"
#include "tests/support/mean.hpp"

namespace sluice {
namespace {

using testing_support::mean_of;
using testing_support::Measured;

constexpr double kTolerance = 4;  // standard errors
constexpr int kTables = 16;
constexpr std::size_t kBatch = 1024;

// Where digests come from: words of a generator, or keys that are really hashed.
enum class Source { splitmix, xxh3, highway };

// An endless sequence of digests, no two from the same key.
class Digests {
 public:
  // Keys are consecutive numbers as text: the least random ones a person would use.
  Digests(Source source, std::uint64_t seed)
      : source_(source),
        random_(seed),
        hasher_(source == Source::highway ? HashKind::highway : HashKind::xxh3,
                Secret::from_seed(seed)) {}

  Digest next() {
    if (source_ == Source::splitmix) {
      const std::uint64_t lo = random_.next();
      return {lo, random_.next()};
    }
    char text[24];
    const char* const end = std::to_chars(text, text + sizeof text, number_++).ptr;
    return hasher_.digest({text, static_cast<std::size_t>(end - text)});
  }

  std::span<const Digest> batch(std::size_t count) {
    batch_.resize(count);
    for (Digest& digest : batch_) digest = next();
    return batch_;
  }

 private:
  Source source_;
  SplitMix64 random_;
  Hasher hasher_;
  std::uint64_t number_ = 0;
  std::vector<Digest> batch_;
};

void insert(AnyFilter& filter, Digests& from, std::uint64_t keys) {
  for (std::uint64_t done = 0; done < keys; done += kBatch)
    filter.insert(from.batch(std::min<std::uint64_t>(kBatch, keys - done)));
}

double false_positive_share(const AnyFilter& filter, Digests& from, std::uint64_t probes) {
  std::vector<Verdict> verdicts(kBatch);
  std::uint64_t found = 0;
  std::uint64_t asked = 0;
  for (; asked < probes; asked += kBatch) {
    filter.may_contain(from.batch(kBatch), verdicts);
    for (const Verdict verdict : verdicts) found += verdict == Verdict::duplicate;
  }
  return static_cast<double>(found) / static_cast<double>(asked);
}

struct Case {
  const char* name;
  const char* settings;
  double fpr;   // the filter is sized for this
  double fill;  // and filled to this share of its capacity
  Source source = Source::splitmix;
};

void PrintTo(const Case& it, std::ostream* out) {
  *out << it.settings << ",fpr=" << it.fpr << " filled " << it.fill;
}

constexpr std::uint64_t kKeys = 40'000;

AnyFilter make(const Case& it) {
  return make_filter(it.settings, Wish{.keys = kKeys, .fpr = it.fpr});
}

// The error that the model gives for a filter as made, with `keys` in it.
double model_fpr(const AnyFilter& filter, double keys) {
  double bits = 0;
  unsigned probes = 0;
  const Settings settings = filter.settings();
  for (const auto& [name, value] : settings.pairs())
    if (name == "probes")
      probes = static_cast<unsigned>(std::stoul(value));
    else if (name == "bytes")
      bits = static_cast<double>(parse_size("bytes", value)) * 8;
  return filter.kind() == FilterKind::blocked_bloom
             ? model::blocked_bloom_fpr(bits / 512, probes, keys)
             : model::bloom_fpr(bits, probes, keys);
}

class BloomError : public testing::TestWithParam<Case> {};

TEST_P(BloomError, IsWhatTheModelSays) {
  const Case& it = GetParam();
  const auto keys = static_cast<std::uint64_t>(kKeys * it.fill);
  const double expected = model_fpr(make(it), static_cast<double>(keys));
  // Enough that about 5,000 false positives are found in all.
  const auto probes = static_cast<std::uint64_t>(std::max(1e6, 5000 / expected) / kTables);
  std::vector<double> shares, predictions;
  for (int table = 0; table < kTables; ++table) {
    Digests digests(it.source, static_cast<std::uint64_t>(1000 + table));
    AnyFilter filter = make(it);
    insert(filter, digests, keys);
    predictions.push_back(filter.stats().predicted_fpr);
    shares.push_back(false_positive_share(filter, digests, probes));
  }
  const Measured measured = mean_of(shares);
  EXPECT_NEAR(measured.mean, expected, kTolerance * measured.standard_error);
  EXPECT_LT(measured.standard_error, 0.03 * expected) << "too few probes to tell anything";
  // What the filter says of itself counts only keys that it took for new.
  EXPECT_NEAR(mean_of(predictions).mean / expected, 1, expected < 2e-2 ? 0.02 : 0.05);
}

constexpr Case kCases[] = {
    {"blocked8_percent", "bloom,layout=blocked,probes=8", 1e-2, 1},
    {"blocked8_percent_half", "bloom,layout=blocked,probes=8", 1e-2, 0.5},
    {"blocked8_percent_over", "bloom,layout=blocked,probes=8", 1e-2, 1.5},
    {"blocked8_1e3", "bloom,layout=blocked,probes=8", 1e-3, 1},
    {"blocked8_1e4", "bloom,layout=blocked,probes=8", 1e-4, 1},
    {"blocked16_percent", "bloom,layout=blocked,probes=16", 1e-2, 1},
    {"blocked16_1e3_over", "bloom,layout=blocked,probes=16", 1e-3, 1.5},
    {"blocked16_1e3", "bloom,layout=blocked,probes=16", 1e-3, 1},
    {"blocked16_1e4", "bloom,layout=blocked,probes=16", 1e-4, 1},
    // The standard error, which takes too many probes to meet at capacity, beyond it.
    {"blocked16_1e6_over", "bloom,layout=blocked,probes=16", 1e-6, 1.6},
    {"classic_percent", "bloom,layout=classic", 1e-2, 1},
    {"classic_percent_half", "bloom,layout=classic", 1e-2, 0.7},
    {"classic_1e3_over", "bloom,layout=classic", 1e-3, 1.5},
    {"classic_1e4", "bloom,layout=classic", 1e-4, 1},
    {"classic_one_probe", "bloom,layout=classic,probes=1", 1e-2, 1},
    {"classic_many_probes", "bloom,layout=classic,probes=40", 1e-2, 1},
    {"blocked8_xxh3", "bloom,layout=blocked,probes=8", 1e-2, 1, Source::xxh3},
    {"blocked8_highway", "bloom,layout=blocked,probes=8", 1e-2, 1, Source::highway},
    {"blocked16_xxh3", "bloom,layout=blocked,probes=16", 1e-3, 1, Source::xxh3},
    {"blocked16_highway", "bloom,layout=blocked,probes=16", 1e-3, 1, Source::highway},
    {"classic_xxh3", "bloom,layout=classic", 1e-3, 1, Source::xxh3},
    {"classic_highway", "bloom,layout=classic", 1e-3, 1, Source::highway},
};

INSTANTIATE_TEST_SUITE_P(Layouts, BloomError, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// --- where the bits lie -------------------------------------------------------------------------

// Keeps a look at the table instead of a copy: it may be gigabytes.
class TableView final : public Encoder {
 public:
  void bytes(std::span<const std::byte> data) override {
    words = {reinterpret_cast<const std::uint64_t*>(data.data()), data.size() / 8};
  }
  std::span<const std::uint64_t> words;
};

// How far a chi-square statistic of `freedom` degrees lies from its mean, in standard errors of the
// normal that Wilson & Hilferty's cube root makes of it.
double chi_square_error(const std::vector<double>& counts) {
  double total = 0, statistic = 0;
  for (const double count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  for (const double count : counts) statistic += std::pow(count - expected, 2) / expected;
  const double freedom = static_cast<double>(counts.size()) - 1;
  const double spread = 2 / (9 * freedom);
  return (std::cbrt(statistic / freedom) - (1 - spread)) / std::sqrt(spread);
}

// Not watched by the thread sanitizer, which would keep a shadow of four times what is read here.
[[gnu::no_sanitize_thread]] std::uint64_t set_bits(const std::uint64_t* words, std::size_t count) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (words[i] != 0) bits += static_cast<std::uint64_t>(std::popcount(words[i]));
  return bits;
}

std::vector<double> bits_in_ranges(std::span<const std::uint64_t> words, std::size_t ranges) {
  std::vector<double> counts;
  const std::size_t each = words.size() / ranges;
  for (std::size_t range = 0; range < ranges; ++range)
    counts.push_back(static_cast<double>(set_bits(words.data() + range * each, each)));
  return counts;
}

class BloomPositions : public testing::TestWithParam<Source> {};

// Few enough keys that hardly any bit is set twice, which would even the counts out.
constexpr std::uint64_t kSparseKeys = 100'000;

TEST_P(BloomPositions, ClassicOnesAreUnbiased) {
  // 101 ranges of 9973 words: nothing here is a power of two.
  AnyFilter filter = make_filter("bloom,layout=classic,probes=5,bytes=8058184", Wish{});
  Digests digests(GetParam(), 5);
  insert(filter, digests, kSparseKeys);
  TableView table;
  filter.encode_payload(table);
  ASSERT_EQ(table.words.size(), 101u * 9973u);
  EXPECT_LT(std::abs(chi_square_error(bits_in_ranges(table.words, 101))), kTolerance);
}

TEST_P(BloomPositions, BlockedOnesAreUnbiased) {
  for (const unsigned probes : {8u, 16u}) {
    // 101 ranges of 4001 blocks.
    AnyFilter filter =
        make_filter("bloom,layout=blocked,bytes=25862464,probes=" + std::to_string(probes), Wish{});
    Digests digests(GetParam(), 6);
    insert(filter, digests, kSparseKeys);
    TableView table;
    filter.encode_payload(table);
    ASSERT_EQ(table.words.size(), 101u * 4001u * 8u);
    // A key sets `probes` bits together: count keys, not bits.
    std::vector<double> keys = bits_in_ranges(table.words, 101);
    for (double& count : keys) count /= probes;
    EXPECT_LT(std::abs(chi_square_error(keys)), kTolerance) << probes;
    // Within the lanes of a block, every bit is as likely as any other.
    const unsigned lane_bits = 512 / probes;
    std::vector<double> lanes(512);
    for (std::size_t i = 0; i < table.words.size(); ++i)
      for (std::uint64_t word = table.words[i]; word != 0; word &= word - 1)
        ++lanes[i % 8 * 64 + static_cast<unsigned>(std::countr_zero(word))];
    for (unsigned lane = 0; lane < probes; ++lane) {
      const auto begin = lanes.begin() + lane * lane_bits;
      EXPECT_LT(std::abs(chi_square_error({begin, begin + lane_bits})), kTolerance)
          << "lane " << lane << " of " << probes;
    }
  }
}

std::string name_of_source(const testing::TestParamInfo<Source>& test) {
  if (test.param == Source::splitmix) return "splitmix";
  return test.param == Source::xxh3 ? "xxh3" : "highway";
}
INSTANTIATE_TEST_SUITE_P(Sources, BloomPositions,
                         testing::Values(Source::splitmix, Source::xxh3, Source::highway),
                         name_of_source);

// --- beyond 32 bits -----------------------------------------------------------------------------

class LargeBloom : public testing::TestWithParam<const char*> {};

// A table of 2^34 bits, of which only what 160 probes touch is ever resident.
TEST_P(LargeBloom, UsesPositionsBeyond32Bits) {
  AnyFilter filter = make_filter(GetParam(), Wish{});
  ASSERT_EQ(filter.stats().bytes >> 31, 1u);
  const bool blocked = filter.kind() == FilterKind::blocked_bloom;
  const std::size_t keys = blocked ? 160 : 40;
  const std::size_t bits_per_key = blocked ? 16 : 4;
  Digests digests(Source::splitmix, 7);
  const std::span<const Digest> inserted = digests.batch(keys);
  std::vector<Verdict> verdicts(keys);
  filter.observe(inserted, verdicts);
  for (const Verdict verdict : verdicts) EXPECT_EQ(verdict, Verdict::distinct);
  filter.may_contain(inserted, verdicts);
  for (const Verdict verdict : verdicts) EXPECT_EQ(verdict, Verdict::duplicate);

  TableView table;
  filter.encode_payload(table);
  const std::vector<double> quarters = bits_in_ranges(table.words, 4);
  double total = 0;
  for (const double quarter : quarters) {
    total += quarter;
    // A quarter is 2^32 bits, and 160 touches fall into it with a standard error of 5.5.
    const double touches = quarter / (blocked ? 16 : 1);
    EXPECT_NEAR(touches, 40, kTolerance * 5.5);
  }
  EXPECT_EQ(total, static_cast<double>(keys * bits_per_key)) << "two bits fell together";
}

INSTANTIATE_TEST_SUITE_P(Layouts, LargeBloom,
                         testing::Values("bloom,layout=blocked,probes=16,bytes=2GiB",
                                         "bloom,layout=classic,probes=4,bytes=2GiB"),
                         [](const auto& test) {
                           return std::string(test.index == 0 ? "blocked" : "classic");
                         });

}  // namespace
}  // namespace sluice
