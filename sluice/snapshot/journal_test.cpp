#include "sluice/snapshot/journal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/snapshot/clone.hpp"
#include "sluice/snapshot/snapshot.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/snapshot_bytes.hpp"

namespace sluice {
namespace {

using testing_support::count_of;

using Bytes = std::vector<std::byte>;

constexpr Nanoseconds kSecond = 1'000'000'000;
const Hasher kHasher(HashKind::xxh3, Secret::from_seed(5));

Bytes bytes_of(const AnyFilter& filter) {
  return testing_support::snapshot_bytes(kHasher, filter);
}

AnyFilter window() {
  return AnyFilter(Window::make({.spec = {WindowSpec::Kind::time, 50 * kSecond}, .keys = 64}));
}

void judge(AnyFilter& filter, std::span<const Digest> digests, std::span<const Nanoseconds> times) {
  std::vector<Verdict> verdicts(digests.size());
  const auto late = std::make_unique<bool[]>(digests.size());
  const std::size_t judged =
      filter.as<Window>()->judge(digests, times, verdicts, {late.get(), digests.size()});
  ASSERT_EQ(judged, digests.size());
}

struct Recovered {
  Bytes state;
  JournalEnd end;
  Sections last;
};

Recovered recover(const AnyFilter& base, std::uint64_t identity,
                  std::span<const std::byte> journal) {
  AnyFilter filter = clone(base);
  Recovered result;
  BytesDecoder from(journal);
  result.end = read_journal(
      from, identity,
      [&](const JournalRecord& record) {
        judge(filter, record.digests, record.times);
        if (!record.sections.empty()) result.last = record.sections;
      },
      understands_all);
  result.state = bytes_of(filter);
  return result;
}

// A run whose every moment is known: the state and the sections after each record.
struct KnownRun {
  explicit KnownRun(std::uint64_t seed) : base(window()) {
    SplitMix64 random(seed);
    Nanoseconds now = 1'700'000'000 * kSecond;
    const auto batch = [&](std::size_t most) {
      digests.clear();
      times.clear();
      for (std::size_t i = random.next() % most; i > 0; --i) {
        now += static_cast<Nanoseconds>(random.next() % (3 * kSecond)) - kSecond / 4;
        digests.push_back({random.next() % 100, random.next() % 2});
        times.push_back(now);
      }
    };
    batch(60);
    judge(base, digests, times);
    BytesEncoder snapshot;
    identity = write_snapshot(kHasher, base, {}, snapshot);
    AnyFilter live = clone(base);
    JournalWriter writer(identity, to);
    const auto note = [&] {
      ends.push_back(writer.bytes());
      states.push_back(bytes_of(live));
    };
    note();
    sections.push_back({});
    for (int record = 0; record < count_of(12, 25, 25); ++record) {
      batch(record % 5 == 0 ? 40 : 3);
      Sections with;
      if (random.next() % 2 == 0)
        with = {{"offsets", true, Bytes(1 + random.next() % 9, static_cast<std::byte>(record))}};
      writer.append(digests, times, with, to);
      judge(live, digests, times);
      note();
      sections.push_back(with.empty() ? sections.back() : with);
    }
  }

