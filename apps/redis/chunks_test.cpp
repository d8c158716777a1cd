#include "apps/redis/chunks.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/snapshot/chunks.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice::server {
namespace {

using Bytes = std::vector<std::byte>;

Entry::Pointer make(MemoryResource& memory, const char* filter, std::uint64_t keys,
                    std::uint64_t seed = 1) {
  Making making{.secret = Secret::from_seed(seed)};
  making.made_ms = 1'700'000'000'000;
  making.filter = filter;
  making.keys = keys;
  making.fpr = 1e-6;
  return Entry::make(making, memory);
}

void add(Entry& entry, std::uint64_t seed, std::size_t count) {
  const auto digests = testing_support::random_digests(seed, count);
  std::vector<Verdict> verdicts(count);
  const auto late = std::make_unique<bool[]>(count);
  Fates fates;
  ASSERT_EQ(
      entry.judge(digests, {.now_ms = 1'700'000'000'001}, verdicts, {late.get(), count}, fates),
      count);
}

Bytes encoded(const Entry& entry) {
  Encoded all(entry);
  Bytes bytes(all.size());
  EXPECT_EQ(all.next(bytes), bytes.size());
  return bytes;
}

struct Cut {
  Bytes bytes;
  std::int64_t cursor = 0;
};

std::vector<Cut> cut(const Entry& entry) {
  Cutter cutter(entry, 5);
  std::vector<Cut> all;
  for (auto chunk = cutter.next(); !chunk.empty(); chunk = cutter.next())
    all.push_back({{chunk.begin(), chunk.end()}, cutter.cursor()});
  return all;
}

class ServerChunks : public testing::Test {
 protected:
  HostMemory memory_{malloc_calls()};
  Entry::Pointer large_ = [this] {
    auto entry = make(memory_, "bloom", 1'000'000);  // more than three chunks
    add(*entry, 1, 1000);
    return entry;
  }();
};

TEST_F(ServerChunks, AreTheEntryAgain) {
  const std::vector<Cut> chunks = cut(*large_);
  ASSERT_GT(chunks.size(), 3u);
  std::set<std::int64_t> cursors;
  Partial::Pointer partial;
  for (const Cut& each : chunks) {
    EXPECT_LT(each.bytes.size(), std::size_t{1} << 20);
    EXPECT_GT(each.cursor, 0);
    EXPECT_LE(each.cursor, Cursor::kMost);
    cursors.insert(each.cursor);
    const Chunk chunk = Chunk::read(each.bytes);
    EXPECT_EQ(chunk.cursor(), each.cursor);
    EXPECT_EQ(chunk.expiry_ms, 5);
    EXPECT_EQ(chunk.last(), &each == &chunks.back());
    EXPECT_EQ(Cursor::of(each.cursor).all, chunk.last());
    if (partial)
      partial->add(chunk);
    else
      partial = Partial::begin(chunk, memory_);
  }
  EXPECT_EQ(cursors.size(), chunks.size());
  EXPECT_EQ(partial->here(), partial->total());
  EXPECT_EQ(encoded(*partial->finish(0)), encoded(*large_));
  // Its bytes were given back.
  EXPECT_LT(partial->bytes(), 4096u);
}

TEST_F(ServerChunks, InAnyOtherOrderChangeNothing) {
  const std::vector<Cut> chunks = cut(*large_);
  auto other = make(memory_, "bloom", 1'000'000, 2);
  const std::vector<Cut> foreign = cut(*other);
  ASSERT_EQ(foreign.size(), chunks.size());
  EXPECT_THROW(Partial::begin(Chunk::read(chunks[1].bytes), memory_), BadParameters);
  const Partial::Pointer partial = Partial::begin(Chunk::read(chunks[0].bytes), memory_);
  const std::uint64_t taken = partial->bytes();
  for (const Bytes* wrong : {&chunks[0].bytes, &chunks[2].bytes, &foreign[1].bytes}) {
    EXPECT_THROW(partial->add(Chunk::read(*wrong)), BadParameters);
    EXPECT_EQ(partial->here(), Chunk::kMostBytes);
    EXPECT_EQ(partial->bytes(), taken);
  }
  partial->add(Chunk::read(chunks[1].bytes));
  EXPECT_EQ(partial->here(), 2 * Chunk::kMostBytes);
}

TEST_F(ServerChunks, AreRefusedIfDamaged) {
  const auto small = make(memory_, "exact", 10);
  add(*small, 3, 20);
  const Bytes whole = cut(*small).front().bytes;
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(Chunk::read(std::span(whole).first(size)), BadParameters) << size;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes damaged = whole;
    damaged[at] ^= std::byte{1};
    EXPECT_THROW(Chunk::read(damaged), BadParameters) << at;
  }
  Bytes longer = whole;
  longer.push_back({});
  EXPECT_THROW(Chunk::read(longer), BadParameters);
}

