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
#include "tests/support/snapshot_bytes.hpp"
#include "tests/support/snapshot_repair.hpp"

namespace sluice {
namespace {

using testing_support::random_digests;
using testing_support::repair_snapshot;
using testing_support::snapshot_bytes;
using Bytes = std::vector<std::byte>;

const Labels kLabels = {{"format", "json"}, {"key", "/user"}, {"key", "/ad"}, {"", ""}};

Hasher hasher() {
  return Hasher(HashKind::highway, Secret::from_seed(11));
}

Bytes snapshot_of(const AnyFilter& filter, const Labels& labels = kLabels) {
  return snapshot_bytes(hasher(), filter, labels);
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

// Where things stand in a snapshot whose kind, version and numbers of fields take a byte each.
struct Places {
  std::size_t header, kind, fields, payload_bytes, hash, labels, payload;
};

Places places_of(const Bytes& bytes) {
  BytesDecoder from(bytes);
  const auto at = [&] { return bytes.size() - from.remaining(); };
  Places places{};
  from.view(layout::kHeaderLengthAt);
  const std::uint64_t length = from.varint();
  places.header = places.kind = at();
  places.payload = places.header + length + layout::kChecksumBytes;
  from.varint();
  from.varint();
  const std::uint64_t fields = from.varint();
  places.fields = at();
  from.view(fields);
  places.payload_bytes = at();
  from.varint();
  places.hash = at();
  from.view(1 + Secret::kBytes);
  places.labels = at();
  return places;
}

// With another header's bytes in it, and checksums made right.
Bytes with_header(const Bytes& good, const std::function<void(Bytes&)>& change) {
  const Places places = places_of(good);
  Bytes header(good.begin() + static_cast<std::ptrdiff_t>(places.header),
               good.begin() + static_cast<std::ptrdiff_t>(places.payload - 8));
  change(header);
  BytesEncoder changed;
  changed.bytes(std::span(good).first(layout::kHeaderLengthAt));
  changed.varint(header.size());
  changed.bytes(header);
  changed.bytes(std::span(good).subspan(places.payload - 8));
  Bytes bytes = changed.take();
  repair_snapshot(bytes);
  return bytes;
}

// With a number in the place of the one-byte varint at `at`.
Bytes with_number(const Bytes& good, std::size_t at, std::uint64_t number) {
  return with_header(good, [&](Bytes& header) {
    const auto place = header.begin() + static_cast<std::ptrdiff_t>(at - places_of(good).header);
    ASSERT_LT(*place, std::byte{0x80});
    BytesEncoder bytes;
    bytes.varint(number);
    const auto next = header.erase(place);
    header.insert(next, bytes.written().begin(), bytes.written().end());
  });
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

// Every byte of the head and of the end, and some of a table between them under sanitizers.
std::size_t next(std::size_t at, std::size_t size) {
  const bool in_table = at >= 512 && at + 128 < size;
  return at + (in_table ? testing_support::count_of(7, 1, 1) : 1);
}

TEST_P(SmallFilter, EveryFlippedByteIsRefused) {
  constexpr unsigned kFlips[] = {0x01, 0x80, 0xFF};
  const Bytes good = snapshot_of(GetParam(), 5);
  for (std::size_t at = 0; at < good.size(); at = next(at, good.size())) {
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
  for (std::size_t size = 0; size < good.size(); size = next(size, good.size()))
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
  const std::size_t start = places_of(good).payload;
  for (std::size_t size = start; size < good.size() + 100; size = next(size, good.size())) {
    if (size == good.size()) continue;
    Bytes bad = good;
    bad.resize(size);
    repair_snapshot(bad);
    EXPECT_NE(refusal(bad), "") << size << " bytes";
  }
}

TEST(Snapshot, ChunksCannotChangePlaces) {
  Bytes bytes = snapshot_of("bloom,bytes=3MiB", 100000);
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(places_of(bytes).payload);
  std::swap_ranges(first, first + layout::kChunkStride, first + layout::kChunkStride);
  expect_refused(bytes, "chunk 0 is damaged, not in its place");
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
  std::copy_n(one.begin(), places_of(one).payload, two.begin());
  expect_refused(two, "of another snapshot");
}

TEST(Snapshot, WhatNewerVersionsWroteIsNamed) {
  const Bytes good = snapshot_of("bloom,bytes=64", 5);
  const std::string newer = "newer sluice?";
  for (const std::uint64_t version : {0u, 2u}) {
    const Bytes bad = tampered(good, layout::kVersionAt, version, 1);
    expect_refused(bad, "format version " + std::to_string(version));
    expect_refused(bad, newer);
  }
  const Places places = places_of(good);
  for (const std::uint64_t kind : {100u, 54321u, 1u << 20}) {
    expect_refused(with_number(good, places.kind, kind), "kind " + std::to_string(kind));
    expect_refused(with_number(good, places.kind, kind), newer);
  }
  expect_refused(tampered(good, places.kind + 1, 9, 1), "version 9");
  expect_refused(tampered(good, places.kind + 1, 9, 1), newer);
  expect_refused(tampered(good, places.hash, 3, 1), "unknown number 3");
  expect_refused(tampered(good, places.hash, 3, 1), newer);
  // A field more than we know.
  expect_refused(with_header(good, [](Bytes& header) { header.resize(header.size() + 10); }),
                 "does not need");
}

TEST(Snapshot, SomethingElseIsNotASnapshot) {
  expect_refused({}, "not a sluice snapshot");
  const std::string text = "user,ad,time\n1,2,3\n4,5,6\n7,8,9\n";
  expect_refused(std::as_bytes(std::span(text)), "not a sluice snapshot");
}

TEST(Snapshot, AbsurdLengthsAreRefusedWithoutAllocation) {
  const auto start = std::chrono::steady_clock::now();
  const Bytes blocked = snapshot_of("bloom,bytes=64", 5);
  const Bytes classic = snapshot_of("bloom,layout=classic,bytes=64", 5);
  const Bytes exact = snapshot_of("exact", 5);
  for (const unsigned power : {13u, 20u, 32u, 40u, 43u, 58u, 60u, 63u}) {
    const std::uint64_t huge = std::uint64_t{1} << power;
    for (const Bytes* good : {&blocked, &classic}) {
      expect_refused(tampered(*good, places_of(*good).fields, huge, 8), "");
      expect_refused(tampered(*good, places_of(*good).fields, huge - 64, 8), "");
    }
    expect_refused(tampered(exact, places_of(exact).fields + 8, huge, 8), "");
    expect_refused(tampered(exact, places_of(exact).fields + 16, huge, 8), "");
  }
  const auto with_length = [&](std::uint64_t length) {
    BytesEncoder bytes;
    bytes.bytes(std::span(blocked).first(layout::kHeaderLengthAt));
    bytes.varint(length);
    bytes.bytes(std::span(blocked).subspan(places_of(blocked).header));
    return bytes.take();
  };
  expect_refused(with_length(0xFFFFFFFF), "at most 1048576");
  expect_refused(with_length(1 << 20), "cut off");
  const Places places = places_of(blocked);
  expect_refused(with_number(blocked, places.fields - 1, 0xFFFFFFFF), "the bytes end");
  expect_refused(with_number(blocked, places.payload_bytes, std::uint64_t{1} << 61), "cut off");
  expect_refused(with_number(blocked, places.payload_bytes, ~std::uint64_t{0}), "no memory holds");
  expect_refused(with_number(blocked, places.labels, 0xFFFFFFFF), "4294967295 labels");
  expect_refused(with_number(blocked, places.labels, 1024), "the bytes end");
  expect_refused(with_number(blocked, places.labels, 3), "does not need");
  expect_refused(with_number(blocked, places.labels + 1, 0xFFFFFFFF), "at most 65536");
  expect_refused(with_number(blocked, places.payload - 9, 65), "at most 64");
  expect_refused(with_number(blocked, places.payload - 9, 1), "the bytes end");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// States that no filter reaches, under right checksums; the fuzzer found what they led to.
TEST(Snapshot, StatesThatNoFilterReachesAreRefused) {
  for (const char* bloom : {"bloom,bytes=64", "bloom,layout=classic,bytes=64"}) {
    const Bytes good = snapshot_of(bloom, 5);
    expect_refused(tampered(good, places_of(good).fields + 28, std::uint64_t{1} << 60, 8),
                   "more keys");
    expect_refused(tampered(good, places_of(good).fields + 28, 500, 8), "more keys");
  }
  const Bytes exact = snapshot_of("exact", 0);
  const std::size_t table = places_of(exact).payload;
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

// Header, secret and checksums of a filter without fields and labels.
TEST(Snapshot, WhatIsAlwaysThereTakesFewBytes) {
  EXPECT_EQ(snapshot_of(make_filter("none", {}), {}).size(), 54u);
}

// ---- sections

const Sections kSections = {{"offsets", true, Bytes(3, std::byte{7})},
                            {"audit", false, Bytes(2'000'000, std::byte{1})},
                            {"empty", true, {}}};

Bytes with_sections(const Sections& sections, const char* filter = "bloom,bytes=2MiB") {
  return snapshot_bytes(hasher(), make_filter(filter, {}), kLabels, sections);
}

Snapshot read_some(const Bytes& bytes, const Understands& understands) {
  BytesDecoder from(bytes);
  return read_snapshot(from, default_memory(), understands);
}

TEST(Sections, ComeBackToWhoUnderstandsThem) {
  for (const char* filter : {"none", "bloom,bytes=2MiB"}) {
    const Bytes bytes = with_sections(kSections, filter);
    EXPECT_EQ(read_some(bytes, understands_all).sections, kSections);
  }
  EXPECT_TRUE(read(with_sections({})).sections.empty());
}

TEST(Sections, ThatMayBeSkippedAreSkipped) {
  const Snapshot snapshot =
      read_some(with_sections(kSections), [](std::string_view name) { return name != "audit"; });
  EXPECT_EQ(snapshot.sections, (Sections{kSections[0], kSections[2]}));
  EXPECT_EQ(snapshot.labels, kLabels);
  EXPECT_EQ(snapshot_of(snapshot.filter), snapshot_of(make_filter("bloom,bytes=2MiB", {})));
}

TEST(Sections, ThatMustBeUnderstoodAreRefusedByName) {
  const auto refused = [](const Understands& understands, const std::string& name) {
    try {
      read_some(with_sections(kSections), understands);
      FAIL() << name;
    } catch (const CorruptSnapshot& error) {
      const std::string why = error.what();
      EXPECT_NE(why.find("a section '" + name + "' that must be understood"), why.npos) << why;
    }
  };
  refused(understands_nothing, "offsets");
  refused([](std::string_view name) { return name == "offsets"; }, "empty");
}

TEST(Sections, EveryFlippedByteIsRefused) {
  const Bytes good = with_sections({{"a", true, Bytes(2)}, {"b", false, Bytes(3)}}, "none");
  for (std::size_t at = 0; at < good.size(); ++at) {
    Bytes bad = good;
    bad[at] ^= std::byte{0x11};
    EXPECT_NE(refusal(bad), "") << at;
    EXPECT_THROW(read_some(bad, understands_all), CorruptSnapshot) << at;
  }
}

TEST(Sections, ThatNoTableHoldsAreRefused) {
  EXPECT_THROW(with_sections({{"a", true, {}}, {"a", true, {}}}), BadParameters);
  EXPECT_THROW(with_sections({{"", true, {}}}), BadParameters);
  EXPECT_THROW(with_sections({{std::string(65, 'x'), true, {}}}), BadParameters);
  EXPECT_THROW(with_sections(Sections(65, {"a", true, {}})), BadParameters);
  // The names are one byte each and stand at the end of the header: make them the same.
  Bytes twice = with_sections({{"a", true, {}}, {"b", true, {}}}, "none");
  const std::size_t last = places_of(twice).payload - layout::kChecksumBytes - 2;
  ASSERT_EQ(twice[last], std::byte{'b'});
  expect_refused(tampered(twice, last, 'a', 1), "section 1 has fields that no section has");
  expect_refused(tampered(twice, last - 2, 2, 1), "section 1 has fields that no section has");
}

}  // namespace
}  // namespace sluice
