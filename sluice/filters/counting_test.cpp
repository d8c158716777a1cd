#include "sluice/filters/counting.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/dynamic/dynamic.hpp"
#include "sluice/filters/nibbles.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using testing_support::random_digests;

std::vector<std::byte> table_of(const Counting& filter) {
  BytesEncoder to;
  filter.encode_payload(to);
  return to.take();
}

constexpr Counting::Params kSmall{
    .counters = 1280, .probes = 7, .capacity = 133, .target_fpr = .01};

TEST(Nibbles, SumsEachCounterAndStaysAtFifteen) {
  for (unsigned a = 0; a < 16; ++a)
    for (unsigned b = 0; b < 16; ++b)
      for (std::uint64_t at = 0; at < 16; ++at) {
        const std::uint64_t x = std::uint64_t{a} << (4 * at), y = std::uint64_t{b} << (4 * at);
        ASSERT_EQ(nibbles::sum(x, y), std::uint64_t{std::min(a + b, 15u)} << (4 * at));
        ASSERT_EQ(nibbles::sum(~x, 0), ~x);
        ASSERT_EQ(nibbles::nonzero(x), a == 0 ? 0u : 1u);
        ASSERT_EQ(nibbles::total(~x), 240 - a);
        ASSERT_EQ(nibbles::any_stuck(x), a == 15);
      }
}

TEST(Nibbles, ACounterThatLostCountIsNeverLowered) {
  std::uint64_t table[2] = {};
  const FlatWords words{table};
  for (int i = 0; i < 14; ++i) nibbles::raise(words, 17);
  nibbles::lower(words, 17);
  EXPECT_EQ(nibbles::get(words, 17), 13u);
  for (int i = 0; i < 9; ++i) nibbles::raise(words, 17);
  for (int i = 0; i < 99; ++i) nibbles::lower(words, 17);
  EXPECT_EQ(nibbles::get(words, 17), 15u);
  nibbles::lower(words, 16);
  EXPECT_EQ(table[0], 0u);
  EXPECT_EQ(table[1], 15u << 4) << "a neighbour was touched";
}

TEST(Counting, ForgettingAllLeavesItEmpty) {
  Counting filter = Counting::make(kSmall);
  const std::vector<std::byte> empty = table_of(filter);
  std::vector<Digest> written;
  for (const Digest& digest : random_digests(1, 133))
    if (filter.observe(digest) == Verdict::distinct) written.push_back(digest);
  EXPECT_EQ(filter.stats().keys, written.size());
  for (std::size_t i = 0; i < written.size(); ++i) {
    ASSERT_TRUE(filter.forget(written[i]));
    for (std::size_t later = i + 1; later < written.size(); ++later)
      ASSERT_TRUE(filter.may_contain(written[later]));
  }
  EXPECT_EQ(table_of(filter), empty);
  EXPECT_EQ(filter.stats().keys, 0u);
  EXPECT_EQ(filter.stats().forgotten, written.size());
  EXPECT_FALSE(filter.forget(written[0]));
  EXPECT_EQ(filter.stats().forget_misses, 1u);
}

// One word of counters: every key's seven probes meet each other.
TEST(Counting, ProbesThatMeetAreTakenBackAsTheyWereCounted) {
  Counting filter = Counting::make({.counters = 16, .probes = 7, .capacity = 1, .target_fpr = 0.5});
  for (const Digest& digest : random_digests(2, 100)) {
    ASSERT_EQ(filter.observe(digest), Verdict::distinct);
    ASSERT_TRUE(filter.forget(digest));
    ASSERT_EQ(table_of(filter), std::vector<std::byte>(8));
  }
}

TEST(Counting, ARepeatIsCountedOnce) {
  Counting filter = Counting::make(kSmall);
  const Digest digest{1, 2};
  for (int i = 0; i < 5; ++i) filter.insert(digest);
  EXPECT_TRUE(filter.forget(digest));
  EXPECT_FALSE(filter.may_contain(digest));
}

// Merged until nearly every counter sticks: keys that remain are never lost.
TEST(Counting, NoKeyThatRemainsIsLostAmongStuckCounters) {
  Counting filter =
      Counting::make({.counters = 64, .probes = 2, .capacity = 10, .target_fpr = 0.5});
  SplitMix64 random(3);
  std::vector<Digest> held;
  for (int merges = 0; merges < 200; ++merges) {
    Counting more = Counting::make(filter.params());
    for (const Digest& digest : random_digests(random.next(), 4))
      if (more.observe(digest) == Verdict::distinct) held.push_back(digest);
    filter.merge(more);
  }
  while (!held.empty()) {
    std::swap(held[random.next() % held.size()], held.back());
    ASSERT_TRUE(filter.forget(held.back()));
    held.pop_back();
    for (const Digest& digest : held) ASSERT_TRUE(filter.may_contain(digest)) << held.size();
  }
}

TEST(Counting, AMergeAnswersYesWhereEitherDid) {
  Counting one = Counting::make(kSmall), two = Counting::make(kSmall);
  const std::vector<Digest> first = random_digests(4, 60), second = random_digests(5, 60);
  one.insert(first);
  two.insert(second);
  const std::uint64_t keys = one.stats().keys + two.stats().keys;
  one.merge(two);
  EXPECT_EQ(one.stats().keys, keys);
  for (const Digest& digest : first) EXPECT_TRUE(one.may_contain(digest));
  for (const Digest& digest : second) EXPECT_TRUE(one.may_contain(digest));
  const std::vector<std::byte> before = table_of(one);
  one.merge(one);
  EXPECT_EQ(table_of(one), before);
  Counting::Params larger = kSmall;
  larger.counters *= 2;
  EXPECT_THROW(one.merge(Counting::make(larger)), BadParameters);
  EXPECT_EQ(table_of(one), before);
}

