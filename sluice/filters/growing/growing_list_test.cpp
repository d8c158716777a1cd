// A growing filter of few keys: exact as a list, and whole when it becomes a table.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/growing/growing.hpp"
#include "sluice/snapshot/snapshot.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::count_of;
using testing_support::random_digests;

constexpr std::size_t kMost = Growing::kMostListed;

Growing make(unsigned slot_bits, MemoryResource& memory = default_memory()) {
  return Growing::make({.slot_bits = slot_bits, .expected_keys = 0, .target_fpr = 0.05}, memory);
}

Growing holding(unsigned slot_bits, std::span<const Digest> digests,
                MemoryResource& memory = default_memory()) {
  Growing filter = make(slot_bits, memory);
  EXPECT_EQ(filter.insert(digests), digests.size());
  return filter;
}

std::size_t missing(const Growing& filter, std::span<const Digest> held) {
  std::vector<Verdict> verdicts(held.size());
  filter.may_contain(held, verdicts);
  return static_cast<std::size_t>(std::ranges::count(verdicts, Verdict::distinct));
}

Growing decoded(std::span<const std::byte> header, std::span<const std::byte> payload = {}) {
  BytesDecoder from_header(header), from_payload(payload);
  return Growing::decode(from_header, from_payload);
}

std::vector<std::byte> header_of(const Growing& filter) {
  BytesEncoder to;
  filter.encode_header(to);
  return to.take();
}

Growing copy_of(const Growing& filter) {
  BytesEncoder payload;
  filter.encode_payload(payload);
  return decoded(header_of(filter), payload.written());
}

class GrowingList : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Slots, GrowingList, testing::Values(16u, 32u, 64u),
                         [](const auto& test) { return std::to_string(test.param); });

// Of digests that differ in the lowest bits of either half alone, which no slot of a table tells
// apart.
TEST_P(GrowingList, IsExact) {
  Growing filter = make(GetParam());
  SplitMix64 random(GetParam());
  std::set<std::pair<std::uint64_t, std::uint64_t>> truth;
  for (int i = 0; i < 20'000; ++i) {
    const Digest digest{random.next() % 18 << 59 | 5, random.next() % 20};
    const std::pair pair(digest.lo, digest.hi);
    if (random.next() % 4 == 0) {
      ASSERT_EQ(filter.forget(digest), truth.erase(pair) == 1);
    } else {
      ASSERT_EQ(filter.may_contain(digest), truth.contains(pair));
      ASSERT_EQ(filter.observe(digest) == Verdict::distinct, truth.insert(pair).second);
    }
    ASSERT_EQ(filter.stats().keys, truth.size());
    ASSERT_EQ(filter.stats().listed, truth.size());
  }
  EXPECT_TRUE(filter.listed());
  EXPECT_EQ(filter.stats().predicted_fpr, 0);
  EXPECT_GT(filter.stats().forgotten, 0u);
  EXPECT_GT(filter.stats().forget_misses, 0u);
}

// The key that is one too many moves them all. Each has a trace of its own: taken back one by one,
// none takes another with it, also where 16 bits cannot tell them apart.
TEST_P(GrowingList, BecomesATableThatHasForgottenNothing) {
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    const std::vector<Digest> digests = random_digests(seed, kMost);
    Growing filter = holding(GetParam(), digests);
    ASSERT_TRUE(filter.listed());
    ASSERT_EQ(filter.observe(digests[7]), Verdict::duplicate);
    ASSERT_TRUE(filter.listed());
    // At 16 bits it may be taken for one of them.
    const bool added = filter.observe(random_digests(seed + 1000, 1)[0]) == Verdict::distinct;
    ASSERT_FALSE(filter.listed());
    ASSERT_EQ(filter.stats().listed, 0u);
    ASSERT_EQ(filter.stats().keys, kMost + added);
    ASSERT_GT(filter.stats().predicted_fpr, 0);
    for (std::size_t gone = 0; gone < kMost; gone += 47) {
      ASSERT_EQ(missing(filter, std::span(digests).subspan(gone)), 0u) << seed << ' ' << gone;
      for (std::size_t i = gone; i < std::min(kMost, gone + 47); ++i)
        ASSERT_TRUE(filter.forget(digests[i]));
    }
    ASSERT_EQ(filter.stats().keys, std::uint64_t{added});
  }
}

