#include "sluice/snapshot/snapshot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/snapshot/layout.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/snapshot_repair.hpp"

namespace sluice {
namespace {

using testing_support::random_digests;
using testing_support::repair_snapshot;
using Bytes = std::vector<std::byte>;

const Labels kLabels = {{"format", "json"}, {"key", "/user"}, {"key", "/ad"}, {"", ""}};

Hasher hasher() {
  return Hasher(HashKind::highway, Secret::from_seed(11));
}

Bytes snapshot_of(const AnyFilter& filter, const Labels& labels = kLabels) {
  BytesEncoder to;
  write_snapshot(hasher(), filter, labels, to);
  return to.take();
}

Bytes snapshot_of(const char* filter, std::size_t keys) {
  AnyFilter made = make_filter(filter, {});
  made.insert(random_digests(1, keys));
  return snapshot_of(made);
}

Snapshot read(std::span<const std::byte> bytes) {
  BytesDecoder from(bytes);
  return read_snapshot(from);
}

// Why the bytes are refused; empty when they are not.
std::string refusal(std::span<const std::byte> bytes) {
  try {
    read(bytes);
    return "";
  } catch (const CorruptSnapshot& error) {
    return error.what();
  }
}

void expect_refused(std::span<const std::byte> bytes, const std::string& because) {
  const std::string why = refusal(bytes);
  EXPECT_NE(why.find(because), std::string::npos) << "refused with: " << why;
  EXPECT_NE(why.find(", at byte "), std::string::npos) << "refused with: " << why;
}

// Overwrites the bytes at `offset` and makes the checksums right again.
Bytes tampered(Bytes bytes, std::size_t offset, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i)
    bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
  repair_snapshot(bytes);
  return bytes;
}

// Sections begin after the fixed fields; a section's own fields after tag and length.
constexpr std::size_t kFilterKindAt = 22, kFilterFieldsAt = 26;

std::size_t header_bytes(const Bytes& bytes) {
  BytesDecoder from{std::span(bytes).subspan(layout::kHeaderLengthAt)};
  return from.u32();
}

class EveryFilter : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Catalogue, EveryFilter,
                         testing::Values("none", "exact", "exact,keys=100k", "bloom,keys=3000",
                                         "bloom,layout=classic,keys=3000",
                                         "bloom,bytes=3MiB",    // whole chunks
                                         "bloom,bytes=3145792"  // and one of 64 bytes
                                         ),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace_if(
                               name, [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

TEST_P(EveryFilter, ComesBackAsItWas) {
  AnyFilter filter = make_filter(GetParam(), {});
  filter.insert(random_digests(1, 2000));
  const Bytes bytes = snapshot_of(filter);
  Snapshot loaded = read(bytes);
  EXPECT_EQ(loaded.labels, kLabels);
  EXPECT_EQ(loaded.hasher.kind(), HashKind::highway);
  EXPECT_TRUE(loaded.hasher.secret() == hasher().secret());
  EXPECT_EQ(loaded.filter.settings(), filter.settings());
  EXPECT_EQ(loaded.filter.stats().keys, filter.stats().keys);
  EXPECT_EQ(snapshot_of(loaded.filter), bytes);

  // Half of these are known.
  std::vector<Digest> asked = random_digests(1, 2000);
  const std::vector<Digest> fresh = random_digests(2, 2000);
  asked.insert(asked.end(), fresh.begin(), fresh.end());
  std::vector<Verdict> one(asked.size()), two(asked.size());
  filter.observe(asked, one);
  loaded.filter.observe(asked, two);
  EXPECT_EQ(one, two);
}

TEST_P(EveryFilter, CanBeEmpty) {
  const Bytes bytes = snapshot_of(make_filter(GetParam(), {}), {});
  EXPECT_EQ(snapshot_of(read(bytes).filter, {}), bytes);
}

// The catalogue may grow: a filter that is not in the list above fails here.
TEST(Snapshot, EveryFilterOfTheCatalogueComesBack) {
  for (const FilterInfo& info : catalogue()) {
    const AnyFilter filter = info.make({.keys = 100}, {}, default_memory());
    const Bytes bytes = snapshot_of(filter);
    EXPECT_EQ(snapshot_of(read(bytes).filter), bytes) << info.name;
  }
}

class SmallFilter : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, SmallFilter,
                         testing::Values("none", "exact", "bloom,bytes=64",
                                         "bloom,layout=classic,bytes=64"));

TEST_P(SmallFilter, EveryFlippedByteIsRefused) {
  constexpr unsigned kFlips[] = {0x01, 0x80, 0xFF};
  const Bytes good = snapshot_of(GetParam(), 5);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const unsigned flip : kFlips) {
      if (!testing_support::full_counts() && flip != kFlips[at % 3]) continue;  // one a byte
      Bytes bad = good;
      bad[at] ^= static_cast<std::byte>(flip);
      EXPECT_NE(refusal(bad), "") << "byte " << at << " ^ " << flip;
    }
  }
}

