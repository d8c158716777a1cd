// The contract of filters/contract.hpp, held by every filter: one line in kFilters joins.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/base/codec.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice {
namespace {

// What to make, with a size that is in cache (small) and one that is prefetched (large).
constexpr const char* kFilters[] = {
    "none",
    "exact",
    "exact,keys=200k",
    "bloom,keys=3000",
    "bloom,keys=600k",
    "bloom,keys=3000,fpr=0.01",
    "bloom,keys=2M,fpr=0.01",
    "bloom,layout=classic,keys=3000",
    "bloom,layout=classic,keys=700k",
    "bloom,layout=classic,bytes=4096,probes=1",
    "growing",
    "growing,keys=1",
    "growing,keys=200k",
    "growing,slot=16,keys=1,fpr=0.05",
    "growing,slot=16,keys=2M,fpr=0.05",
    "growing,slot=64",
    "growing,fpr=1e-9,keys=1",
    "cohort,keys=14k,slot=16",
    "cohort,keys=14k,slot=24",
    "cohort,keys=14k,slot=32",
    "cohort,keys=14k,slot=40",
    "cohort,keys=14k,slot=48",
    "cohort,keys=300k",
    "cohort,keys=300k,slot=24",
    "exact-window,generations=5",
    "exact-window,generations=1,keys=200k",
    "timing,keys=14k",
    "timing,keys=14k,fpr=0.05,generations=9",
    "timing,keys=300k,fpr=0.001,generations=24",
    "timing,keys=14k,fpr=0.01,probes=3,timer=15",
    "timer,keys=14k",
    "timer,keys=300k,fpr=0.001,generations=200",
    "timer,keys=14k,layout=plain,fpr=0.01",
    "timer,keys=14k,layout=horizontal,slices=7,fpr=0.01,timer=16",
    "timer,keys=14k,fpr=0.01,equal=2",
    "apbf,keys=200k,l=14",
    "apbf,keys=60k,k=4,l=3",
    "apbf,keys=1M",
    "apbf,keys=100k,k=3,l=5,slices=4",
    "apbbf,keys=70k,k=2,l=5,block=512,bits=8",
    "apbbf,keys=70k,k=2,l=5,block=512,bits=4",
    "apbbf,keys=70k,k=2,l=5,block=64,bits=8",
    "apbbf,keys=120k,k=3,l=8,block=64,bits=4",
    "apbbf,keys=1M,l=8",
    "apbbf,layout=column,keys=70k,k=2,l=5,block=512,bits=8",
    "apbbf,layout=column,keys=70k,k=2,l=5,block=512,bits=4",
    "apbbf,layout=column,keys=70k,k=2,l=5,block=64,bits=8",
    "apbbf,layout=column,keys=70k,k=2,l=5,block=64,bits=4",
    "apbbf,layout=column,keys=1M,l=8",
    "apbbf,layout=line,keys=200k,k=5,l=11",
    "apbbf,layout=line,keys=1M,fpr=0.02",
    "apbbf,layout=line,keys=90k,k=3,l=5",
    "apbbf,layout=line,keys=300k,k=12,l=20",
};

std::vector<std::byte> bytes_of(const AnyFilter& filter) {
  BytesEncoder header, payload;
  filter.encode_header(header);
  filter.encode_payload(payload);
  std::vector<std::byte> all = header.take();
  const std::vector<std::byte> rest = payload.take();
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

AnyFilter copy_of(const AnyFilter& filter) {
  BytesEncoder header, payload;
  filter.encode_header(header);
  filter.encode_payload(payload);
  const std::vector<std::byte> header_bytes = header.take(), payload_bytes = payload.take();
  BytesDecoder from_header(header_bytes), from_payload(payload_bytes);
  AnyFilter copy = decode_filter(static_cast<std::uint16_t>(filter.kind()), filter.version(),
                                 from_header, from_payload);
  EXPECT_EQ(from_header.remaining(), 0u) << "the decoder left header bytes unread";
  EXPECT_EQ(from_payload.remaining(), 0u) << "the decoder left payload bytes unread";
  return copy;
}

// A stream of `records` digests; each is with probability 0.4 a repeat of an earlier one, sometimes
// the one just before, so that duplicates also fall within a batch.
std::vector<Digest> stream(std::uint64_t seed, std::size_t records) {
  SplitMix64 random(seed);
  std::vector<Digest> digests;
  for (std::size_t i = 0; i < records; ++i) {
    const double draw = random.next_unit();
    if (i > 0 && draw < 0.1)
      digests.push_back(digests.back());
    else if (i > 0 && draw < 0.4)
      digests.push_back(digests[random.next() % i]);
    else
      digests.push_back({random.next(), random.next()});
  }
  return digests;
}

std::vector<Verdict> observe_in_batches(AnyFilter& filter, std::span<const Digest> digests,
                                        std::uint64_t seed, std::size_t most) {
  SplitMix64 random(seed);
  std::vector<Verdict> verdicts(digests.size());
  for (std::size_t at = 0; at < digests.size();) {
    const std::size_t count =
        std::min<std::size_t>(random.next() % (most + 1), digests.size() - at);
    filter.observe(digests.subspan(at, count), std::span(verdicts).subspan(at, count));
    at += count;
  }
  return verdicts;
}

class Conformance : public testing::TestWithParam<const char*> {
 protected:
  static AnyFilter make() { return make_filter(GetParam(), Wish{}); }
  const std::vector<Digest> digests_ = stream(1, 20'000);
};

TEST_P(Conformance, NoFalseNegativesWherePromised) {
  AnyFilter filter = make();
  if (!filter.promises().no_false_negatives) {
    // It may let duplicates through. `none` must let all of them.
    const std::vector<Verdict> judged = observe_in_batches(filter, digests_, 2, 100);
    if (filter.kind() == FilterKind::none) {
      EXPECT_EQ(std::ranges::count(judged, Verdict::duplicate), 0);
    }
    return;
  }
  std::vector<Verdict> verdicts = observe_in_batches(filter, digests_, 2, 100);
  AnyFilter truth = make_filter("exact", Wish{});
  const std::vector<Verdict> right = observe_in_batches(truth, digests_, 3, 512);
  std::size_t lost = 0;
  for (std::size_t i = 0; i < digests_.size(); ++i) {
    if (right[i] == Verdict::duplicate) {
      EXPECT_EQ(verdicts[i], Verdict::duplicate) << i;
    }
    lost += right[i] == Verdict::distinct && verdicts[i] == Verdict::duplicate;
  }
  if (filter.promises().no_false_positives) {
    EXPECT_EQ(lost, 0u);
  }
  filter.may_contain(digests_, verdicts);
  EXPECT_EQ(std::ranges::count(verdicts, Verdict::distinct), 0);
}

TEST_P(Conformance, InsertIsRememberedAndAskingIsNot) {
  AnyFilter filter = make();
  std::vector<Verdict> verdicts(digests_.size());
  const std::vector<std::byte> empty = bytes_of(filter);
  filter.may_contain(digests_, verdicts);
  EXPECT_EQ(bytes_of(filter), empty) << "asking changed the filter";
  EXPECT_EQ(std::ranges::count(verdicts, Verdict::duplicate), 0) << "a new filter is empty";
  filter.insert(digests_);
  filter.may_contain(digests_, verdicts);
  if (filter.promises().no_false_negatives) {
    EXPECT_EQ(std::ranges::count(verdicts, Verdict::distinct), 0);
  }
}

TEST_P(Conformance, InsertEqualsObserve) {
  AnyFilter inserted = make(), observed = make();
  inserted.insert(digests_);
  observe_in_batches(observed, digests_, 4, 300);
  EXPECT_EQ(bytes_of(inserted), bytes_of(observed));
}

TEST_P(Conformance, BatchEqualsOneByOne) {
  AnyFilter batched = make(), single = make();
  const std::vector<Verdict> in_batches = observe_in_batches(batched, digests_, 5, 700);
  std::vector<Verdict> one_by_one(digests_.size());
  for (std::size_t i = 0; i < digests_.size(); ++i)
    single.observe(std::span(digests_).subspan(i, 1), std::span(one_by_one).subspan(i, 1));
  EXPECT_EQ(in_batches, one_by_one);
  EXPECT_EQ(bytes_of(batched), bytes_of(single));
}

TEST_P(Conformance, SameStreamSameVerdicts) {
  AnyFilter one = make(), two = make();
  EXPECT_EQ(observe_in_batches(one, digests_, 6, 64), observe_in_batches(two, digests_, 7, 512));
  EXPECT_EQ(bytes_of(one), bytes_of(two));
}

TEST_P(Conformance, ClearEqualsNew) {
  AnyFilter filter = make();
  const std::vector<Verdict> before = observe_in_batches(filter, digests_, 8, 512);
  filter.clear();
  EXPECT_EQ(bytes_of(filter), bytes_of(make()));
  EXPECT_EQ(filter.stats().keys, 0u);
  EXPECT_EQ(observe_in_batches(filter, digests_, 9, 512), before);
}

TEST_P(Conformance, SnapshotRoundTrip) {
  AnyFilter filter = make();
  const std::span first = std::span(digests_).first(digests_.size() / 2);
  const std::span second = std::span(digests_).subspan(digests_.size() / 2);
  observe_in_batches(filter, first, 10, 512);
  AnyFilter copy = copy_of(filter);
  EXPECT_EQ(bytes_of(copy), bytes_of(filter));
  EXPECT_EQ(copy.settings(), filter.settings());
  EXPECT_EQ(copy.stats().keys, filter.stats().keys);
  EXPECT_EQ(observe_in_batches(copy, second, 11, 512), observe_in_batches(filter, second, 11, 512));
  EXPECT_EQ(bytes_of(copy), bytes_of(filter));
}

TEST_P(Conformance, EverySimdLevelEqualsPortable) {
  const std::string chosen(simd_level());
  force_simd_level("portable");
  AnyFilter portable = make();
  const std::vector<Verdict> expected = observe_in_batches(portable, digests_, 12, 512);
  std::vector<Verdict> asked(digests_.size());
  for (const std::string_view level : simd_levels()) {
    force_simd_level(level);
    ASSERT_EQ(simd_level(), level) << "the forced instruction set did not run";
    AnyFilter filter = make();
    EXPECT_EQ(observe_in_batches(filter, digests_, 13, 512), expected) << level;
    EXPECT_EQ(bytes_of(filter), bytes_of(portable)) << level;
    filter.may_contain(digests_, asked);
    std::vector<Verdict> portable_asked(digests_.size());
    force_simd_level("portable");
    filter.may_contain(digests_, portable_asked);
    EXPECT_EQ(asked, portable_asked) << level;
  }
  force_simd_level(chosen);
}

TEST_P(Conformance, ItsSettingsMakeItAgain) {
  const AnyFilter filter = make();
  const std::string settings = filter.settings().text();
  const std::string again =
      std::string(name_of(filter.kind())) + (settings.empty() ? "" : ",") + settings;
  EXPECT_EQ(bytes_of(make_filter(again, Wish{})), bytes_of(filter)) << again;
}

TEST_P(Conformance, StatsCountKeysAndBytes) {
  AnyFilter filter = make();
  const std::vector<Verdict> verdicts = observe_in_batches(filter, digests_, 14, 512);
  const FilterStats stats = filter.stats();
  if (!filter.promises().no_false_negatives) return;
  EXPECT_EQ(stats.keys,
            static_cast<std::uint64_t>(std::ranges::count(verdicts, Verdict::distinct)));
  EXPECT_GT(stats.bytes, 0u);
  EXPECT_GE(stats.predicted_fpr, 0);
  EXPECT_LE(stats.predicted_fpr, 1);
  if (filter.promises().no_false_positives) {
    EXPECT_EQ(stats.predicted_fpr, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Filters, Conformance, testing::ValuesIn(kFilters), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace sluice