TEST_P(GrowingList, BytesDependOnTheKeysAlone) {
  std::vector<Digest> digests = random_digests(5, 2 * kMost);
  for (std::size_t i = 3; i < digests.size(); i += 7) digests[i] = digests[i / 2];
  SplitMix64 random(1);
  for (const std::size_t count : {kMost / 2, kMost, 2 * kMost}) {
    const auto all = std::span(digests).first(count);
    std::vector<Verdict> right(count), verdicts(count);
    Growing whole = make(GetParam());
    ASSERT_EQ(whole.observe(all, right), count);
    for (int round = 0; round < 20; ++round) {
      Growing cut = make(GetParam());
      for (std::size_t at = 0; at < count;) {
        const std::size_t size = std::min<std::size_t>(count - at, 1 + random.next() % 90);
        ASSERT_EQ(cut.observe(all.subspan(at, size), std::span(verdicts).subspan(at, size)), size);
        at += size;
        if (random.next() % 5 == 0) cut = copy_of(cut);
      }
      ASSERT_EQ(verdicts, right);
      ASSERT_EQ(bytes_of(cut), bytes_of(whole)) << count;
    }
  }
}

TEST_P(GrowingList, ClearMakesItAListAgain) {
  TestMemory memory;
  Growing filter = holding(GetParam(), random_digests(1, 3 * kMost), memory);
  EXPECT_FALSE(filter.listed());
  filter.clear();
  EXPECT_TRUE(filter.listed());
  EXPECT_EQ(memory.taken(), 0u);
  EXPECT_EQ(bytes_of(filter), bytes_of(make(GetParam())));
}

TEST_P(GrowingList, MergedWithListsAndTables) {
  const std::vector<Digest> digests = random_digests(1, 3000), others = random_digests(2, 3000);
  for (const std::size_t mine : {std::size_t{0}, kMost / 2, kMost, std::size_t{3000}})
    for (const std::size_t theirs : {std::size_t{0}, kMost / 2, kMost, std::size_t{3000}})
      for (const std::size_t shared : {std::size_t{0}, theirs / 3}) {
        std::vector<Digest> second(others.begin(),
                                   others.begin() + static_cast<std::ptrdiff_t>(theirs));
        for (std::size_t i = 0; i < std::min(shared, mine); ++i) second[i] = digests[i];
        const auto first = std::span(digests).first(mine);
        Growing one = holding(GetParam(), first);
        const Growing two = holding(GetParam(), second);
        const auto before = bytes_of(two);
        one.merge(two);
        SCOPED_TRACE(std::to_string(mine) + " " + std::to_string(theirs));
        EXPECT_EQ(missing(one, first) + missing(one, second), 0u);
        EXPECT_EQ(bytes_of(two), before);
        const std::size_t both = mine + theirs - std::min(shared, mine);
        EXPECT_EQ(one.listed(), both <= kMost);
        if (one.listed() || (mine <= kMost && theirs <= kMost)) {
          EXPECT_EQ(one.stats().keys, both);
        }
        // The same in the other direction, if it is a list: keys alone decide.
        Growing other = holding(GetParam(), second);
        other.merge(holding(GetParam(), first));
        if (one.listed()) {
          EXPECT_EQ(bytes_of(other), bytes_of(one));
        }
      }
}

// Every allocation refused once, key by key: the key that was refused comes again, and the rest is
// as if nothing had happened.
TEST_P(GrowingList, EveryAllocationThatFailsLeavesItAsItWas) {
  const std::vector<Digest> digests = random_digests(3, 2 * kMost);
  const auto expected = bytes_of(holding(GetParam(), digests));
  // How many calls there were before each key, and at last: the key that is refused is known.
  std::vector<std::uint64_t> calls = {0};
  TestMemory enough(std::size_t{1} << 20);
  Growing rehearsed = make(GetParam(), enough);
  enough.fail_at(0);
  for (const Digest& digest : digests) {
    rehearsed.observe(digest);
    calls.push_back(enough.calls());
  }
  std::uint64_t refused = 0;
  for (std::uint64_t call = 1;; ++call) {
    TestMemory memory(std::size_t{1} << 20);
    Growing filter = make(GetParam(), memory);
    memory.fail_at(call);
    for (std::size_t i = 0; i < digests.size(); ++i) {
      const bool is_next = calls[i] < call && call <= calls[i + 1];
      const auto before = is_next && filter.listed() ? bytes_of(filter) : std::vector<std::byte>();
      try {
        filter.observe(digests[i]);
        continue;
      } catch (const NoMemory&) {
        ++refused;
      }
      ASSERT_TRUE(is_next) << call;
      if (!before.empty()) {
        ASSERT_EQ(bytes_of(filter), before) << call;
      }
      ASSERT_EQ(filter.bytes(), memory.taken()) << call;
      filter.observe(digests[i]);
    }
    ASSERT_EQ(bytes_of(filter), expected) << call;
    ASSERT_EQ(filter.bytes(), memory.taken()) << call;
    if (!memory.failed()) break;
  }
  EXPECT_GT(refused, 20u);
}

