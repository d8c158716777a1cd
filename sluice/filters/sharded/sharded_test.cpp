#include "sluice/filters/sharded/sharded.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/bloom/blocked_bloom.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/cohort/cohort.hpp"
#include "sluice/filters/sharded/shard_crew.hpp"
#include "tests/support/filter_bytes.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;

std::vector<Digest> stream(std::uint64_t seed, std::size_t records) {
  SplitMix64 random(seed);
  std::vector<Digest> digests;
  for (std::size_t i = 0; i < records; ++i)
    digests.push_back(i > 0 && random.next() % 3 == 0 ? digests[random.next() % i]
                                                      : Digest{random.next(), random.next()});
  return digests;
}

std::string error_of(const char* filter, const Wish& wish = {.keys = 1000}) {
  try {
    make_filter(filter, wish);
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "no error";
}

// Batches of all sizes, so that they go the way of few, of many, and of more than fit at once.
std::vector<Verdict> observe(AnyFilter& filter, std::span<const Digest> digests) {
  constexpr std::size_t kSizes[] = {1,   ShardCrew::kFewest - 1, ShardCrew::kFewest,
                                    300, ShardCrew::kTogether,   2 * ShardCrew::kTogether + 77,
                                    0,   ShardCrew::kAlone + 1,  5000};
  std::vector<Verdict> verdicts(digests.size());
  for (std::size_t at = 0, i = 0; at < digests.size(); ++i) {
    const std::size_t count = std::min(kSizes[i % std::size(kSizes)], digests.size() - at);
    filter.observe(digests.subspan(at, count), std::span(verdicts).subspan(at, count));
    at += count;
  }
  return verdicts;
}

TEST(Sharded, JudgesAsOneByOne) {
  const std::vector<Digest> digests = stream(1, 60'000);
  AnyFilter truth = make_filter("exact", {});
  const std::vector<Verdict> right = observe(truth, digests);
  for (const char* shards : {"1", "2", "3", "64"}) {
    AnyFilter sharded = make_filter(std::string("sharded,of=exact,shards=") + shards, {});
    EXPECT_EQ(observe(sharded, digests), right) << shards;
    std::vector<Verdict> asked(digests.size());
    sharded.may_contain(digests, asked);
    EXPECT_EQ(std::ranges::count(asked, Verdict::distinct), 0);
    const std::vector<Digest> others = stream(2, 5000);
    asked.resize(others.size());
    sharded.may_contain(others, asked);
    EXPECT_EQ(std::ranges::count(asked, Verdict::duplicate), 0);
    EXPECT_EQ(sharded.stats().keys, truth.stats().keys);
  }
}

// Each shard is what a filter of its own would be, given the shard's keys in order.
TEST(Sharded, EachShardHoldsItsKeys) {
  const std::vector<Digest> digests = stream(3, 30'000);
  AnyFilter made = make_filter("sharded,shards=3,of=bloom,keys=20k,fpr=0.01", {});
  observe(made, digests);
  const Sharded& sharded = *made.as<Sharded>();
  for (unsigned shard = 0; shard < 3; ++shard) {
    AnyFilter alone = filter_named("bloom").make({}, sharded.params().each, default_memory());
    for (const Digest& digest : digests)
      if (shard_of(digest, 3) == shard) alone.insert(std::span(&digest, 1));
    EXPECT_EQ(bytes_of(alone), bytes_of(sharded.shard(shard)));
  }
}

TEST(Sharded, AMovedFilterWorks) {
  const std::vector<Digest> digests = stream(4, 40'000);
  AnyFilter other = make_filter("sharded,of=exact", {});
  Sharded first = Sharded::make(other.as<Sharded>()->params());
  std::vector<Verdict> verdicts(20'000);
  first.observe(std::span(digests).first(20'000), verdicts);
  Sharded second = std::move(first);
  first = Sharded::make(second.params());  // a moved-from filter can be assigned to
  second.observe(std::span(digests).subspan(20'000), verdicts);
  first.observe(std::span(digests).first(20'000), verdicts);
  const auto distinct = std::ranges::count(verdicts, Verdict::distinct);
  EXPECT_EQ(first.stats().keys, static_cast<std::uint64_t>(distinct));
  EXPECT_EQ(observe(other, digests).size(), digests.size());
  EXPECT_EQ(second.stats().keys, other.stats().keys);
}

TEST(Sharded, SeveralMayAskAtATime) {
  AnyFilter filter = make_filter("sharded,shards=3,of=cohort,slot=32", {.keys = 50'000});
  const std::vector<Digest> digests = stream(5, 40'000);
  filter.insert(digests);
  std::vector<std::size_t> found(3);
  {
    std::vector<std::thread> callers;
    for (std::size_t caller = 0; caller < found.size(); ++caller)
      callers.emplace_back([&, caller] {
        std::vector<Verdict> verdicts(digests.size());
        for (int turn = 0; turn < 5; ++turn) {
          filter.may_contain(digests, verdicts);
          found[caller] +=
              static_cast<std::size_t>(std::ranges::count(verdicts, Verdict::duplicate));
        }
      });
    for (std::thread& caller : callers) caller.join();
  }
  EXPECT_EQ(found, std::vector<std::size_t>(3, 5 * digests.size()));
}

// Shards run ahead of each other: what they wrote behind the first that had no room is taken back.
TEST(Sharded, AShardWithoutRoomEndsTheBatchThere) {
  AnyFilter filter = make_filter("sharded,of=cohort", {.keys = 3000});
  const std::vector<Digest> digests = stream(6, 20'000);
  std::vector<Verdict> verdicts(digests.size());
  const std::size_t judged = filter.observe(digests, verdicts);
  EXPECT_GT(judged, 3000u);
  EXPECT_LT(judged, digests.size());
  EXPECT_EQ(filter.stats().forgotten, 0u);
  std::set<std::uint64_t> distinct;
  for (std::size_t i = 0; i < judged; ++i) distinct.insert(digests[i].lo);
  EXPECT_NEAR(static_cast<double>(filter.stats().keys), static_cast<double>(distinct.size()), 2);
  EXPECT_THROW(filter.observe(digests[judged]), BadParameters);
  filter.clear();
  EXPECT_EQ(filter.insert(digests), judged);
  filter.clear();
  const std::span few = std::span(digests).first(2000);
  filter.observe(few, std::span(verdicts).first(few.size()));
  filter.may_contain(few, std::span(verdicts).first(few.size()));
  EXPECT_EQ(std::ranges::count(std::span(verdicts).first(few.size()), Verdict::distinct), 0);
}

TEST(Sharded, IsPlannedForTheKeysOfAll) {
  const AnyFilter bloom = make_filter("sharded,shards=4,fpr=0.01", {.keys = 100'000});
  EXPECT_EQ(bloom.stats().capacity, 100'000u);
  EXPECT_EQ(bloom.stats().target_fpr, 0.01);
  const Sharded& sharded = *bloom.as<Sharded>();
  EXPECT_EQ(sharded.shard(3).stats().capacity, Sharded::share_of(100'000, 4));
  const AnyFilter given = make_filter("sharded,shards=4,keys=100k,fpr=0.01", {.keys = 5});
  EXPECT_EQ(given.settings(), bloom.settings());
  const AnyFilter sized = make_filter("sharded,shards=2,bytes=1MiB,fpr=0.01", {});
  EXPECT_EQ(sized.as<Sharded>()->shard(0).as<BlockedBloom>()->bytes(), 512u << 10);
  // A fortieth of what a million bits hold is left to chance.
  const AnyFilter plain = make_filter("bloom,bytes=1MiB,fpr=0.01", {});
  EXPECT_GT(sized.stats().capacity, plain.stats().capacity * 39 / 40);
  EXPECT_LT(sized.stats().capacity, plain.stats().capacity);
}

TEST(Sharded, SharesAreEnoughAndNoMoreThanAll) {
  EXPECT_EQ(Sharded::share_of(0, 5), 0u);
  EXPECT_EQ(Sharded::share_of(1, 5), 1u);
  EXPECT_EQ(Sharded::share_of(1000, 1), 1000u);
  EXPECT_EQ(Sharded::share_of(1'000'000, 2), 500'000u + 6 * 500);
  EXPECT_EQ(Sharded::share_of(1'000'000, 2, 4), 500'000u + 2 * 6 * 500);
  std::uint64_t before = 0;
  for (std::uint64_t keys = 0; keys < 5000; ++keys) {
    const std::uint64_t share = Sharded::share_of(keys, 7);
    EXPECT_GE(share, before);
    EXPECT_GE(share * 7, keys);
    before = share;
  }
}

// The settings of a made filter make the same one again: also where the shards chose, and where
// they have a parameter of the same name.
TEST(Sharded, ItsSettingsMakeItAgain) {
  for (const char* filter :
       {"sharded", "sharded,bytes=1000,fpr=0.1", "sharded,shards=64,of=exact",
        "sharded,shards=5,of=growing,slot=32", "sharded,of=dynamic,keys=7,fpr=0.1",
        "sharded,of=reservoir,bytes=10000,fpr=0.1", "sharded,of=stable,bytes=10000,fpr=0.1",
        "sharded,shards=3,of=apbf,keys=5000,fpr=0.01,of.parts=4", "sharded,of=none",
        "sharded,shards=3,of=timer,keys=5000,layout=horizontal,of.slices=7,fpr=0.01",
        "sharded,shards=3,of=cohort,bytes=100000", "sharded,of=counting,bytes=4096,probes=1"}) {
    const AnyFilter made = make_filter(filter, {});
    const std::string text = made.settings().text();
    EXPECT_EQ(make_filter("sharded," + text, {}).settings().text(), text) << filter;
  }
  EXPECT_EQ(make_filter("sharded,of=none", {}).settings().text(), "shards=2,of=none");
}

TEST(Sharded, ErrorsSayWhatWouldBeRight) {
  EXPECT_EQ(error_of("sharded,shards=65"),
            "parameter 'shards' of filter 'sharded' is '65': it takes 1 to 64");
  EXPECT_EQ(error_of("sharded,of=sharded")
                .find("parameter 'of' of filter 'sharded' is 'sharded': it "
                      "takes bloom or growing or "),
            0u);
  EXPECT_EQ(error_of("sharded,of=bloom,slot=24"),
            "filter 'bloom' has no parameter 'slot': it has layout, bytes, probes, keys, fpr");
  EXPECT_EQ(error_of("sharded,of=apbf,shards=2,shards=3"),
            "filter parameter 'shards' is given twice: give it once");
  const AnyFilter window = make_filter("sharded,of=cohort", {.keys = 1000});
  EXPECT_THROW(Sharded::make(window.as<ShardedWindow>()->params()), BadParameters);
  AnyFilter four = make_filter("sharded,shards=4", {.keys = 1000});
  EXPECT_THROW(four.merge(make_filter("sharded,shards=2", {.keys = 1000})), BadParameters);
}

// The fields of a snapshot, to be spoilt one by one.
struct Fields {
  std::uint32_t shards = 2;
  FilterKind kind = FilterKind::blocked_bloom;
  std::uint16_t version = 1;
  std::uint64_t keys = 0;
  std::vector<std::vector<std::byte>> fields, payloads;
};

void load(const Fields& fields) {
  BytesEncoder header, payload;
  header.u32(fields.shards);
  header.u16(static_cast<std::uint16_t>(fields.kind));
  header.u16(fields.version);
  header.u64(fields.keys);
  for (std::size_t i = 0; i < fields.fields.size(); ++i) {
    payload.u64(fields.payloads[i].size());
    payload.u32(static_cast<std::uint32_t>(fields.fields[i].size()));
    payload.bytes(fields.fields[i]);
    payload.bytes(fields.payloads[i]);
  }
  BytesDecoder from_header(header.written()), from_payload(payload.written());
  Sharded::decode(from_header, from_payload);
}

// A window that grows repeats its stages' headers in its own, which may not be long.
TEST(Sharded, ItsHeaderIsShortWhateverItsShards) {
  for (const char* filter : {"sharded,shards=64,of=apbf", "sharded,shards=64,of=bloom"}) {
    BytesEncoder header;
    make_filter(filter, {.keys = 1000, .fpr = 0.01}).encode_header(header);
    EXPECT_LE(header.written().size(), 16u) << filter;
  }
}

TEST(Sharded, BadSnapshotsAreRefused) {
  const auto part = [](const char* filter) {
    const AnyFilter made = make_filter(filter, {});
    BytesEncoder fields, payload;
    made.encode_header(fields);
    made.encode_payload(payload);
    return std::pair(fields.take(), payload.take());
  };
  const std::uint64_t keys = 100;
  const std::string share = std::to_string(Sharded::share_of(keys, 2));
  const auto [fields, payload] =
      part(("bloom,layout=blocked,bytes=256,probes=8,keys=" + share).c_str());
  const auto [other, other_payload] =
      part(("bloom,layout=blocked,bytes=320,probes=8,keys=" + share).c_str());
  Fields good;
  good.keys = keys;
  good.fields = {fields, fields};
  good.payloads = {payload, payload};
  load(good);
  const auto refused = [&](auto spoil) {
    Fields bad = good;
    spoil(bad);
    EXPECT_THROW(load(bad), CorruptSnapshot);
  };
  refused([](Fields& bad) { bad.shards = 0; });
  refused([](Fields& bad) { bad.shards = 65; });
  refused([](Fields& bad) { bad.shards = 3; });  // one is missing
  refused([](Fields& bad) { bad.shards = 1; });  // one is left over
  refused([](Fields& bad) { bad.kind = FilterKind::sharded; });
  refused([](Fields& bad) { bad.kind = FilterKind::sharded_window; });
  refused([](Fields& bad) { bad.kind = FilterKind::window; });
  refused([](Fields& bad) { bad.kind = FilterKind::bloom; });
  refused([](Fields& bad) { bad.version = 2; });
  refused([](Fields& bad) { bad.keys = 1000; });  // the shards are not made for their share
  refused([](Fields& bad) { bad.keys = ~std::uint64_t{0}; });
  refused([](Fields& bad) { bad.payloads[1].pop_back(); });
  refused([](Fields& bad) { bad.payloads[0].push_back(std::byte{0}); });
  refused([](Fields& bad) { bad.fields[0].push_back(std::byte{0}); });
  refused([](Fields& bad) { bad.fields[1].pop_back(); });
  refused([&, &one = other, &two = other_payload](Fields& bad) {
    bad.fields[1] = one, bad.payloads[1] = two;
  });
}

}  // namespace
}  // namespace sluice