TEST_P(SmallFilter, EveryTruncationIsRefused) {
  const Bytes good = snapshot_of(GetParam(), 5);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(refusal(std::span(good).first(size)), "") << size << " bytes";
}

TEST_P(SmallFilter, AppendedBytesAreRefused) {
  Bytes bytes = snapshot_of(GetParam(), 5);
  for (int more = 0; more < 100; ++more) {
    bytes.push_back(std::byte{0});
    EXPECT_NE(refusal(bytes), "") << more + 1 << " zeros";
  }
  Bytes twice = snapshot_of(GetParam(), 5);
  twice.insert(twice.end(), twice.begin(), twice.begin() + twice.size() / 2);
  EXPECT_NE(refusal(twice), "");
}

// Truncations and additions whose checksums and footer were made right: the filter's own length
// decides.
TEST_P(SmallFilter, AnotherLengthOfPayloadIsRefused) {
  const Bytes good = snapshot_of(GetParam(), 5);
  const std::size_t start = layout::kHeaderAt + header_bytes(good) + layout::kChecksumBytes;
  for (std::size_t size = start; size < good.size() + 100; ++size) {
    if (size == good.size()) continue;
    Bytes bad = good;
    bad.resize(size);
    repair_snapshot(bad);
    EXPECT_NE(refusal(bad), "") << size << " bytes";
  }
}

TEST(Snapshot, ChunksCannotChangePlaces) {
  Bytes bytes = snapshot_of("bloom,bytes=3MiB", 100000);
  const std::size_t stride = layout::kChunkBytes + layout::kChunkOverhead;
  const auto first =
      bytes.begin() + static_cast<std::ptrdiff_t>(layout::kHeaderAt + header_bytes(bytes) + 8);
  std::swap_ranges(first, first + stride, first + stride);
  expect_refused(bytes, "chunk 0 is damaged or not in its place");
}

// repair_snapshot was written from docs/format.md: two implementations agree on every checksum.
TEST(Snapshot, TheChecksumsAreTheDocumentedOnes) {
  for (const char* filter : {"none", "bloom,bytes=64", "bloom,bytes=3145792"}) {
    const Bytes good = snapshot_of(filter, 100);
    Bytes repaired = good;
    repair_snapshot(repaired);
    EXPECT_TRUE(repaired == good) << filter;
  }
}

TEST(Snapshot, APayloadUnderAnotherHeaderIsRefused) {
  const Bytes one = snapshot_of("bloom,bytes=64", 1);
  Bytes two = snapshot_of("bloom,bytes=64", 2);
  ASSERT_EQ(one.size(), two.size());
  const std::size_t header_end = layout::kHeaderAt + header_bytes(one) + 8;
  std::copy_n(one.begin(), header_end, two.begin());
  expect_refused(two, "do not belong together");
}

TEST(Snapshot, WhatNewerVersionsWroteIsNamed) {
  const Bytes good = snapshot_of("bloom,bytes=64", 5);
  const std::string newer = "newer sluice?";
  for (const std::uint64_t version : {0u, 2u}) {
    const Bytes bad = tampered(good, layout::kVersionAt, version, 4);
    expect_refused(bad, "format version " + std::to_string(version));
    expect_refused(bad, newer);
  }
  expect_refused(tampered(good, layout::kHeaderAt, 77, 2), "unknown kind 77");
  expect_refused(tampered(good, layout::kHeaderAt, 77, 2), newer);
  expect_refused(tampered(good, layout::kHeaderAt, 2, 2), "not in its place");
  expect_refused(tampered(good, kFilterKindAt, 54321, 2), "kind 54321");
  expect_refused(tampered(good, kFilterKindAt, 54321, 2), newer);
  expect_refused(tampered(good, kFilterKindAt + 2, 9, 2), "version 9");
  expect_refused(tampered(good, kFilterKindAt + 2, 9, 2), newer);

  BytesDecoder from{std::span(good).subspan(layout::kHeaderAt + 2)};
  const std::size_t hash_at = layout::kHeaderAt + 6 + from.u32();
  expect_refused(tampered(good, hash_at + 6, 3, 1), "unknown number 3");
  expect_refused(tampered(good, hash_at + 6, 3, 1), newer);

  // A section more than we know.
  Bytes longer = good;
  const std::size_t end = layout::kHeaderAt + header_bytes(good);
  const Bytes section(10, std::byte{4});
  longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(end), section.begin(), section.end());
  longer = tampered(longer, layout::kHeaderLengthAt, header_bytes(good) + section.size(), 4);
  expect_refused(longer, newer);
}

TEST(Snapshot, SomethingElseIsNotASnapshot) {
  expect_refused({}, "not a sluice snapshot");
  const std::string text = "user,ad,time\n1,2,3\n4,5,6\n7,8,9\n";
  expect_refused(std::as_bytes(std::span(text)), "not a sluice snapshot");
  Bytes no_carriage_return = snapshot_of("none", 0);
  std::erase(no_carriage_return, std::byte{'\r'});
  expect_refused(no_carriage_return, "not a sluice snapshot");
}