// Into a list and into a table, from either.
TEST_P(GrowingList, MergingMayFailAnywhere) {
  const std::vector<Digest> digests = random_digests(4, 2 * kMost), others = random_digests(5, 900);
  for (const std::size_t mine : {kMost / 3, kMost, 2 * kMost})
    for (const std::size_t theirs : {kMost / 3, kMost, std::size_t{900}}) {
      const Growing two = holding(GetParam(), std::span(others).first(theirs));
      for (std::uint64_t call = 1;; ++call) {
        TestMemory memory(std::size_t{1} << 20);
        Growing one = holding(GetParam(), std::span(digests).first(mine), memory);
        const auto before = bytes_of(one);
        memory.fail_at(call);
        try {
          one.merge(two);
        } catch (const NoMemory&) {
          ASSERT_EQ(bytes_of(one), before) << mine << ' ' << theirs << ' ' << call;
        }
        ASSERT_EQ(one.bytes(), memory.taken()) << mine << ' ' << theirs << ' ' << call;
        if (!memory.failed()) break;
      }
    }
}

// In a host, of everything that its allocator gave.
TEST(GrowingSize, EmptyAndWithTenKeys) {
  HostMemory memory(malloc_calls());
  {
    AnyFilter filter = make_filter("growing", {}, memory);
    EXPECT_EQ(memory.taken(), filter.bytes());
    EXPECT_LE(memory.taken(), 128u) << "empty";
    EXPECT_EQ(filter.insert(random_digests(1, 10)), 10u);
    EXPECT_EQ(memory.taken(), filter.bytes());
    EXPECT_LE(memory.taken(), 384u) << "ten keys";
    BytesEncoder to;
    write_snapshot(Hasher(HashKind::xxh3, Secret::from_seed(1)), filter, {}, to);
    EXPECT_LE(to.written().size(), 256u);
    filter.clear();
    EXPECT_LE(memory.taken(), 128u) << "cleared";
  }
  EXPECT_EQ(memory.taken(), 0u);
}

// The table is made where it takes less than a longer list would, and not before.
TEST_P(GrowingList, BecomesATableWhenThatIsSmaller) {
  HostMemory memory(malloc_calls());
  Growing filter = holding(GetParam(), random_digests(1, kMost), memory);
  const std::uint64_t list = memory.taken();
  EXPECT_LE(list, ShortList::bytes_for(kMost) + 64);
  std::uint64_t seed = 2;
  while (filter.listed()) filter.insert(random_digests(seed++, 1)[0]);
  EXPECT_GT(memory.taken(), list);
  EXPECT_LT(memory.taken(), ShortList::bytes_for(kMost + 1));
}

// A budget that has room for the table is enough: list and table are never both in it.
TEST_P(GrowingList, BecomesATableInABudgetForTheTable) {
  const std::vector<Digest> digests = random_digests(1, kMost + 1);
  // malloc gives 16 bytes more now and then, depending on what was freed before: count what was asked for.
  HostMemory::Calls calls = malloc_calls();
  calls.usable = nullptr;
  HostMemory unlimited(calls);
  const Growing large = holding(GetParam(), digests, unlimited);
  ASSERT_FALSE(large.listed());
  HostMemory tight(calls, unlimited.taken());
  const Growing filter = holding(GetParam(), digests, tight);
  EXPECT_FALSE(filter.listed());
  EXPECT_EQ(missing(filter, digests), 0u);
  EXPECT_EQ(tight.taken(), unlimited.taken());
  // With less it stays a list, and has lost nothing.
  HostMemory none(calls, unlimited.taken() - 1);
  Growing listed = holding(GetParam(), std::span(digests).first(kMost), none);
  EXPECT_THROW(listed.insert(digests[kMost]), NoMemory);
  EXPECT_TRUE(listed.listed());
  EXPECT_EQ(missing(listed, std::span(digests).first(kMost)), 0u);
  EXPECT_GT(none.taken(), 0u) << "the keys are not beside the resource for good";
}

