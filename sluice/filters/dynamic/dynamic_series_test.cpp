// What a dynamic filter does with whole filters: forget and join, union, intersection, pieces.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "sluice/base/error.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/dynamic_test_util.hpp"

namespace sluice {
namespace {

using namespace dynamic_test;
using testing_support::random_digests;

// --- forgetting ---------------------------------------------------------------------------------

TEST(Dynamic, ForgetsWhatOneFilterClaimsAndKeepsWhatSeveralDo) {
  Dynamic filter = make(kPaperCounted);
  const std::vector<Digest> written = write(filter, 7, 10 * 133);
  std::uint64_t expected_kept = 0;
  // Which keys are claimed twice changes as others are removed: asked again before each.
  for (const Digest& digest : written) {
    int claimants = 0;
    for (const DynamicPiece& piece : pieces_of(filter)) claimants += piece.may_contain(digest);
    ASSERT_GE(claimants, 1);
    ASSERT_EQ(filter.forget(digest), claimants == 1);
    expected_kept += claimants > 1;
  }
  EXPECT_GT(expected_kept, 5u);
  const DynamicStats series = filter.series();
  EXPECT_EQ(series.kept, expected_kept);
  EXPECT_EQ(filter.stats().keys, expected_kept) << "the kept ones are all that is left";
  EXPECT_EQ(filter.stats().forgotten, written.size() - expected_kept);
  EXPECT_EQ(filter.stats().forget_misses, 0u);
  EXPECT_EQ(series.filters, 1u);
  EXPECT_EQ(series.real_capacity, 133 - expected_kept);
  EXPECT_EQ(filter.stats().capacity, series.real_capacity);
  EXPECT_FALSE(filter.forget({1, 2}));
  EXPECT_EQ(filter.stats().forget_misses, 1u);
}

std::vector<std::byte> table_of(const DynamicPiece& piece) {
  BytesEncoder encoder;
  piece.table.encode(encoder);
  return encoder.take();
}

TEST(Dynamic, FiltersThatFitTogetherBecomeOneInTheLowerPlace) {
  Dynamic filter = make("bytes=4096,probes=7,keys=10,fpr=1e-6,forget=yes");
  const std::vector<Digest> written = write(filter, 8, 40);
  const auto forget = [&](std::size_t from, std::size_t count) {
    for (std::size_t i = from; i < from + count; ++i) ASSERT_TRUE(filter.forget(written[i]));
  };
  forget(10, 5);  // of the second
  EXPECT_EQ(keys_of(filter), (std::vector<std::uint64_t>{10, 5, 10, 10}));
  forget(20, 7);  // of the third
  EXPECT_EQ(keys_of(filter), (std::vector<std::uint64_t>{10, 5, 3, 10}))
      << "8 keys would soon be 10";
  const std::vector<DynamicPiece> before = pieces_of(filter);
  forget(27, 1);
  // Seven will not. The last one took the place of the third.
  EXPECT_EQ(keys_of(filter), (std::vector<std::uint64_t>{10, 7, 10}));
  const std::vector<DynamicPiece> after = pieces_of(filter);
  EXPECT_EQ(table_of(after[0]), table_of(before[0]));
  EXPECT_EQ(table_of(after[2]), table_of(before[3]));
  for (std::size_t i = 0; i < written.size(); ++i)
    EXPECT_EQ(filter.may_contain(written[i]), i < 10 || (i >= 15 && i < 20) || i >= 28) << i;
  // New keys go where there is room first.
  forget(0, 1);
  write(filter, 9, 1);
  EXPECT_EQ(keys_of(filter), (std::vector<std::uint64_t>{10, 7, 10}));
}

TEST(Dynamic, KeptKeysStayCountedInASnapshot) {
  Dynamic filter = make(kPaperCounted);
  for (const Digest& digest : write(filter, 7, 10 * 133)) filter.forget(digest);
  ASSERT_GT(filter.series().kept, 0u);
  const Dynamic copy = decoded(encoded(filter));
  EXPECT_EQ(copy.series().kept, filter.series().kept);
  EXPECT_EQ(copy.series().real_capacity, filter.series().real_capacity);
  filter.clear();
  EXPECT_EQ(filter.series().kept, 0u);
}

// --- sets of sets -------------------------------------------------------------------------------

class DynamicSets : public testing::TestWithParam<const char*> {};

TEST_P(DynamicSets, AUnionSaysYesWhereEitherDid) {
  Dynamic one = make(GetParam()), two = make(GetParam());
  const std::vector<Digest> first = write(one, 10, 3 * 133 + 50);
  const std::vector<Digest> second = write(two, 11, 2 * 133 + 40);
  Dynamic both = decoded(encoded(one));
  both.merge(two);
  EXPECT_EQ(keys_of(both), (std::vector<std::uint64_t>{133, 133, 133, 90, 133, 133}));
  EXPECT_EQ(both.stats().keys, 3 * 133 + 50 + 2 * 133 + 40u);
  for (const Digest& digest : first) ASSERT_TRUE(both.may_contain(digest));
  for (const Digest& digest : second) ASSERT_TRUE(both.may_contain(digest));
  for (const Digest& digest : random_digests(12, 3000))
    if (one.may_contain(digest) || two.may_contain(digest)) {
      ASSERT_TRUE(both.may_contain(digest));
    }
  const Bytes before = encoded(both);
  both.merge(both);
  EXPECT_EQ(encoded(both).payload, before.payload);
}

TEST_P(DynamicSets, OthersAreRefusedAndNothingChanges) {
  Dynamic one = make(GetParam());
  write(one, 10, 140);
  const Bytes before = encoded(one);
  for (const char* other : {"bytes=640,probes=7,keys=134,fpr=0.0098,forget=yes",
                            "bytes=168,probes=7,keys=133,fpr=0.0098", "tighten=0.5"}) {
    EXPECT_THROW(one.merge(make(other)), BadParameters) << other;
    EXPECT_THROW(Dynamic::intersect(one, make(other)), BadParameters) << other;
  }
  EXPECT_EQ(encoded(one).payload, before.payload);
}

INSTANTIATE_TEST_SUITE_P(Layouts, DynamicSets,
                         testing::Values("bytes=160,probes=7,keys=133,fpr=0.0098,layout=matrix",
                                         "bytes=160,probes=7,keys=133,fpr=0.0098,layout=plain",
                                         kPaperCounted));

TEST(Dynamic, LayoutsMergeWithEachOther) {
  Dynamic matrix = make(kPaper), plain = make(std::string(kPaper) + ",layout=plain");
  const std::vector<Digest> first = write(matrix, 13, 300), second = write(plain, 14, 300);
  Dynamic other = decoded(encoded(plain));
  other.merge(matrix);
  matrix.merge(plain);
  for (const Digest& digest : first) ASSERT_TRUE(matrix.may_contain(digest));
  for (const Digest& digest : second) ASSERT_TRUE(matrix.may_contain(digest));
  for (const Digest& digest : random_digests(15, 3000))
    ASSERT_EQ(matrix.may_contain(digest), other.may_contain(digest));
}

TEST(Dynamic, AnIntersectionSaysYesExactlyWhereBothDo) {
  for (const char* layout : {",layout=plain", ",layout=matrix"}) {
    Dynamic one = make(std::string(kPaper) + layout), two = make(kPaper);
    write(one, 16, 500);
    const std::vector<Digest> shared = write(two, 17, 90);
    for (const Digest& digest : shared) one.insert(digest);
    write(two, 18, 300);
    const Dynamic both = Dynamic::intersect(one, two);
    EXPECT_EQ(both.series().filters, 15u) << "five filters meet three";
    for (const Digest& digest : shared) ASSERT_TRUE(both.may_contain(digest));
    for (const Digest& digest : random_digests(19, 5000))
      ASSERT_EQ(both.may_contain(digest), one.may_contain(digest) && two.may_contain(digest));
    const Dynamic none = Dynamic::intersect(one, make(kPaper));
    EXPECT_EQ(none.series().filters, 1u) << "what is empty is dropped";
    EXPECT_EQ(none.stats().keys, 0u);
  }
  EXPECT_THROW(Dynamic::intersect(make(kPaperCounted), make(kPaperCounted)), BadParameters);
}

// --- pieces -------------------------------------------------------------------------------------

TEST(Dynamic, ASnapshotIsReadPieceByPiece) {
  for (const char* settings : {kPaper, kPaperCounted, "keys=100,fpr=0.01,tighten=0.5"}) {
    Dynamic filter = make(settings);
    write(filter, 22, 700);
    const Bytes bytes = encoded(filter);
    const std::vector<Digest> asked = random_digests(23, 2000);
    std::vector<bool> found(asked.size());
    BytesDecoder header(bytes.header), payload(bytes.payload);
    DynamicPieces pieces(header, payload);
    EXPECT_EQ(pieces.left(), filter.series().filters);
    std::uint64_t keys = 0;
    while (pieces.left() > 0) {
      const std::uint64_t before = payload.remaining();
      const DynamicPiece piece = pieces.next();
      EXPECT_EQ(before - payload.remaining(), kDynamicPieceFields + piece.shape.bytes());
      keys += piece.keys;
      for (std::size_t i = 0; i < asked.size(); ++i)
        if (piece.may_contain(asked[i])) found[i] = true;
    }
    EXPECT_EQ(payload.remaining(), 0u);
    EXPECT_EQ(keys, filter.stats().keys);
    for (std::size_t i = 0; i < asked.size(); ++i)
      ASSERT_EQ(found[i], filter.may_contain(asked[i]));
  }
}

// Every byte of the fields, changed: refused, or a filter that can be used.
TEST(Dynamic, FieldsThatNoFilterWroteAreRefused) {
  for (const char* settings : {kPaper, kPaperCounted, "keys=100,fpr=0.01,tighten=0.5"}) {
    Dynamic filter = make(settings);
    write(filter, 24, 290);
    const Bytes good = encoded(filter);
    EXPECT_EQ(encoded(decoded(good)).payload, good.payload);
    int refused = 0;
    for (std::size_t at = 0; at < good.header.size() + kDynamicPieceFields; ++at) {
      Bytes bad = good;
      std::byte& byte =
          at < good.header.size() ? bad.header[at] : bad.payload[at - good.header.size()];
      byte ^= std::byte{0x81};
      try {
        Dynamic loaded = decoded(bad);
        write(loaded, 25, 1);
        loaded.stats();
      } catch (const CorruptSnapshot&) {
        ++refused;
      } catch (const BadParameters&) {  // no memory for another filter of that size
      }
    }
    EXPECT_GT(refused, 40);
    Bytes bad = good;
    bad.payload.pop_back();
    EXPECT_THROW(decoded(bad), CorruptSnapshot);
    bad = good;
    bad.payload.push_back(std::byte{});
    EXPECT_THROW(decoded(bad), CorruptSnapshot);
  }
}

// --- any sequence of verbs ----------------------------------------------------------------------

// A digest of a small universe: keys come again, and collide.
Digest key(unsigned number) {
  SplitMix64 random(number);
  const std::uint64_t lo = random.next();
  return {lo, random.next()};
}

// Filters so small that most keys are claimed by strangers, and counters stick.
constexpr const char* kTiny[] = {"bytes=64,probes=3,keys=12,fpr=0.1,forget=yes",
                                 "bytes=32,probes=2,keys=40,fpr=0.1,forget=yes",
                                 "bytes=16,probes=3,keys=12,fpr=0.1,layout=matrix",
                                 "bytes=16,probes=3,keys=12,fpr=0.1,layout=plain"};

// A filter beside the set of keys that were written to it and not taken back.
class Watched {
 public:
  explicit Watched(const char* settings) : filter_(make(settings)) {}

