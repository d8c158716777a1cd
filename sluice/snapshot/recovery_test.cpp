// Recovery: a snapshot and the journal that continues it, as they may be found after a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "sluice/filters/catalogue.hpp"
#include "sluice/snapshot/journal.hpp"
#include "sluice/snapshot/snapshot.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/snapshot_bytes.hpp"

namespace sluice {
namespace {

using Bytes = std::vector<std::byte>;
using testing_support::count_of;
using testing_support::digest_of;

const Hasher kHasher(HashKind::xxh3, Secret::from_seed(9));

// What a host has on its disk, and the filter that made it. Counts how often a key was remembered:
// `counting` would hold it twice, and forget it only once.
struct Disk {
  AnyFilter live = make_filter("counting,bytes=4KiB,probes=4,keys=900", {});
  Bytes snapshot;
  std::uint64_t identity = 0;
  BytesEncoder journal;
  std::optional<JournalWriter> writer;
  std::vector<std::uint64_t> ends;
  int compactions = 0;

  Disk() { compact(); }

  void compact() {
    BytesEncoder to;
    identity = write_snapshot(kHasher, live, {}, to);
    snapshot = to.take();
    journal.take();
    writer.emplace(identity, journal);
    ends = {writer->bytes()};
    ++compactions;
  }

  void judge(std::uint64_t from, std::uint64_t to) {
    std::vector<Digest> digests;
    for (; from < to; ++from) digests.push_back(digest_of(from));
    std::vector<Verdict> verdicts(digests.size());
    ASSERT_EQ(live.observe(digests, verdicts), digests.size());
    writer->append(digests, {}, {{"offsets", true, Bytes(8, std::byte(to))}}, journal);
    ends.push_back(writer->bytes());
  }
};

Bytes bytes_of(const AnyFilter& filter) {
  return testing_support::snapshot_bytes(kHasher, filter);
}

struct Found {
  Bytes state;
  JournalEnd end;
};

// As a host does it. A journal of another snapshot is older than this one: nothing of it is applied.
Found recovered(std::span<const std::byte> snapshot, Decoder& journal) {
  BytesDecoder from(snapshot);
  Snapshot loaded = read_snapshot(from);
  Found found;
  try {
    found.end = read_journal(
        journal, loaded.identity,
        [&](const JournalRecord& record) {
          std::vector<Verdict> verdicts(record.digests.size());
          ASSERT_EQ(loaded.filter.observe(record.digests, verdicts), record.digests.size());
        },
        understands_all);
  } catch (const JournalGap&) {
  }
  found.state = bytes_of(loaded.filter);
  return found;
}
Found recovered(std::span<const std::byte> snapshot, std::span<const std::byte> journal) {
  BytesDecoder from(journal);
  return recovered(snapshot, from);
}

TEST(Recovery, IsTheStateOfTheLastWholeRecord) {
  Disk disk;
  for (std::uint64_t i = 0; i < 12; ++i) disk.judge(20 * i, 20 * i + 30);
  const Found found = recovered(disk.snapshot, disk.journal.written());
  EXPECT_EQ(found.end.records, 12u);
  EXPECT_EQ(found.state, bytes_of(disk.live));
}

// A crash between the new snapshot and the new journal leaves the old journal beside it, whose events
// the snapshot holds already.
TEST(Recovery, AJournalOfAnOlderSnapshotIsNotApplied) {
  Disk disk;
  disk.judge(0, 100);
  const Bytes old_snapshot = disk.snapshot;
  const Bytes old_journal(disk.journal.written().begin(), disk.journal.written().end());
  disk.compact();
  ASSERT_NE(disk.snapshot, old_snapshot);
  EXPECT_EQ(recovered(disk.snapshot, old_journal).end.bytes, 0u);
  EXPECT_EQ(recovered(disk.snapshot, old_journal).state, bytes_of(disk.live));
  // And the other way round: the snapshot before, with its own journal, is as good.
  EXPECT_EQ(recovered(old_snapshot, old_journal).state, bytes_of(disk.live));
  BytesDecoder from(old_journal);
  EXPECT_THROW(read_journal(from, disk.identity, [](const JournalRecord&) { FAIL(); }), JournalGap);
}

// Records that are there twice, or in another order, or of another journal of the same snapshot.
TEST(Recovery, RecordsOutOfPlaceAreReported) {
  Disk disk;
  for (std::uint64_t i = 0; i < 8; ++i) disk.judge(10 * i, 10 * i + 10 + i % 3);
  const Bytes good(disk.journal.written().begin(), disk.journal.written().end());
  const auto record = [&](std::size_t i) {
    return std::span(good).subspan(disk.ends[i], disk.ends[i + 1] - disk.ends[i]);
  };
  const auto journal_of = [&](const std::vector<std::size_t>& order) {
    Bytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(disk.ends[0]));
    for (const std::size_t i : order) bytes.insert(bytes.end(), record(i).begin(), record(i).end());
    return bytes;
  };
  EXPECT_EQ(recovered(disk.snapshot, journal_of({0, 1, 2, 3, 4, 5, 6, 7})).end.records, 8u);
  for (const std::vector<std::size_t>& order : std::vector<std::vector<std::size_t>>{
           {0, 0, 1, 2, 3}, {0, 1, 2, 1, 2, 3, 4}, {1, 0, 2}, {0, 2, 3, 4}, {3, 4, 5, 6, 7}})
    EXPECT_THROW(recovered(disk.snapshot, journal_of(order)), CorruptSnapshot);
  // The whole of it twice, head included.
  Bytes twice = good;
  twice.insert(twice.end(), good.begin(), good.end());
  EXPECT_THROW(recovered(disk.snapshot, twice), CorruptSnapshot);
  EXPECT_THROW(recovered(disk.snapshot, journal_of({0, 1, 2, 3, 4, 5, 6, 7, 7})), CorruptSnapshot);
}

TEST(Recovery, ABitThatFlipsIsReportedOrEndsTheJournal) {
  Disk disk;
  for (std::uint64_t i = 0; i < 4; ++i) disk.judge(3 * i, 3 * i + 3);
  const Bytes good(disk.journal.written().begin(), disk.journal.written().end());
  std::vector<Bytes> states;
  for (const std::uint64_t end : disk.ends)
    states.push_back(recovered(disk.snapshot, std::span(good).first(end)).state);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    try {
      const Found found = recovered(disk.snapshot, bad);
      EXPECT_GE(bit / 8, disk.ends[3]) << "only the last record may be taken for torn";
      EXPECT_EQ(found.state, states[3]) << bit;
    } catch (const CorruptSnapshot&) {
    }
  }
}