// Of keys never written, a share of predicted_fpr is found and "forgotten" at another's cost: as
// docs/filters/counting.md warns.
TEST(CountingError, ForgettingStrangersErasesAtTheRateOfAFalsePositive) {
  Counting filter =
      Counting::make({.counters = 1 << 20, .probes = 7, .capacity = 109'000, .target_fpr = 0.01});
  filter.insert(random_digests(6, 109'000));
  const double fpr = filter.stats().predicted_fpr;
  filter.forget(Digest{1, 1});
  for (const Digest& digest : random_digests(7, 20'000)) filter.forget(digest);
  const FilterStats stats = filter.stats();
  const double expected = static_cast<double>(stats.forget_misses) * fpr / (1 - fpr);
  // Four standard errors of a binomial count, and 5 % as each erasure lowers the rate.
  EXPECT_NEAR(static_cast<double>(stats.forgotten), expected,
              4 * std::sqrt(expected) + 0.05 * expected);
}

// And each that is found erases as many keys as it lowers counters of 1, as docs/filters/counting.md says. The
// same of a single filter of `dynamic`.
template <class Filter>
void forget_strangers(Filter& filter, unsigned probes, double load) {
  constexpr std::size_t kKeys = 60'000;
  std::vector<Digest> written;
  for (const Digest& digest : random_digests(8, kKeys))
    if (filter.observe(digest) == Verdict::distinct) written.push_back(digest);
  // So few that hardly any key is erased twice.
  const auto misses = static_cast<std::size_t>(0.004 * kKeys / filter.stats().predicted_fpr);
  for (const Digest& digest : random_digests(9, misses)) filter.forget(digest);
  const auto found = static_cast<double>(filter.stats().forgotten);
  std::uint64_t erased = 0;
  for (const Digest& digest : written) erased += !filter.may_contain(digest);
  const double each = probes * load / std::expm1(load);
  ASSERT_GT(found, 150);
  // One find lowers `probes` counters, each with its own chance: the variance is below each / 2. Four
  // standard errors of that, and 3 % for keys that two finds erase.
  EXPECT_NEAR(static_cast<double>(erased) / found, each,
              4 * std::sqrt(each / 2 / found) + 0.03 * each)
      << found;
}

TEST(CountingError, AStrangerThatIsFoundErasesTheKeysOfItsCountersOfOne) {
  for (const unsigned probes : {3U, 5U, 7U})
    for (const double load : {0.5, 0.69}) {
      const auto counters = static_cast<std::uint64_t>(60'000 * probes / load) / 64 * 64;
      SCOPED_TRACE(testing::Message() << probes << " probes, load " << load);
      Counting filter = Counting::make(
          {.counters = counters, .probes = probes, .capacity = 60'000, .target_fpr = 0.03});
      forget_strangers(filter, probes, load);
      Dynamic series = Dynamic::make({.bits = counters,
                                      .probes = probes,
                                      .capacity = 60'000,
                                      .target_fpr = 0.03,
                                      .forget = true});
      forget_strangers(series, probes, load);
    }
}

// Or forgetting could leave keys without a counter: a state that could not be read again.
TEST(Counting, ASnapshotOfMoreKeysThanCountersIsRefused) {
  Counting filter = Counting::make(kSmall);
  for (const Digest& digest : random_digests(11, 3)) filter.insert(digest);
  BytesEncoder header, payload;
  filter.encode_header(header);
  filter.encode_payload(payload);
  std::vector<std::byte> fields = header.take();
  const std::vector<std::byte> table = payload.take();
  const auto decode = [&] {
    BytesDecoder from_header(fields), from_payload(table);
    return Counting::decode(from_header, from_payload);
  };
  const auto three = std::ranges::find(fields.rbegin(), fields.rbegin() + 8, std::byte{3});
  ASSERT_NE(three, fields.rbegin() + 8) << "the keys stand last";
  EXPECT_EQ(decode().stats().keys, 3u);
  *three = std::byte{4};
  EXPECT_THROW(decode(), CorruptSnapshot);
}

TEST(Counting, ASnapshotOfAnotherShapeIsRefused) {
  const Counting filter = Counting::make(kSmall);
  BytesEncoder header, payload;
  filter.encode_header(header);
  filter.encode_payload(payload);
  std::vector<std::byte> fields = header.take(), table = payload.take();
  const auto decode = [&] {
    BytesDecoder from_header(fields), from_payload(table);
    return Counting::decode(from_header, from_payload);
  };
  EXPECT_EQ(decode().params(), kSmall);
  fields.back() = std::byte{1};
  EXPECT_THROW(decode(), CorruptSnapshot) << "2^56 keys in an empty table";
  fields.back() = std::byte{0};
  table.pop_back();
  EXPECT_THROW(decode(), CorruptSnapshot);
  fields[0] = std::byte{1};
  EXPECT_THROW(decode(), CorruptSnapshot);
}

}  // namespace
}  // namespace sluice
