// The contract of filters/contract.hpp, held by every filter of the catalogue.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/kernels/simd.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::copy_of;
using testing_support::count_of;
using testing_support::random_digests;

// What to make, with a size that is in cache (small) and one that is prefetched (large).
std::vector<std::string> filters() {
  std::vector<std::string> all;
  for (const FilterInfo& filter : catalogue())
    all.insert(all.end(), filter.row->conformance.begin(), filter.row->conformance.end());
  return all;
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

class Conformance : public testing::TestWithParam<std::string> {
 protected:
  static AnyFilter make() { return make_filter(GetParam(), Wish{}); }
  const std::vector<Digest> digests_ = stream(1, count_of(8000, 20'000, 20'000));
};

TEST_P(Conformance, NoFalseNegativesWherePromised) {
  AnyFilter filter = make();
  if (!filter.promises().no_false_negatives) {
    // It may let duplicates through. `none` must let all of them, and any other may not.
    const std::vector<Verdict> judged = observe_in_batches(filter, digests_, 2, 100);
    const auto found = std::ranges::count(judged, Verdict::duplicate);
    if (filter.kind() == FilterKind::none) {
      EXPECT_EQ(found, 0);
    } else {
      // A tenth of the stream repeats the record just before.
      EXPECT_GT(found, std::ssize(digests_) / 20);
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
  } else if (filter.kind() != FilterKind::none) {
    EXPECT_GT(std::ranges::count(verdicts, Verdict::duplicate), 0);
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
  EXPECT_EQ(copy.stats().predicted_fpr, filter.stats().predicted_fpr);
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
  if (filter.kind() == FilterKind::none) return;
  const auto written = static_cast<std::uint64_t>(std::ranges::count(verdicts, Verdict::distinct));
  EXPECT_GT(stats.keys, 0u);
  // One that forgets cannot know how many it still remembers.
  if (filter.promises().no_false_negatives) {
    EXPECT_EQ(stats.keys, written);
  }
  EXPECT_GT(stats.bytes, 0u);
  EXPECT_GE(stats.predicted_fpr, 0);
  EXPECT_LE(stats.predicted_fpr, 1);
  if (filter.promises().no_false_positives) {
    EXPECT_EQ(stats.predicted_fpr, 0);
  }
}

// How many of `count` keys that are not there may be found: the error rate and six standard errors.
std::uint64_t most_found(const FilterStats& stats, std::uint64_t count) {
  const double expected = stats.predicted_fpr * static_cast<double>(count);
  return stats.predicted_fpr == 0
             ? 0
             : static_cast<std::uint64_t>(expected + 6 * std::sqrt(expected) + 3);
}

std::uint64_t found_of(const AnyFilter& filter, std::span<const Digest> digests) {
  std::vector<Verdict> verdicts(digests.size());
  filter.may_contain(digests, verdicts);
  return static_cast<std::uint64_t>(std::ranges::count(verdicts, Verdict::duplicate));
}

// A key judged duplicate on arrival was not written: taking it back would take another's trace. So
// only keys that were judged distinct are. A filter may leave a key where it is, and say so, when
// it cannot tell whose trace it would erase: no more often than it errs.
TEST_P(Conformance, ForgetTakesAKeyBack) {
  AnyFilter filter = make();
  if (!filter.can_forget()) return;
  const std::vector<Verdict> verdicts = observe_in_batches(filter, digests_, 15, 512);
  std::vector<Digest> kept, forgotten;
  for (std::size_t i = 0; i < digests_.size(); ++i)
    if (verdicts[i] == Verdict::distinct) (i % 2 == 0 ? kept : forgotten).push_back(digests_[i]);
  const FilterStats before = filter.stats();
  const std::size_t asked = forgotten.size();
  std::erase_if(forgotten, [&](const Digest& digest) {
    if (filter.forget(digest)) return false;
    kept.push_back(digest);
    return true;
  });
  EXPECT_LE(asked - forgotten.size(), most_found(before, asked));
  EXPECT_EQ(found_of(filter, kept), kept.size());
  EXPECT_LE(found_of(filter, forgotten), most_found(before, forgotten.size()));
  EXPECT_EQ(filter.stats().keys, before.keys - forgotten.size());
  EXPECT_EQ(filter.stats().forgotten, forgotten.size());
  const auto not_taken = [&] { return filter.stats().forget_misses + filter.stats().forget_kept; };
  EXPECT_EQ(not_taken(), asked - forgotten.size());

  std::uint64_t found = 0;
  for (const Digest& digest : random_digests(16, 2000)) found += filter.forget(digest);
  EXPECT_LE(found, most_found(before, 2000));
  EXPECT_EQ(filter.stats().forgotten, forgotten.size() + found);
  EXPECT_EQ(not_taken(), asked - forgotten.size() + 2000 - found);
  filter.clear();
  EXPECT_EQ(filter.stats().forgotten, 0u);
  EXPECT_EQ(not_taken(), 0u);
}

TEST_P(Conformance, WhatRemainsAfterInsertsAndForgetsIsFound) {
  AnyFilter filter = make();
  if (!filter.can_forget()) return;
  SplitMix64 random(17);
  std::vector<Digest> live, gone;
  std::uint64_t refused = 0;
  const int steps = count_of(6000, 12'000, 12'000);
  for (int step = 1; step <= steps; ++step) {
    if (!live.empty() && random.next() % 5 < 2) {
      std::swap(live[random.next() % live.size()], live.back());
      if (!filter.forget(live.back())) {
        ++refused;
        continue;
      }
      gone.push_back(live.back());
      live.pop_back();
    } else {
      // One in four comes back after it was taken back.
      Digest digest{random.next(), random.next()};
      if (!gone.empty() && random.next() % 4 == 0) {
        digest = gone.back();
        gone.pop_back();
      }
      Verdict verdict{};
      filter.observe({&digest, 1}, {&verdict, 1});
      if (verdict == Verdict::distinct) live.push_back(digest);
    }
    if (step % 3000 == 0) {
      ASSERT_EQ(found_of(filter, live), live.size()) << step;
    }
  }
  EXPECT_LE(refused, most_found(filter.stats(), static_cast<std::uint64_t>(steps)));
  EXPECT_EQ(filter.stats().keys, live.size());
  EXPECT_EQ(bytes_of(copy_of(filter)), bytes_of(filter));
}

TEST_P(Conformance, MergeIsTheUnion) {
  AnyFilter one = make(), two = make();
  const std::span first = std::span(digests_).first(digests_.size() / 2);
  const std::span second = std::span(digests_).subspan(digests_.size() / 3);
  one.insert(first);
  two.insert(second);
  if (!one.can_merge()) {
    const std::vector<std::byte> before = bytes_of(one);
    EXPECT_THROW(one.merge(two), BadParameters);
    EXPECT_EQ(bytes_of(one), before);
    return;
  }
  std::vector<Digest> asked = random_digests(18, 5000);
  asked.insert(asked.end(), digests_.begin(), digests_.end());
  std::vector<Verdict> by_one(asked.size()), by_two(asked.size()), by_both(asked.size());
  one.may_contain(asked, by_one);
  two.may_contain(asked, by_two);
  const FilterStats stats_one = one.stats(), stats_two = two.stats();
  one.merge(two);
  one.may_contain(asked, by_both);
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (by_one[i] == Verdict::duplicate || by_two[i] == Verdict::duplicate) {
      ASSERT_EQ(by_both[i], Verdict::duplicate) << i;
    }
  const FilterStats both = one.stats();
  EXPECT_LE(found_of(one, std::span(asked).first(5000)), most_found(both, 5000));
  EXPECT_GE(both.keys, std::max(stats_one.keys, stats_two.keys));
  EXPECT_LE(both.keys, stats_one.keys + stats_two.keys);
  EXPECT_GE(both.predicted_fpr, std::max(stats_one.predicted_fpr, stats_two.predicted_fpr));
  EXPECT_EQ(both.target_fpr, stats_one.target_fpr);
  EXPECT_GE(both.bytes, stats_one.bytes);
  EXPECT_EQ(bytes_of(copy_of(one)), bytes_of(one));
}

TEST_P(Conformance, MergingWithAnEmptyOneChangesNoVerdict) {
  AnyFilter filter = make(), empty = make();
  if (!filter.can_merge()) return;
  observe_in_batches(filter, digests_, 19, 512);
  std::vector<Digest> asked = random_digests(20, 5000);
  asked.insert(asked.end(), digests_.begin(), digests_.end());
  std::vector<Verdict> before(asked.size()), after(asked.size());
  filter.may_contain(asked, before);
  const std::uint64_t keys = filter.stats().keys;
  filter.merge(empty);
  filter.may_contain(asked, after);
  EXPECT_EQ(after, before);
  EXPECT_EQ(filter.stats().keys, keys);
  empty.merge(filter);
  empty.may_contain(asked, after);
  EXPECT_EQ(after, before);
  EXPECT_EQ(empty.stats().keys, keys);
}

TEST_P(Conformance, MergingWithAnotherKindOrOtherParametersIsRefused) {
  AnyFilter filter = make();
  if (!filter.can_merge()) return;
  filter.insert(digests_);
  const std::vector<std::byte> before = bytes_of(filter);
  const bool exact = filter.kind() == FilterKind::exact;
  EXPECT_THROW(filter.merge(make_filter(exact ? "bloom" : "exact", {.keys = 100})), BadParameters);
  EXPECT_EQ(bytes_of(filter), before);
  // Where these start is no matter for a merge.
  const std::string_view made = GetParam();
  if (exact || filter.kind() == FilterKind::growing || made.starts_with("sharded,of=exact") ||
      made.starts_with("sharded,of=growing"))
    return;
  std::string other(name_of(filter.kind()));
  const Settings settings = filter.settings();
  for (const auto& [name, value] : settings.pairs())
    other += "," + name + "=" + (name == "keys" ? std::to_string(2 * std::stoull(value)) : value);
  const AnyFilter larger = make_filter(other, Wish{});
  ASSERT_FALSE(larger.settings() == settings) << other;
  EXPECT_THROW(filter.merge(larger), BadParameters) << other;
  EXPECT_EQ(bytes_of(filter), before);
}

INSTANTIATE_TEST_SUITE_P(Filters, Conformance, testing::ValuesIn(filters()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace sluice