TEST(Recovery, CompactionKeepsTheJournalAsShortAsTheSnapshot) {
  Disk disk;
  std::uint64_t written = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    disk.judge(3 * i, 3 * i + 40);
    if (!compaction_pays(disk.writer->bytes(), disk.snapshot.size())) continue;
    written += disk.writer->bytes() + disk.snapshot.size();
    disk.compact();
    EXPECT_EQ(recovered(disk.snapshot, disk.journal.written()).state, bytes_of(disk.live));
  }
  EXPECT_GT(disk.compactions, 10);
  EXPECT_LT(written, 2 * 2000 * 40 * 40) << "at most twice what the events take";
  EXPECT_EQ(recovered(disk.snapshot, disk.journal.written()).state, bytes_of(disk.live));
}

// A journal that is made as it is read: it is never in memory as a whole.
class EndlessJournal final : public Decoder {
 public:
  EndlessJournal(std::uint64_t identity, std::uint64_t records) {
    writer_.emplace(identity, made_);
    left_ = writer_->bytes();
    digests_.resize(1000);
    BytesEncoder probe;
    JournalWriter(*writer_).append(digests_, {}, {}, probe);
    left_ += records * probe.written().size();
  }
  void bytes(std::span<std::byte> out) override {
    if (out.size() > left_) throw CorruptSnapshot("the bytes are not there");
    left_ -= out.size();
    while (!out.empty()) {
      if (at_ == made_.written().size()) make();
      const std::size_t count = std::min(out.size(), made_.written().size() - at_);
      std::memcpy(out.data(), made_.written().data() + at_, count);
      out = out.subspan(count);
      at_ += count;
    }
  }
  std::uint64_t remaining() const override { return left_; }
  std::uint64_t most() const { return most_; }

 private:
  void make() {
    made_.take();
    at_ = 0;
    for (Digest& digest : digests_) digest = digest_of(next_++ % 500);
    writer_->append(digests_, {}, {}, made_);
    most_ = std::max<std::uint64_t>(most_, made_.written().size());
  }

  std::uint64_t left_ = 0, next_ = 0, most_ = 0;
  std::size_t at_ = 0;
  BytesEncoder made_;
  std::optional<JournalWriter> writer_;
  std::vector<Digest> digests_;
};

TEST(Recovery, AJournalLongerThanMemoryIsStreamed) {
  Disk disk;
  const std::uint64_t records = count_of(300, 3000, 3000);
  EndlessJournal journal(disk.identity, records);
  const std::uint64_t size = journal.remaining();
  EXPECT_GT(size, 16'000 * records);
  const Found found = recovered(disk.snapshot, journal);
  EXPECT_EQ(found.end.records, records);
  EXPECT_EQ(found.end.bytes, size);
  EXPECT_LT(journal.most(), 17'000u) << "what is held at a time: one record";
}

}  // namespace
}  // namespace sluice
