// Sharded filters that age: for all batches, budgets and threads, records are judged as one by one,
// and a full shard stops all of them at the right record.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/sharded/shard_crew.hpp"
#include "sluice/filters/sharded/sharded.hpp"
#include "tests/support/counts.hpp"

namespace sluice {
namespace {

using testing_support::count_of;

// A filter and one of the same parameters that is given its records one by one.
struct Twins {
  AnyFilter batched, single;

  Twins(const std::string& filter, std::uint64_t keys)
      : batched(make_filter(filter, {.keys = keys, .fpr = 1e-6})),
        single(make_filter(filter, {.keys = keys, .fpr = 1e-6})) {}

  // Both judge, and agree: how many, how, and on what is left. Returns how many.
  std::size_t admit(std::span<const Digest> digests, std::uint64_t& budget, Anchor anchor) {
    std::vector<Verdict> verdicts(digests.size());
    std::uint64_t single_budget = budget;
    const std::size_t judged = batched.admit(digests, verdicts, budget, anchor);
    std::size_t expected = 0;
    for (; expected < digests.size() && single_budget > 0; ++expected) {
      Verdict verdict{};
      if (single.admit(digests.subspan(expected, 1), {&verdict, 1}, single_budget, anchor) == 0)
        break;
      if (expected < judged) {
        EXPECT_EQ(verdicts[expected], verdict) << expected;
      }
    }
    EXPECT_EQ(judged, expected);
    EXPECT_EQ(budget, single_budget);
    EXPECT_EQ(batched.live_keys(), single.live_keys());
    return judged;
  }
  void rotate() {
    batched.rotate();
    single.rotate();
  }
};

struct Case {
  const char* filter;
  std::uint64_t window;
  Anchor anchor;
};

class ShardedAdmit : public testing::TestWithParam<Case> {};

// Keys of a universe three windows wide, budgets of a generation and odd ones, batches from one
// record to more than the threads take at once. Sanitizers get batches that the threads judge, but
// shorter ones: StopsWhereAKeyFindsNoPlace has a long one for them.
TEST_P(ShardedAdmit, JudgesAsOneByOne) {
  const auto& [filter, window, anchor] = GetParam();
  Twins twins(filter, window);
  SplitMix64 random(window);
  const std::uint64_t generation = window / std::max(1u, twins.batched.generations());
  std::uint64_t budget = generation;
  const int turns = count_of(12, 60, 60);
  const std::size_t most =
      count_of<std::size_t>(4000, ShardCrew::kTogether + 3000, ShardCrew::kTogether + 3000);
  for (int turn = 0; turn < turns && !testing::Test::HasFailure(); ++turn) {
    const std::size_t count = turn % 3 == 0   ? random.next() % 20
                              : turn % 3 == 1 ? random.next() % 1500
                                              : random.next() % most;
    std::vector<Digest> digests;
    for (std::size_t i = 0; i < count; ++i) {
      SplitMix64 key(random.next() % (3 * window));
      digests.push_back({key.next(), key.next()});
    }
    std::span<const Digest> rest(digests);
    while (!rest.empty() && !testing::Test::HasFailure()) {
      const std::size_t judged = twins.admit(rest, budget, anchor);
      rest = rest.subspan(judged);
      if (budget > 0 && !rest.empty()) {
        twins.rotate();  // full: none of these is planned for that many
        budget = generation;
      }
      if (budget > 0) continue;
      twins.rotate();
      budget = turn % 7 == 0 ? 1 + random.next() % 5 : generation;
    }
  }
  std::vector<Digest> all;
  for (std::uint64_t number = 0; number < 3 * window; ++number) {
    SplitMix64 key(number);
    all.push_back({key.next(), key.next()});
  }
  std::vector<Verdict> batched(all.size()), single(all.size());
  twins.batched.may_contain(all, batched);
  twins.single.may_contain(all, single);
  EXPECT_EQ(batched, single);
}

INSTANTIATE_TEST_SUITE_P(
    Filters, ShardedAdmit,
    testing::Values(
        Case{"sharded,of=cohort", 20'000, Anchor::delivered},
        Case{"sharded,of=cohort", 20'000, Anchor::refreshed},
        Case{"sharded,shards=5,of=cohort,slot=48,generations=3", 6000, Anchor::delivered},
        Case{"sharded,shards=3,of=cohort,generations=0", 9000, Anchor::delivered},
        Case{"sharded,shards=7,of=cohort", 40, Anchor::refreshed},
        Case{"sharded,of=apbf,l=14", 20'000, Anchor::delivered},
        Case{"sharded,of=apbf,l=14", 20'000, Anchor::refreshed},
        Case{"sharded,shards=3,of=apbbf", 10'000, Anchor::delivered},
        Case{"sharded,of=apbbf,layout=line,fpr=0.02", 10'000, Anchor::refreshed},
        Case{"sharded,shards=3,of=exact-window,generations=7", 10'000, Anchor::delivered},
        Case{"sharded,of=exact-window,generations=7", 10'000, Anchor::refreshed},
        Case{"sharded,of=timing,fpr=0.01", 8000, Anchor::delivered},
        Case{"sharded,of=timer,fpr=0.01", 8000, Anchor::refreshed},
        // False negatives: a duplicate may turn out distinct after all.
        Case{"sharded,of=timer,fpr=0.01,equal=2", 8000, Anchor::delivered}));

// One shard is full by count while another has room: the prefix is judged, and nothing after it is
// remembered.
TEST(ShardedWindow, StopsWhereAShardIsFullByCount) {
  for (const char* filter : {"sharded,shards=4,of=cohort,slot=48,generations=2",
                             "sharded,shards=4,of=apbf,k=20,l=4", "sharded,shards=4,of=timing"}) {
    Twins twins(filter, 4000);
    SplitMix64 random(1);
    std::vector<Digest> digests(20'000);
    for (Digest& digest : digests) digest = {random.next(), random.next()};
    std::uint64_t budget = digests.size();
    const std::size_t judged = twins.admit(digests, budget, Anchor::delivered);
    EXPECT_LT(judged, digests.size()) << filter;
    EXPECT_GT(budget, 0u);
    std::vector<Verdict> verdicts(digests.size());
    twins.batched.may_contain(digests, verdicts);
    EXPECT_EQ(std::ranges::count(std::span(verdicts).first(judged), Verdict::distinct), 0);
    EXPECT_EQ(std::ranges::count(std::span(verdicts).subspan(judged), Verdict::duplicate), 0)
        << filter;
    // It stays so, and says so again.
    EXPECT_EQ(twins.admit(std::span(digests).subspan(judged), budget, Anchor::delivered), 0u);
  }
}

// A table with hardly a slot more than keys: some key finds no place before the count is full,
// while other shards are ahead of it. What they wrote after it must be gone. In the larger table
// there is still enough room by count for the threads to work.
TEST(ShardedWindow, StopsWhereAKeyFindsNoPlace) {
  struct Size {
    const char* settings;
    std::uint64_t least_room;
  };
  for (const auto& [settings, least_room] :
       {Size{"bytes=2MiB,keys=311k", 64}, Size{"bytes=8MiB,keys=1251k", ShardCrew::kFewest}}) {
    Twins twins(std::string("sharded,of=cohort,slot=48,generations=24,fpr=1e-6,") + settings, 1);
    SplitMix64 random(7);
    std::vector<Digest> digests(twins.batched.stats().capacity * 11 / 10);
    for (Digest& digest : digests) digest = {random.next(), random.next()};
    std::vector<Verdict> verdicts(digests.size());
    const std::size_t planned = twins.batched.stats().capacity;
    for (AnyFilter* twin : {&twins.batched, &twins.single}) {
      std::uint64_t budget = planned;
      ASSERT_EQ(twin->admit(std::span(digests).first(planned), std::span(verdicts).first(planned),
                            budget, Anchor::delivered),
                planned);
    }
    const std::span<const Digest> rest = std::span(digests).subspan(planned);
    std::uint64_t budget = rest.size();
    const std::size_t judged = planned + twins.admit(rest, budget, Anchor::delivered);
    ASSERT_LT(judged, digests.size());
    EXPECT_EQ(twins.batched.live_keys(), judged);
    // By count there was room: this is the stop that comes unannounced.
    EXPECT_GT(twins.batched.room(), least_room);
    EXPECT_EQ(twins.batched.stats().forgotten, 0u);
    twins.batched.may_contain(digests, verdicts);
    EXPECT_EQ(std::ranges::count(std::span(verdicts).first(judged), Verdict::distinct), 0);
    EXPECT_EQ(std::ranges::count(std::span(verdicts).subspan(judged), Verdict::duplicate), 0);
  }
}

TEST(ShardedWindow, KeysOfAnyAgeLeaveWithTheirGeneration) {
  AnyFilter filter = make_filter("sharded,shards=3,of=cohort,generations=4", {.keys = 1000});
  SplitMix64 random(2);
  std::vector<Digest> digests(300);
  for (Digest& digest : digests) digest = {random.next(), random.next()};
  for (std::size_t i = 0; i < digests.size(); ++i)
    EXPECT_EQ(filter.admit_aged(digests[i], static_cast<unsigned>(i % 5), Anchor::delivered),
              Verdict::distinct);
  EXPECT_EQ(filter.live_keys(), 300u);
  std::vector<Verdict> verdicts(digests.size());
  for (unsigned rotations = 1; rotations <= 5; ++rotations) {
    filter.rotate();
    filter.may_contain(digests, verdicts);
    for (std::size_t i = 0; i < digests.size(); ++i)
      EXPECT_EQ(verdicts[i] == Verdict::duplicate, i % 5 + rotations <= 4);
    EXPECT_EQ(filter.live_keys(), 300u - 60u * rotations);
  }
}

}  // namespace
}  // namespace sluice