// The header's checksums are right, and its numbers are not.
TEST_F(ServerChunks, AreRefusedIfForged) {
  const Bytes some(100);
  const auto forged = [&](Chunk chunk) {
    if (chunk.before == 0) chunk.before = first_link(chunk.total);
    chunk.bytes = some;
    chunk.after = next_link(chunk.before, chunk.bytes);
    Bytes bytes(Chunk::kHeaderBytes);
    chunk.write_header(std::span(bytes).first<Chunk::kHeaderBytes>());
    bytes.insert(bytes.end(), some.begin(), some.end());
    return bytes;
  };
  EXPECT_NO_THROW(Chunk::read(forged({.total = 100})));
  EXPECT_NO_THROW(
      Chunk::read(forged({.total = Chunk::kMostBytes + 100, .offset = Chunk::kMostBytes})));
  for (const Chunk& wrong :
       {Chunk{.total = 99}, Chunk{.total = 101}, Chunk{.total = 0},
        Chunk{.total = Chunk::kMostTotal + 100, .offset = Chunk::kMostTotal},
        Chunk{.total = ~std::uint64_t{0}}, Chunk{.total = 200, .offset = 100},
        Chunk{.total = Chunk::kMostBytes, .offset = Chunk::kMostBytes},
        Chunk{.total = 100, .offset = ~std::uint64_t{0}}, Chunk{.total = 100, .expiry_ms = -1},
        Chunk{.total = 100, .before = 1}})
    EXPECT_THROW(Chunk::read(forged(wrong)), BadParameters);
  // A chunk that is one, but of nothing.
  const Bytes nothing = forged({.total = 100});
  const Partial::Pointer partial = Partial::begin(Chunk::read(nothing), memory_);
  const std::uint64_t taken = partial->bytes();
  EXPECT_THROW(partial->finish(0), CorruptSnapshot);
  EXPECT_LE(partial->bytes(), taken - 100);
}

// Other versions must read them: computed apart from this code, from docs/format.md.
TEST_F(ServerChunks, HaveTheSameBytesForEver) {
  const Bytes three{std::byte{1}, std::byte{2}, std::byte{3}};
  Chunk chunk{.total = 3, .expiry_ms = 1'700'000'000'000, .before = first_link(3)};
  chunk.bytes = three;
  chunk.after = next_link(chunk.before, three);
  Bytes header(Chunk::kHeaderBytes);
  chunk.write_header(std::span(header).first<Chunk::kHeaderBytes>());
  std::string hex;
  for (const std::byte each : header) hex += fmt::format("{:02x}", static_cast<unsigned>(each));
  EXPECT_EQ(hex,
            "534c5543484e4b31030000000000000000000000000000000068e5cf"
            "8b0100007d2ef4c12920924d9a8419ea3ee9c20d64d7b1e9208cc055");
  EXPECT_EQ(chunk.cursor(), 16812442778);
}

TEST_F(ServerChunks, TakeNoMoreMemoryThanTheirBytes) {
  HostMemory counted(CountedHost::calls());
  const std::vector<Cut> chunks = cut(*large_);
  const std::uint64_t before = CountedHost::held;
  CountedHost::peak = before;
  Partial::Pointer partial;
  std::uint64_t came = 0;
  for (const Cut& each : std::span(chunks).first(chunks.size() - 1)) {
    const Chunk chunk = Chunk::read(each.bytes);
    if (partial)
      partial->add(chunk);
    else
      partial = Partial::begin(chunk, counted);
    came += chunk.bytes.size();
    EXPECT_LE(CountedHost::peak - before, came + 4096);
    EXPECT_GE(partial->bytes(), came);
    const Partial::Pointer copy = partial->clone(memory_);
    EXPECT_EQ(copy->here(), partial->here());
  }
  partial.reset();
  EXPECT_EQ(CountedHost::held, before);
}

