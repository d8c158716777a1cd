#include "sluice/snapshot/delta.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/snapshot/delta_coding.hpp"
#include "sluice/snapshot/layout.hpp"
#include "sluice/snapshot/snapshot.hpp"
#include "tests/support/delta_repair.hpp"
#include "tests/support/snapshot_bytes.hpp"

namespace sluice {
namespace {

using Bytes = std::vector<std::byte>;

const Hasher kHasher(HashKind::xxh3, Secret::from_seed(1));
const Labels kLabels = {{"records", "lines"}};

Bytes snapshot_of(const AnyFilter& filter, const Hasher& hasher = kHasher,
                  const Labels& labels = kLabels) {
  return testing_support::snapshot_bytes(hasher, filter, labels);
}

Bytes delta_of(const Bytes& from, const Bytes& until) {
  BytesEncoder to;
  const BytesInMemory base(from, "old"), fresh(until, "new");
  const DeltaSizes sizes = write_delta(&base, fresh, to);
  EXPECT_EQ(sizes.delta_bytes, to.written().size());
  EXPECT_EQ(sizes.new_bytes, until.size());
  return to.take();
}

Bytes whole_of(const Bytes& snapshot) {
  BytesEncoder to;
  EXPECT_EQ(write_delta(nullptr, BytesInMemory(snapshot, "new"), to).old_bytes, 0u);
  return to.take();
}

Bytes applied(const Bytes* from, const Bytes& delta) {
  BytesEncoder to;
  const Bytes none;
  const BytesInMemory base(from == nullptr ? none : *from, "old");
  const DeltaSizes sizes =
      apply_delta(from == nullptr ? nullptr : &base, BytesInMemory(delta, "delta"), to);
  EXPECT_EQ(sizes.new_bytes, to.written().size());
  EXPECT_EQ(sizes.delta_bytes, delta.size());
  return to.take();
}

std::vector<Digest> keys(std::uint64_t from, std::uint64_t until) {
  std::vector<Digest> digests;
  for (std::uint64_t key = from; key < until; ++key)
    digests.push_back(kHasher.digest(std::to_string(key)));
  return digests;
}

AnyFilter filled(const std::string& filter, std::uint64_t count) {
  AnyFilter made = make_filter(filter, Wish{});
  made.insert(keys(0, count));
  return made;
}

// ---- chunks

Bytes coded(const Bytes& chunk) {
  DeltaChunkEncoder encoder;
  const auto bytes = encoder.encode(chunk);
  return {bytes.begin(), bytes.end()};
}

void expect_round_trip(const Bytes& chunk) {
  const Bytes bytes = coded(chunk);
  EXPECT_LE(bytes.size(), 1 + chunk.size());
  Bytes back(chunk.size(), std::byte{0xAA});
  DeltaChunkDecoder().decode(bytes, back);
  EXPECT_EQ(back, chunk);
}

Bytes random_bits(std::uint64_t seed, std::size_t bytes, double density) {
  SplitMix64 random(seed);
  Bytes chunk(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes; ++bit)
    if (random.next_unit() < density) chunk[bit / 8] |= static_cast<std::byte>(1u << (bit % 8));
  return chunk;
}

TEST(DeltaCoding, RoundTripOfAnyDensityAndSize) {
  for (const double density : {0.0, 1e-5, 0.001, 0.01, 0.1, 0.3, 0.5, 0.99, 1.0})
    for (const std::size_t size : {1, 7, 8, 9, 1000, 65536})
      expect_round_trip(random_bits(size, size, density));
  for (const std::size_t only : {std::size_t{0}, std::size_t{layout::kChunkBytes - 1}}) {
    Bytes chunk(layout::kChunkBytes);
    chunk[only] = std::byte{0x80};
    expect_round_trip(chunk);
    EXPECT_LT(coded(chunk).size(), 40u);
  }
  expect_round_trip(Bytes(layout::kChunkBytes, std::byte{0xFF}));
}

// Independent ones at density p cannot take fewer than H(p) bits each place.
TEST(DeltaCoding, SparseBitsTakeLittleMoreThanTheirEntropy) {
  for (const double p : {0.0005, 0.0035, 0.02}) {
    const std::size_t size = 1 << 18;
    const double entropy = -(p * std::log2(p) + (1 - p) * std::log2(1 - p));
    const double share = static_cast<double>(coded(random_bits(3, size, p)).size()) / size;
    EXPECT_LT(share, 1.1 * entropy) << p;
    EXPECT_GT(share, 0.9 * entropy) << p;
  }
}

TEST(DeltaCoding, WhatIsNoChunkIsRefused) {
  DeltaChunkDecoder decoder;
  Bytes chunk(1000);
  const auto refused = [&](const Bytes& bytes) {
    EXPECT_THROW(decoder.decode(bytes, chunk), CorruptSnapshot) << bytes.size();
  };
  refused({});
  refused({std::byte{0}, std::byte{0}});
  refused(Bytes(1000, std::byte{1}));
  refused({std::byte{4}});
  for (const double density : {0.002, 0.1}) {
    const Bytes good = coded(random_bits(5, 1000, density));
    ASSERT_GT(good[0], std::byte{1});
    for (std::size_t cut = 1; cut < good.size(); cut += 7)
      refused(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(cut)));
    Bytes longer = good;
    longer.push_back(std::byte{0});
    refused(longer);
  }
  // A frame that claims, and holds, more than there is room for.
  refused(coded(Bytes(1 << 20, std::byte{7})));
}

// ---- deltas

TEST(Delta, AWholeOneGivesTheSnapshotBack) {
  for (const char* filter : {"none", "exact", "bloom,keys=200k", "bloom,layout=classic,keys=1M"}) {
    for (const std::uint64_t count : {0, 3000}) {
      const Bytes snapshot = snapshot_of(filled(filter, count));
      EXPECT_EQ(applied(nullptr, whole_of(snapshot)), snapshot) << filter;
    }
  }
}

TEST(Delta, AnEmptyFilterTravelsAsNextToNothing) {
  const Bytes snapshot = snapshot_of(filled("bloom,keys=1M", 0));
  EXPECT_GT(snapshot.size(), 4u << 20);
  EXPECT_LT(whole_of(snapshot).size(), 1000u);
}

// Ten deltas of a filter that grows, shrinks and stays, applied in order.
TEST(Delta, AChainGivesTheSender) {
  for (const char* name : {"exact", "bloom,layout=classic,keys=200k", "cohort,keys=50k"}) {
    AnyFilter filter = make_filter(name, Wish{});
    SplitMix64 random(7);
    Bytes sent = snapshot_of(filter), received = applied(nullptr, whole_of(sent));
    std::uint64_t next = 0;
    for (int step = 0; step < 10; ++step) {
      if (step == 6) filter.clear();
      const std::uint64_t more = step == 4 ? 0 : random.next() % 4000;
      filter.insert(keys(next, next + more));
      if (filter.can_forget())
        for (const Digest& key : keys(next / 2, next / 2 + more / 3)) filter.forget(key);
      next += more;
      const Bytes now = snapshot_of(filter);
      const Bytes delta = delta_of(sent, now);
      received = applied(&received, delta);
      ASSERT_EQ(received, now) << name << " " << step;
      sent = now;
    }
  }
}

TEST(Delta, AGapAndARepeatAreToldApart) {
  AnyFilter filter = make_filter("bloom,keys=1000", Wish{});
  std::vector<Bytes> versions;
  for (std::uint64_t i = 0; i < 3; ++i) {
    filter.insert(keys(100 * i, 100 * i + 100));
    versions.push_back(snapshot_of(filter));
  }
  const Bytes first = delta_of(versions[0], versions[1]);
  const Bytes second = delta_of(versions[1], versions[2]);
  EXPECT_THROW(applied(&versions[0], second), DeltaGap);
  EXPECT_THROW(applied(&versions[1], first), DeltaRepeat);
  EXPECT_THROW(applied(&versions[2], first), DeltaGap);
  EXPECT_THROW(applied(nullptr, first), BadParameters);
  EXPECT_THROW(applied(&versions[0], whole_of(versions[1])), BadParameters);
  // Nothing changed: a delta all the same, and no repeat.
  EXPECT_EQ(applied(&versions[1], delta_of(versions[1], versions[1])), versions[1]);
  // A damaged base is no gap.
  Bytes damaged = versions[0];
  damaged[damaged.size() - 1] ^= std::byte{1};
  EXPECT_THROW(applied(&damaged, first), CorruptSnapshot);
}

TEST(Delta, OnlyBetweenVersionsOfOneFilter) {
  const AnyFilter filter = filled("bloom,keys=1000", 10);
  const Bytes snapshot = snapshot_of(filter);
  const auto refused = [&](const Bytes& other, const std::string& why) {
    try {
      delta_of(snapshot, other);
      FAIL() << why;
    } catch (const BadParameters& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  };
  refused(snapshot_of(filled("exact", 10)),
          "'old' is a filter 'bloom' and 'new' is a filter 'exact'");
  refused(snapshot_of(filter, Hasher(HashKind::xxh3, Secret::from_seed(2))), "`seed`");
  refused(snapshot_of(filter, Hasher(HashKind::highway, kHasher.secret())), "`untrusted_keys`");
  refused(snapshot_of(filter, kHasher, {{"records", "csv"}}), "records=csv");
}

// Every byte of a delta counts, and so does every byte of its base.
TEST(Delta, AChangedOrMissingByteIsNoticed) {
  AnyFilter filter = filled("bloom,keys=500", 200);
  const Bytes before = snapshot_of(filter);
  filter.insert(keys(200, 260));
  const Bytes delta = delta_of(before, snapshot_of(filter));
  for (std::size_t at = 0; at < delta.size(); at += at < 700 ? 1 : 11) {
    Bytes other = delta;
    other[at] ^= std::byte{0x10};
    EXPECT_THROW(applied(&before, other), Error) << at;
    other.resize(at);
    EXPECT_THROW(applied(&before, other), CorruptSnapshot) << at;
  }
  Bytes longer = delta;
  longer.push_back(std::byte{0});
  EXPECT_THROW(applied(&before, longer), CorruptSnapshot);
}

TEST(Delta, AFewBytesCannotPromiseAnEndlessSnapshot) {
  const Bytes snapshot = snapshot_of(filled("bloom,bytes=2MiB", 0));
  Bytes delta = whole_of(snapshot);
  testing_support::repair_delta(delta, 0);
  EXPECT_NO_THROW(applied(nullptr, delta));
  // Make the snapshot's header say that its payload is 128 times as large: four bytes, as before.
  BytesEncoder two_mib, more;
  two_mib.varint(2 << 20);
  more.varint(std::uint64_t{128} << 20);
  ASSERT_EQ(two_mib.written().size(), more.written().size());
  const auto number =
      std::search(delta.begin(), delta.end(), two_mib.written().begin(), two_mib.written().end());
  ASSERT_NE(number, delta.end());
  std::ranges::copy(more.written(), number);
  testing_support::repair_delta(delta, 0);
  EXPECT_THROW(applied(nullptr, delta), CorruptSnapshot);
}

// With checksums that match, what is wrong is found by what it says or leads to.
TEST(Delta, HostileBytesAreRefusedBehindRightChecksums) {
  AnyFilter filter = filled("bloom,layout=classic,bytes=4096,probes=3", 200);
  const Bytes before = snapshot_of(filter);
  const std::uint64_t identity = BytesDecoder(std::span(before).last(8)).u64();
  filter.insert(keys(200, 210));
  const Bytes sparse = delta_of(before, snapshot_of(filter));
  filter.insert(keys(210, 900));
  const Bytes dense = delta_of(before, snapshot_of(filter));
  SplitMix64 random(9);
  int tried = 0;
  for (int round = 0; round < 2000; ++round) {
    Bytes delta = round % 2 == 0 ? sparse : dense;
    const Bytes good = delta;
    // Half of them in the chunk: its coding and parameters, or anywhere in it.
    const std::size_t chunk = 26 + 8 + BytesDecoder(std::span(delta).subspan(22, 4)).u32();
    const std::size_t at = round % 4 < 2 ? random.next() % delta.size()
                                         : chunk + random.next() % (delta.size() - chunk - 16);
    delta[at] = static_cast<std::byte>(random.next());
    testing_support::repair_delta(delta, identity);
    if (delta == good) continue;
    ++tried;
    EXPECT_THROW(applied(&before, delta), Error) << at;
  }
  EXPECT_GT(tried, 1800);
}

// What a site sends that has one per cent more keys than at its last sending.
TEST(Delta, OnePerCentOfTheKeysIsAFewPerCentOfTheBytes) {
  struct Case {
    const char* filter;
    double most;
  };
  for (const Case& test :
       {Case{"bloom,layout=classic,keys=100k", 0.04}, Case{"bloom,layout=blocked,keys=100k", 0.04},
        Case{"bloom,layout=classic,keys=100k,fpr=0.01", 0.05}, Case{"exact,keys=100k", 0.03},
        Case{"cohort,keys=100k", 0.05}, Case{"growing,keys=100k", 0.05}, Case{"growing", 0.06},
        Case{"dynamic,keys=20k", 0.06}, Case{"dynamic,keys=20k,forget=yes", 0.06},
        Case{"counting,keys=100k", 0.05}}) {
    AnyFilter filter = filled(test.filter, 99'000);
    const Bytes before = snapshot_of(filter);
    filter.insert(keys(99'000, 100'000));
    const Bytes after = snapshot_of(filter);
    const double share =
        static_cast<double>(delta_of(before, after).size()) / static_cast<double>(after.size());
    EXPECT_LT(share, test.most) << test.filter;
  }
}

// And of one that took one per cent back and has as many new ones instead.
TEST(Delta, OnePerCentReplacedIsAFewPerCentOfTheBytes) {
  for (const char* name :
       {"dynamic,keys=20k,forget=yes", "counting,keys=100k", "growing,keys=100k"}) {
    AnyFilter filter = filled(name, 99'000);
    const Bytes before = snapshot_of(filter);
    for (const Digest& digest : keys(40'000, 41'000)) filter.forget(digest);
    filter.insert(keys(99'000, 100'000));
    const Bytes after = snapshot_of(filter);
    const double share =
        static_cast<double>(delta_of(before, after).size()) / static_cast<double>(after.size());
    EXPECT_LT(share, 0.1) << name;
    EXPECT_GT(share, 0.005) << name;
  }
}

}  // namespace
}  // namespace sluice
