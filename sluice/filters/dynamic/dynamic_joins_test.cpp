// Filters that forget() joins: some words per key, and as if they had been joined at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/digests.hpp"
#include "tests/support/dynamic_test_util.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using namespace dynamic_test;
using testing_support::random_digests;

constexpr std::uint64_t kCapacity = 1000;
constexpr const char* kSettings = "keys=1000,fpr=0.01,forget=yes";

Dynamic make_in(MemoryResource& memory, const char* settings = kSettings) {
  return Dynamic::make(Dynamic::Params::from({}, Settings::parse(settings)), memory);
}

// A filter that was joined at once: a copy has one table per filter.
void expect_as_its_copy(const Dynamic& filter, std::span<const Digest> asked) {
  const Bytes bytes = encoded(filter);
  const Dynamic copy = decoded(bytes);
  EXPECT_EQ(encoded(copy).payload, bytes.payload);
  for (const Digest& digest : asked)
    ASSERT_EQ(filter.may_contain(digest), copy.may_contain(digest));
}

TEST(DynamicJoins, TakeTheirTimeAndEndBeforeThereIsAnotherFilter) {
  TestMemory memory;
  Dynamic filter = make_in(memory);
  std::vector<Digest> written = write(filter, 1, 4 * kCapacity);
  const std::vector<Digest> asked = random_digests(2, 2000);
  ASSERT_EQ(filter.series().filters, 4u);
  const std::uint64_t four = filter.bytes();
  // Two pairs that will fit, one key before that.
  const std::uint64_t up_to = filter.params().joined_up_to();
  const auto forget = [&](std::size_t from, std::size_t count) {
    for (std::size_t i = from; i < from + count; ++i) filter.forget(written[i]);
  };
  for (std::size_t i = 0; filter.series().filters == 4; ++i) forget(i, 1);
  for (std::size_t i = 2 * kCapacity; filter.series().filters == 3; ++i) forget(i, 1);
  EXPECT_EQ(filter.series().filters, 2u);
  EXPECT_LE(std::ranges::min(keys_of(filter)), up_to);
  EXPECT_GE(filter.bytes(), four * 3 / 4) << "the second pair is not joined yet";
  EXPECT_EQ(filter.bytes(), memory.taken());
  expect_as_its_copy(filter, asked);
  // New keys do it, and never more than there is time for.
  SplitMix64 random(3);
  while (filter.series().filters == 2) {
    filter.insert(Digest{random.next(), random.next()});
    ASSERT_EQ(filter.bytes(), memory.taken());
    ASSERT_LE(filter.bytes(), four + 1000);
    if (random.next() % 64 == 0) expect_as_its_copy(filter, asked);
  }
  EXPECT_LE(filter.bytes(), four * 3 / 4 + 1000) << "three filters and nothing else";
  const Dynamic copy = decoded(encoded(filter));
  EXPECT_EQ(filter.bytes() / 1024, copy.bytes() / 1024);
}

// Up and down by one key around a full series.
// Keys are forgotten in any order, so many filters are joined at a time.
TEST(DynamicJoins, MayBeManyAtATime) {
  TestMemory memory;
  Dynamic filter = make_in(memory, "keys=50,fpr=0.01,forget=yes");
  std::vector<Digest> written = write(filter, 11, 60 * 50);
  const std::vector<Digest> asked = random_digests(12, 2000);
  std::shuffle(written.begin(), written.end(), std::mt19937_64(13));
  std::size_t fewest = filter.series().filters;
  while (!written.empty()) {
    filter.forget(written.back());
    written.pop_back();
    ASSERT_EQ(filter.bytes(), memory.taken());
    if (filter.series().filters == fewest) continue;
    fewest = filter.series().filters;
    expect_as_its_copy(filter, asked);
    for (const Digest& digest : written) ASSERT_TRUE(filter.may_contain(digest));
  }
  // Keys that several filters may hold are kept.
  EXPECT_LT(fewest, 15u);
}

TEST(DynamicJoins, AreNotMadeAgainAndAgain) {
  TestMemory memory;
  Dynamic filter = make_in(memory);
  write(filter, 4, 2 * kCapacity);
  const std::uint64_t two = filter.bytes();
  SplitMix64 random(5);
  for (int i = 0; i < 200; ++i) {
    const std::vector<Digest> more = write(filter, random.next(), 2);
    for (const Digest& digest : more) filter.forget(digest);
    ASSERT_LE(filter.bytes(), 2 * two);
    ASSERT_LE(filter.series().filters, 3u);
  }
}