  AnyFilter base;
  std::uint64_t identity = 0;
  BytesEncoder to;
  std::vector<std::uint64_t> ends;  // of the head, and of each record
  std::vector<Bytes> states;
  std::vector<Sections> sections;
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
};

TEST(Journal, CutAtEveryByteItGivesTheLastWholeRecord) {
  const KnownRun run(1);
  const auto whole = run.to.written();
  std::size_t records = 0;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    while (records + 1 < run.ends.size() && run.ends[records + 1] <= size) ++records;
    const Recovered got = recover(run.base, run.identity, whole.first(size));
    const bool head = size >= run.ends[0];
    ASSERT_EQ(got.end.records, head ? records : 0) << size;
    ASSERT_EQ(got.end.bytes, head ? run.ends[records] : 0) << size;
    ASSERT_EQ(got.end.torn_bytes, size - got.end.bytes) << size;
    ASSERT_EQ(got.state, run.states[records]) << size;
    ASSERT_EQ(got.last, run.sections[records]) << size;
  }
}

TEST(Journal, TimesOfAnotherNumberAreRefused) {
  BytesEncoder to;
  JournalWriter writer(7, to);
  const std::uint64_t before = writer.bytes();
  const std::vector<Digest> digests(3);
  const std::vector<Nanoseconds> times(4);
  EXPECT_THROW(writer.append(digests, std::span(times).first(2), {}, to), BadParameters);
  EXPECT_THROW(writer.append(digests, times, {}, to), BadParameters);
  EXPECT_EQ(writer.bytes(), before);
  EXPECT_EQ(to.written().size(), before);
}

// Data that never reached the disk, in a file that was already as long.
TEST(Journal, ZerosAtTheEndAreTorn) {
  const KnownRun run(2);
  const auto whole = run.to.written();
  for (const std::size_t records : {std::size_t{0}, std::size_t{3}, run.ends.size() - 2}) {
    for (std::size_t more = 0; run.ends[records] + more < run.ends[records + 1]; ++more) {
      Bytes bytes(whole.begin(),
                  whole.begin() + static_cast<std::ptrdiff_t>(run.ends[records] + more));
      bytes.resize(bytes.size() + 5000);
      const Recovered got = recover(run.base, run.identity, bytes);
      // The last bytes of a record may be zeros themselves.
      ASSERT_TRUE(got.end.records == records ||
                  (got.end.records == records + 1 && got.end.bytes == run.ends[records + 1]));
      ASSERT_EQ(got.state, run.states[got.end.records]) << records << " " << more;
    }
  }
  EXPECT_EQ(recover(run.base, run.identity, Bytes(5000)).end.bytes, 0u);
}

// A power cut can leave this behind, but so can damage to a record that was synced.
TEST(Journal, ZerosBeforeDataAreReported) {
  BytesEncoder to;
  JournalWriter writer(7, to);
  const std::vector<Digest> digests(1000, Digest{1, 2});
  writer.append(digests, {}, {}, to);
  const std::uint64_t whole = writer.bytes();
  writer.append(digests, {}, {}, to);
  Bytes bytes(to.written().begin(), to.written().end());
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(whole), 4096, std::byte{0});
  std::size_t records = 0;
  BytesDecoder from(bytes);
  try {
    read_journal(from, 7, [&](const JournalRecord&) { ++records; });
    ADD_FAILURE() << "the last record was taken for torn";
  } catch (const CorruptSnapshot& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with("at byte " + std::to_string(whole)))
        << error.what();
  }
  EXPECT_EQ(records, 1u);
}

TEST(Journal, DamageInTheMiddleIsReported) {
  const KnownRun run(3);
  const Bytes good(run.to.written().begin(), run.to.written().end());
  const std::uint64_t last = run.ends[run.ends.size() - 2];
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const unsigned flip : {0x01u, 0x80u}) {
      Bytes bad = good;
      bad[at] ^= static_cast<std::byte>(flip);
      try {
        const Recovered got = recover(run.base, run.identity, bad);
        // Only the last record may be taken for torn.
        EXPECT_GE(at, last) << at;
        EXPECT_EQ(got.end.bytes, last) << at;
        EXPECT_EQ(got.state, run.states[run.states.size() - 2]) << at;
      } catch (const CorruptSnapshot&) {
      } catch (const JournalGap&) {
        ADD_FAILURE() << "a damaged head is no gap: " << at;
      }
    }
  }
}

TEST(Journal, GoesOnBehindWhatWasTorn) {
  const KnownRun run(4);
  const auto whole = run.to.written();
  const std::size_t cut = run.ends[10] + 5;
  Recovered before = recover(run.base, run.identity, whole.first(cut));
  BytesEncoder to;
  to.bytes(whole.first(before.end.bytes));
  JournalWriter writer(before.end);
  const std::vector<Digest> digests = {{1, 2}, {3, 4}};
  const std::vector<Nanoseconds> times = {1'700'000'100 * kSecond, 1'700'000'101 * kSecond};
  writer.append(digests, times, {}, to);
  EXPECT_EQ(writer.bytes(), to.written().size());
  const Recovered after = recover(run.base, run.identity, to.written());
  EXPECT_EQ(after.end.records, 11u);
  EXPECT_EQ(after.end.torn_bytes, 0u);
  EXPECT_EQ(after.end.checksum, writer.end().checksum);
}

