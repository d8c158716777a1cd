#include "sluice/snapshot/pull.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/snapshot/clone.hpp"
#include "sluice/snapshot/layout.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/snapshot_bytes.hpp"

namespace sluice {
namespace {

using Bytes = std::vector<std::byte>;

const Hasher kHasher(HashKind::xxh3, Secret::from_seed(5));
const Labels kLabels = {{"records", "lines"}};
// No constant expression: the compiler would take seconds to make one of a megabyte.
Bytes filled(std::size_t count, std::byte with) {
  return Bytes(count, with);
}

const Sections kSections = {{"offsets", true, filled(100, std::byte{3})},
                            {"audit", false, filled(1'500'000, std::byte{4})}};

Bytes written(const AnyFilter& filter) {
  return testing_support::snapshot_bytes(kHasher, filter, kLabels, kSections);
}

// All in pieces of random sizes up to `most`; at each, with the given chance, the position is
// carried over to another pull.
Bytes pulled(const AnyFilter& filter, std::size_t most, double resume, std::uint64_t seed) {
  SplitMix64 random(seed);
  SnapshotPull pull(kHasher, filter, kLabels, kSections);
  Bytes all;
  for (;;) {
    Bytes piece(1 + random.next() % most);
    const std::size_t count = pull.next(piece);
    if (count == 0) break;
    all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
    if (random.next_unit() >= resume) continue;
    const SnapshotPull::Position position = pull.position();
    EXPECT_EQ(position.offset, all.size());
    pull = SnapshotPull(kHasher, filter, kLabels, kSections);
    pull.resume(position);
  }
  EXPECT_EQ(pull.size(), all.size());
  return all;
}

TEST(SnapshotPull, PiecesGiveTheWhole) {
  for (const FilterInfo& info : catalogue()) {
    AnyFilter filter = info.make({.keys = 30'000, .fpr = 1e-6}, {}, default_memory());
    // A generation of a filter that ages takes no more.
    filter.insert(testing_support::random_digests(3, filter.ages() ? 400 : 20'000));
    const Bytes whole = written(filter);
    EXPECT_EQ(pulled(filter, layout::kChunkBytes, 0, 1), whole) << info.name;
    EXPECT_EQ(pulled(filter, 700'000, 0.5, 2), whole) << info.name;
  }
}

TEST(Clone, HasTheSameBytesAndALifeOfItsOwn) {
  std::vector<AnyFilter> filters;
  for (const FilterInfo& info : catalogue())
    filters.push_back(info.make({.keys = 30'000, .fpr = 1e-6}, {}, default_memory()));
  filters.emplace_back(Window::make({.spec = {WindowSpec::Kind::count, 5000}}));
  for (AnyFilter& filter : filters) {
    filter.insert(testing_support::random_digests(3, filter.ages() ? 400 : 20'000));
    const Bytes before = written(filter);
    AnyFilter copy = clone(filter);
    EXPECT_EQ(written(copy), before) << name_of(filter.kind());
    copy.insert(testing_support::random_digests(4, 20));
    EXPECT_EQ(written(filter), before) << name_of(filter.kind());
    filter.insert(testing_support::random_digests(4, 20));
    EXPECT_EQ(written(copy), written(filter)) << name_of(filter.kind());
  }
}

// Every place in and around small pieces: header, chunk, checksum.
TEST(SnapshotPull, ResumesAtEveryByte) {
  AnyFilter filter = make_filter("bloom,bytes=128", {});
  filter.insert(testing_support::random_digests(3, 20));
  SnapshotPull pull(kHasher, filter);
  const Bytes whole = testing_support::snapshot_bytes(kHasher, filter);
  ASSERT_EQ(pull.size(), whole.size());
  for (std::size_t at = 0; at <= whole.size(); ++at) {
    SnapshotPull other(kHasher, filter);
    other.resume(pull.position());
    Bytes rest(whole.size() - at + 1);
    rest.resize(other.next(rest));
    EXPECT_EQ(rest, Bytes(whole.begin() + static_cast<std::ptrdiff_t>(at), whole.end())) << at;
    std::byte one{};
    EXPECT_EQ(pull.next({&one, 1}), at < whole.size() ? 1u : 0u);
  }
}

TEST(SnapshotPull, PositionsOfAnotherFilterAreRefused) {
  const AnyFilter filter = make_filter("bloom,bytes=128", {});
  SnapshotPull pull(kHasher, filter);
  EXPECT_THROW(pull.resume({pull.size() + 1, 0}), BadParameters);
  EXPECT_NO_THROW(pull.resume({pull.size(), 0}));
  EXPECT_NO_THROW(pull.resume({}));
}

}  // namespace
}  // namespace sluice