// Whatever comes while tables are joined, joins of what was joined included. Counters stick, and most
// keys are claimed by strangers.
class DynamicJoinsAnyVerbs : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Sizes, DynamicJoinsAnyVerbs,
                         testing::Values("bytes=64,probes=3,keys=12,fpr=0.1,forget=yes",
                                         "bytes=64,probes=2,keys=40,fpr=0.1,forget=yes",
                                         "bytes=16,probes=2,keys=1,fpr=0.1,forget=yes",
                                         "bytes=1024,probes=4,keys=100,fpr=0.1,forget=yes",
                                         "bytes=131072,probes=5,keys=300,fpr=0.1,forget=yes"));

TEST_P(DynamicJoinsAnyVerbs, EqualThoseOfACopy) {
  TestMemory memory((std::size_t{1} << 20) - 1024);
  Dynamic filter = make_in(memory, GetParam()), copy = make_in(default_memory(), GetParam());
  const std::uint64_t capacity = filter.params().capacity;
  SplitMix64 random(6);
  std::vector<Digest> held;
  std::size_t joins = 0;
  std::uint64_t most = 0;
  std::vector<Digest> gone(16);
  for (int step = 0; step < 6000; ++step) {
    const bool growing = step / 700 % 2 == 0 && held.size() < 12 * capacity;
    const std::uint64_t filters = filter.series().filters;
    if (random.next() % 10 < (growing ? 8u : 2u) || held.empty()) {
      const Digest digest{random.next(), random.next()};
      const Verdict verdict = filter.observe(digest);
      ASSERT_EQ(verdict, copy.observe(digest));
      if (verdict == Verdict::distinct) held.push_back(digest);
    } else {
      std::swap(held[random.next() % held.size()], held.back());
      const bool done = filter.forget(held.back());
      ASSERT_EQ(done, copy.forget(held.back()));
      gone[static_cast<std::size_t>(step) % gone.size()] = held.back();
      held.pop_back();
      joins += filter.series().filters < filters;
    }
    ASSERT_EQ(filter.bytes(), memory.taken());
    for (const Digest& digest : gone)
      ASSERT_EQ(filter.may_contain(digest), copy.may_contain(digest)) << step;
    if (random.next() % 8 == 0) copy = decoded(encoded(copy));
    if (random.next() % 32 == 0) {
      const Bytes one = encoded(filter), two = encoded(copy);
      ASSERT_EQ(one.payload, two.payload) << step;
      ASSERT_EQ(one.header, two.header) << step;
    }
    if (random.next() % 1024 == 0) {
      Dynamic other = make_in(default_memory(), GetParam());
      write(other, random.next(), 2 * capacity);
      if (random.next() % 2 == 0) {
        filter.merge(other);
        copy.merge(other);
      } else {
        Dynamic both = make_in(default_memory(), GetParam());
        Dynamic again = make_in(default_memory(), GetParam());
        both.merge(filter);
        again.merge(copy);
        ASSERT_EQ(encoded(both).payload, encoded(again).payload);
      }
    }
    // Never more tables than there were filters.
    most = std::max(most, filter.series().filters);
    ASSERT_LE(filter.bytes(), (most + 1) * (filter.params().shape(0).bytes() + 600) + 1000) << step;
  }
  EXPECT_GE(joins, 3u);
  filter.clear();
  EXPECT_EQ(filter.bytes(), memory.taken());
}

// If there is no memory for a note of the join, it is done at once.
TEST(DynamicJoins, NeedNoMemory) {
  for (const bool fails : {false, true}) {
    TestMemory memory;
    Dynamic filter = make_in(memory);
    const std::vector<Digest> written = write(filter, 7, 2 * kCapacity);
    const std::uint64_t two = filter.bytes();
    if (fails) memory.fail_at(1);
    for (std::size_t i = 0; filter.series().filters == 2; ++i) filter.forget(written[i]);
    EXPECT_EQ(memory.failed(), fails);
    EXPECT_EQ(filter.bytes(), memory.taken());
    EXPECT_EQ(filter.bytes() < two, fails);
    expect_as_its_copy(filter, random_digests(8, 1000));
  }
}

}  // namespace
}  // namespace sluice