TEST(GrowingSize, AMillionExistAtOnce) {
  HostMemory memory(malloc_calls());
  const std::size_t most = count_of(100'000, 1'000'000, 1'000'000);
  std::vector<AnyFilter> filters;
  filters.reserve(most);
  for (std::size_t i = 0; i < most; ++i) filters.push_back(AnyFilter(make(32, memory)));
  for (std::size_t i = 0; i < most; i += 1000)
    EXPECT_EQ(filters[i].observe(Digest{i, i}), Verdict::distinct);
  EXPECT_LE(memory.taken(), 128 * most);
}

TEST(HostileGrowingList, IsRefused) {
  const std::vector<Digest> digests = random_digests(1, kMost);
  const std::vector<std::byte> sound = header_of(holding(32, digests));
  EXPECT_EQ(decoded(sound).stats().listed, kMost);
  // Parameters (11 bytes), the form, the count (2 bytes), then 17 bytes per key.
  constexpr std::size_t kCountAt = 11, kKeysAt = 13;
  ASSERT_EQ(sound.size(), kKeysAt + 17 * kMost);
  const auto refused = [](const std::vector<std::byte>& header) {
    EXPECT_THROW(decoded(header), CorruptSnapshot);
  };
  const std::byte payload[64] = {};
  EXPECT_THROW(decoded(sound, payload), CorruptSnapshot);
  std::vector<std::byte> header = sound;
  ++reinterpret_cast<unsigned char&>(header[kCountAt]);
  refused(header);
  header.resize(header.size() + 17, std::byte{0xFF});
  refused(header);
  header = sound;
  header.resize(header.size() - 1);
  refused(header);
  header = sound;
  std::swap_ranges(header.begin() + kKeysAt, header.begin() + kKeysAt + 16,
                   header.begin() + kKeysAt + 17);
  refused(header);
  header = sound;
  header[kKeysAt + 16] = std::byte{1};
  refused(header);
}

// Also where the smaller block is refused at first.
TEST_P(GrowingList, ReturnsTheMemoryOfForgottenKeys) {
  TestMemory memory;
  const auto digests = random_digests(7, kMost);
  Growing filter = holding(GetParam(), digests, memory);
  const std::uint64_t full = memory.taken();
  memory.fail_at(1);
  for (std::size_t i = 1; i < digests.size(); ++i) EXPECT_TRUE(filter.forget(digests[i]));
  EXPECT_TRUE(memory.failed());
  EXPECT_LE(memory.taken(), full / 20);
  EXPECT_EQ(filter.bytes(), memory.taken());
  EXPECT_TRUE(filter.may_contain(digests[0]));
  EXPECT_EQ(header_of(filter), header_of(holding(GetParam(), std::span(digests).first(1))));
  EXPECT_TRUE(filter.forget(digests[0]));
  EXPECT_EQ(filter.insert(digests), digests.size());
  EXPECT_EQ(missing(filter, digests), 0u);
}

// With exactly the keys that it was planned for, in the default resource and in those of a host. A half of
// a table is often a power of two, and with what aligns it just above one.
TEST(GrowingForecast, IsNeverExceeded) {
  HostMemory::Calls silent = malloc_calls();
  silent.usable = nullptr;
  HostMemory host(malloc_calls()), silent_host(silent);
  const std::vector<Digest> digests = random_digests(12, 200'000);
  for (const double fpr : {1e-2, 1e-6, 1e-9})
    for (double each = 600; each < 200'000; each *= 1.17) {
      const auto keys = static_cast<std::uint64_t>(each);
      const Growing::Params params = Growing::Params::from({.keys = keys, .fpr = fpr}, {});
      const Forecast forecast = params.forecast();
      for (MemoryResource* const memory : {&default_memory(), static_cast<MemoryResource*>(&host),
                                           static_cast<MemoryResource*>(&silent_host)}) {
        Growing filter = Growing::make(params, *memory);
        filter.insert(std::span(digests).first(keys));
        const std::uint64_t most = bytes_in(forecast, memory->costs());
        EXPECT_LE(filter.bytes(), most) << keys << " " << fpr << " " << memory->costs().rounds;
        // What a host rounds up to is at most a quarter more, and some per block.
        EXPECT_GE(static_cast<double>(filter.bytes()),
                  memory == &default_memory() ? 0.99 * static_cast<double>(most)
                                              : 0.7 * (static_cast<double>(most) - 4096))
            << keys << " " << fpr << " " << memory->costs().rounds;
      }
    }
}

}  // namespace
}  // namespace sluice