TEST_F(ServerChunks, OfAPartAreThoseThatCame) {
  const std::vector<Cut> chunks = cut(*large_);
  const Partial::Pointer partial = Partial::begin(Chunk::read(chunks[0].bytes), memory_);
  partial->add(Chunk::read(chunks[1].bytes));
  std::size_t next = 0;
  partial->each_chunk(3, [&](std::span<std::byte> bytes) {
    const Chunk right = Chunk::read(chunks.at(next++).bytes);
    const Chunk again = Chunk::read(bytes.subspan(3));
    EXPECT_EQ(again.cursor(), right.cursor());
    EXPECT_EQ(again.before, right.before);
    EXPECT_EQ(again.expiry_ms, 0);
  });
  EXPECT_EQ(next, 2u);
}

class DumpOf : public ServerChunks {
 protected:
  Cut next(Dumps& dumps, const Entry& entry, std::int64_t cursor, std::int64_t now_ms) {
    Cutter cutter(entry, 5);
    const Dumps::Next next = dumps.next(cutter, entry, cursor, now_ms);
    return {{next.chunk.begin(), next.chunk.end()}, next.cursor};
  }
};

TEST_F(DumpOf, GoesOnAlsoWhereItsPlaceIsLost) {
  const std::vector<Cut> right = cut(*large_);
  Dumps dumps;
  std::int64_t cursor = 0;
  for (const Cut& each : right) {
    const Cut kept = next(dumps, *large_, cursor, 1000);
    Dumps forgetful;
    const Cut again = next(forgetful, *large_, cursor, 1000);
    EXPECT_EQ(kept.cursor, each.cursor);
    EXPECT_EQ(again.cursor, each.cursor);
    EXPECT_EQ(kept.bytes, each.bytes);
    EXPECT_EQ(again.bytes, each.bytes);
    // More dumps than there are places for.
    if (&each == &right[1])
      for (int i = 0; i < 40; ++i) next(dumps, *large_, 0, 1001 + i);
    cursor = each.cursor;
  }
}

TEST_F(DumpOf, IsRefusedIfTheKeyHasChanged) {
  Dumps dumps;
  const Cut first = next(dumps, *large_, 0, 1000);
  const Cut second = next(dumps, *large_, first.cursor, 1000);
  EXPECT_THROW(next(dumps, *make(memory_, "bloom", 1'000'000, 2), second.cursor, 1000),
               BadParameters);
  EXPECT_THROW(next(dumps, *make(memory_, "exact", 10), second.cursor, 1000), BadParameters);
  EXPECT_THROW(next(dumps, *large_, second.cursor ^ 1, 1000), BadParameters);
  EXPECT_THROW(next(dumps, *large_, 1, 1000), BadParameters);
  EXPECT_THROW(next(dumps, *large_, Cursor::kMost, 1000), BadParameters);
  add(*large_, 9, 100);
  EXPECT_THROW(next(dumps, *large_, second.cursor, 1000), BadParameters);
}

// A copy has the same bytes, so a dump may go on there; a place is not taken for that of another.
TEST_F(DumpOf, KnowsTheKeyByItsBytes) {
  Dumps dumps;
  const std::vector<Cut> right = cut(*large_);
  const Cut first = next(dumps, *large_, 0, 1000);
  const auto copy = large_->clone(memory_);
  EXPECT_NE(copy->changes(), large_->changes());
  EXPECT_EQ(next(dumps, *copy, first.cursor, 1000).bytes, right[1].bytes);
}

// No key is read from its start to find out that a cursor is of none of its chunks.
TEST_F(ServerChunks, ACursorBeyondTheLastChunkIsRefusedAtOnce) {
  Dumps dumps;
  const std::uint64_t chunks = cut(*large_).size();
  for (const std::uint64_t forged : {std::uint64_t{0}, chunks, chunks + 1, Chunk::kMostChunks}) {
    Cutter cutter(*large_, 5);
    const std::int64_t cursor = Cursor{.chunks = forged, .link = 1}.number();
    EXPECT_THROW(dumps.next(cutter, *large_, cursor, 1), BadParameters) << forged;
    EXPECT_EQ(cutter.position().pull.offset, 0u) << forged;
  }
}

}  // namespace
}  // namespace sluice::server