  void observe(unsigned number) {
    if (filter_.observe(key(number)) == Verdict::distinct) held_.insert(number);
  }
  void insert(unsigned number) {
    if (!filter_.may_contain(key(number))) held_.insert(number);
    filter_.insert(key(number));
  }
  // Only what was written may be forgotten.
  void forget(unsigned number) {
    const auto held = held_.lower_bound(number);
    if (held != held_.end() && filter_.can_forget() && filter_.forget(key(*held)))
      held_.erase(held);
  }
  void merge(const Watched& other) {
    filter_.merge(other.filter_);
    held_.insert(other.held_.begin(), other.held_.end());
  }
  void reload() { filter_ = decoded(encoded(filter_)); }
  void check() const {
    for (const unsigned number : held_) RC_ASSERT(filter_.may_contain(key(number)));
    const std::vector<std::uint64_t> keys = keys_of(filter_);
    std::uint64_t sum = 0;
    for (const std::uint64_t each : keys) {
      RC_ASSERT(each <= filter_.params().capacity);
      sum += each;
    }
    RC_ASSERT(sum == filter_.stats().keys);
    if (!filter_.can_forget()) return;
    for (std::size_t i = 0; i < keys.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        RC_ASSERT(keys[i] + keys[j] > filter_.params().joined_up_to());
  }

 private:
  Dynamic filter_;
  std::set<unsigned> held_;
};

void run_verbs(const char* settings, const std::vector<std::pair<unsigned, unsigned>>& steps) {
  Watched one(settings), two(settings);
  for (const auto& [verb, number] : steps) {
    Watched& subject = verb % 2 == 0 ? one : two;
    if (verb < 6)
      subject.observe(number);
    else if (verb < 10)
      subject.insert(number);
    else if (verb < 18)
      subject.forget(number);
    else if (verb == 18)
      one.merge(two);
    else
      one.reload();
    one.check();
    two.check();
  }
}

RC_GTEST_PROP(Dynamic, NoKeyThatRemainsIsLostByAnySequenceOfVerbs, ()) {
  const char* settings = *rc::gen::elementOf(std::vector(std::begin(kTiny), std::end(kTiny)));
  const auto steps = *rc::gen::container<std::vector<std::pair<unsigned, unsigned>>>(
      rc::gen::pair(rc::gen::inRange(0u, 20u), rc::gen::inRange(0u, 400u)));
  run_verbs(settings, steps);
}

// The same, longer than rapidcheck's sequences get: hundreds of filters come and go.
TEST(Dynamic, NoKeyThatRemainsIsLostInTheLongRun) {
  for (const char* settings : kTiny) {
    Watched filter(settings);
    SplitMix64 random(26);
    for (int step = 0; step < 4000; ++step) {
      const auto number = static_cast<unsigned>(random.next() % 3000);
      // Growing and shrinking by turns.
      const bool growing = step / 500 % 2 == 0;
      if (random.next() % 10 < (growing ? 8u : 2u))
        filter.observe(number);
      else
        filter.forget(number);
      if (step % 50 == 0) filter.check();
    }
    filter.check();
  }
}

}  // namespace
}  // namespace sluice