TEST(Snapshot, AbsurdLengthsAreRefusedWithoutAllocation) {
  const auto start = std::chrono::steady_clock::now();
  const Bytes blocked = snapshot_of("bloom,bytes=64", 5);
  const Bytes classic = snapshot_of("bloom,layout=classic,bytes=64", 5);
  const Bytes exact = snapshot_of("exact", 5);
  for (const unsigned power : {13u, 20u, 32u, 40u, 43u, 58u, 60u, 63u}) {
    const std::uint64_t huge = std::uint64_t{1} << power;
    for (const Bytes* good : {&blocked, &classic}) {
      expect_refused(tampered(*good, kFilterFieldsAt, huge, 8), "");
      expect_refused(tampered(*good, kFilterFieldsAt, huge - 64, 8), "");
    }
    expect_refused(tampered(exact, kFilterFieldsAt + 8, huge, 8), "");
    expect_refused(tampered(exact, kFilterFieldsAt + 16, huge, 8), "");
  }
  expect_refused(tampered(blocked, layout::kHeaderLengthAt, 0xFFFFFFFF, 4), "at most 1048576");
  expect_refused(tampered(blocked, layout::kHeaderLengthAt, 1 << 20, 4), "cut off");
  expect_refused(tampered(blocked, layout::kHeaderAt + 2, 0xFFFFFFFF, 4), "4294967295");

  const std::size_t labels_at =
      layout::kHeaderAt + header_bytes(blocked) - 4 - (4 * 8 + 6 + 4 + 3 + 5 + 3 + 3);
  expect_refused(tampered(blocked, labels_at, 0xFFFFFFFF, 4), "4294967295 labels");
  expect_refused(tampered(blocked, labels_at, 1024, 4), "the bytes end");
  expect_refused(tampered(blocked, labels_at, 3, 4), "does not need");
  expect_refused(tampered(blocked, labels_at + 4, 0xFFFFFFFF, 4), "at most 65536");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// States that no filter reaches, under right checksums; the fuzzer found what they led to.
TEST(Snapshot, StatesThatNoFilterReachesAreRefused) {
  for (const char* bloom : {"bloom,bytes=64", "bloom,layout=classic,bytes=64"}) {
    const Bytes good = snapshot_of(bloom, 5);
    expect_refused(tampered(good, kFilterFieldsAt + 28, std::uint64_t{1} << 60, 8), "more keys");
    expect_refused(tampered(good, kFilterFieldsAt + 28, 500, 8), "more keys");
  }
  const Bytes exact = snapshot_of("exact", 0);
  const std::size_t table = layout::kHeaderAt + header_bytes(exact) + layout::kChecksumBytes + 4;
  // The digest whose low word is 7 belongs into slot 0.
  expect_refused(tampered(exact, table + 16, 7, 8), "out of its place");
  const Bytes good = tampered(exact, table, 7, 8);
  EXPECT_EQ(refusal(good), "");
  expect_refused(tampered(good, table + 16, 7, 8), "out of its place");
}

TEST(Snapshot, LabelsThatNoHeaderHoldsAreRefusedWhenWritten) {
  const AnyFilter filter = make_filter("none", {});
  EXPECT_THROW(snapshot_of(filter, Labels(1025)), BadParameters);
  EXPECT_THROW(snapshot_of(filter, {{"name", std::string(65537, 'x')}}), BadParameters);
  EXPECT_THROW(snapshot_of(filter, Labels(16, {"name", std::string(65536, 'x')})), BadParameters);
  const Labels most(15, {"name", std::string(65536, 'x')});
  EXPECT_EQ(read(snapshot_of(filter, most)).labels, most);
  EXPECT_EQ(read(snapshot_of(filter, Labels(1024))).labels, Labels(1024));
}

TEST(Layout, SizeOfPayloadAndOfItsChunksAreInverse) {
  for (const std::uint64_t around :
       {std::uint64_t{0}, layout::kChunkBytes, 3 * layout::kChunkBytes, std::uint64_t{1} << 32,
        std::uint64_t{10} << 30, std::uint64_t{1} << 46}) {
    for (std::uint64_t delta = 0; delta < 30; ++delta) {
      const std::uint64_t more = around + delta;
      EXPECT_EQ(layout::payload_bytes(layout::chunked_bytes(more)), more);
      if (around == 0) continue;
      const std::uint64_t less = around - delta;
      EXPECT_EQ(layout::payload_bytes(layout::chunked_bytes(less)), less);
    }
    for (std::uint64_t impossible = 1; impossible <= layout::kChunkOverhead; ++impossible) {
      EXPECT_EQ(layout::payload_bytes(layout::chunked_bytes(around) + impossible), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace sluice