// A crash between making the file and writing its head, or in the middle of the head: there is
// nothing to continue, and records without a head could not be read again.
TEST(Journal, WithoutAHeadItCannotBeContinued) {
  BytesEncoder head;
  JournalWriter(7, head);
  for (std::size_t size = 0; size <= head.written().size(); ++size) {
    BytesDecoder from(head.written().first(size));
    const JournalEnd end = read_journal(from, 7, [](const JournalRecord&) {});
    if (size < head.written().size()) {
      EXPECT_EQ(end.bytes, 0u);
      EXPECT_THROW(JournalWriter{end}, BadParameters) << size;
    } else {
      EXPECT_NO_THROW(JournalWriter{end});
    }
  }
}

TEST(Journal, OfAnotherSnapshotIsAGap) {
  BytesEncoder to;
  JournalWriter(1, to);
  BytesDecoder from(to.written());
  EXPECT_THROW(read_journal(from, 2, [](const JournalRecord&) {}), JournalGap);
}

TEST(Journal, SectionsThatMustBeUnderstoodAreRefused) {
  const std::vector<Digest> one(1);
  for (const bool must : {true, false}) {
    BytesEncoder to;
    JournalWriter writer(1, to);
    writer.append(one, {}, {{"claims", must, Bytes(3)}}, to);
    BytesDecoder from(to.written());
    std::size_t seen = 0;
    const auto read = [&] {
      read_journal(from, 1,
                   [&](const JournalRecord& record) { seen += 1 + record.sections.size(); });
    };
    if (must)
      EXPECT_THROW(read(), CorruptSnapshot);
    else
      EXPECT_NO_THROW(read());
    EXPECT_EQ(seen, must ? 0u : 1u);
  }
}

TEST(Journal, AnEventTakesAtMostFortyBytes) {
  const std::vector<Digest> digests(200'000, Digest{~std::uint64_t{0}, ~std::uint64_t{0}});
  SplitMix64 random(7);
  std::vector<Nanoseconds> times(digests.size());
  for (Nanoseconds& time : times) time = static_cast<Nanoseconds>(random.next());
  for (const std::size_t count : {1, 2, 100, 65536, 65537, count_of(70'000, 200'000, 200'000)}) {
    for (const bool timed : {false, true}) {
      BytesEncoder to;
      JournalWriter writer(1, to);
      const std::uint64_t before = writer.bytes();
      const auto some = std::span(times).first(timed ? count : 0);
      writer.append(std::span(digests).first(count), some, {}, to);
      EXPECT_LE(writer.bytes() - before, 40 * count) << count;
      std::vector<Nanoseconds> read;
      BytesDecoder from(to.written());
      const JournalEnd end = read_journal(from, 1, [&](const JournalRecord& record) {
        read.insert(read.end(), record.times.begin(), record.times.end());
      });
      EXPECT_EQ(end.events, count);
      EXPECT_EQ(read, std::vector<Nanoseconds>(some.begin(), some.end()));
    }
  }
  BytesEncoder to;
  JournalWriter writer(1, to);
  const std::uint64_t before = writer.bytes();
  writer.append(std::span(digests).first(1), std::span(times).first(1), {}, to);
  EXPECT_EQ(writer.bytes() - before, 37u);
}

TEST(Journal, CompactionPaysWhenTheJournalIsAsLongAsTheSnapshot) {
  EXPECT_FALSE(compaction_pays(1000, 300));
  EXPECT_FALSE(compaction_pays(1 << 20, 2 << 20));
  EXPECT_TRUE(compaction_pays(2 << 20, 2 << 20));
  EXPECT_TRUE(compaction_pays(64 << 10, 300));
}

}  // namespace
}  // namespace sluice
