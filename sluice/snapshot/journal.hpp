// A journal: what was judged since the last snapshot, so that a state is durable at every batch and
// not only when a filter is written as a whole.
//
// State = snapshot + journal. Each record holds digests, their times if they have any, and the
// named sections of that moment (source offsets, lengths of outputs, ...). Recovery loads the
// snapshot and replays the records' events, in order: a judge by Judge::replay, which says what to
// write, and a filter or window on its own through the same operation as before.
//
// Bounded   At most 40 bytes per event, also when every event is a record of its own: 29 bytes
//           without and 37 with a time, plus its sections.
// Durable   Bytes in, bytes out: the caller that writes them to a file also syncs and truncates it.
// Torn      An incomplete end is dropped, and JournalEnd says how many bytes it has. The end is torn
//           if the bytes stop within a record, or if a record's length or checksum does not match
//           and only zeros, or nothing, follow that field. Anything else is damage: CorruptSnapshot
//           names the byte where the record begins, and nothing is skipped. That includes zeros
//           with data after them in the last record, which a power cut can leave if the file system
//           wrote the record's later pages first: a record that was synced and then damaged looks
//           the same.
// Tied      A journal names the snapshot that it continues by its identity, and each checksum is
//           seeded with the one before it: a record that is missing or moved is detected.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"
#include "sluice/hash/digest.hpp"
#include "sluice/snapshot/sections.hpp"
#include "sluice/window/clock.hpp"

namespace sluice {

// The journal continues another snapshot than the given one. Only the host knows which of the two is
// the newer one: if it is the given one, the journal is no longer needed.
class JournalGap : public BadParameters {
 public:
  using BadParameters::BadParameters;
};

struct JournalRecord {
  std::span<const Digest> digests;
  std::span<const Nanoseconds> times;  // one per digest, or none at all
  Sections sections;                   // those that the reader knows
};

// Where a journal ends: where to truncate it and continue writing.
struct JournalEnd {
  std::uint64_t bytes = 0;     // up to the end of the last complete record; 0: there is no head
  std::uint64_t checksum = 0;  // of that record
  std::uint64_t records = 0;
  std::uint64_t events = 0;
  std::uint64_t torn_bytes = 0;  // after `bytes`: to be cut off
};

class JournalWriter {
 public:
  // Starts a new journal: writes its head. `identity` is that of the snapshot (Snapshot::identity).
  JournalWriter(std::uint64_t identity, Encoder& to);
  // Continues where read_journal ended. Torn bytes must have been cut off. Throws BadParameters if
  // `end.bytes` is 0: such a journal has no head, so start a new one.
  explicit JournalWriter(const JournalEnd& end);

  // Writes one record, or several if there are more than 65,536 events; the last one has the
  // sections. `times` is empty or as long as `digests`. Throws BadParameters, before anything is
  // written, when the sections are more than a record holds or `times` has another length. Also
  // throws what `to` throws: the bytes written so far are then torn, and nothing may be appended
  // after them.
  void append(std::span<const Digest> digests, std::span<const Nanoseconds> times,
              const Sections& sections, Encoder& to);

  std::uint64_t bytes() const noexcept { return end_.bytes; }
  const JournalEnd& end() const noexcept { return end_; }

 private:
  void write_record(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                    std::span<const std::byte> sections, Encoder& to);
  JournalEnd end_;
};

// Reads a journal and calls `apply` for each whole record, in order. Throws JournalGap when it
// continues another snapshot, CorruptSnapshot when it is damaged before its end or has a required
// section that the reader does not know, and what `apply` throws. It holds one record in memory,
// and never reserves more than the journal has.
JournalEnd read_journal(Decoder& from, std::uint64_t identity,
                        const std::function<void(const JournalRecord&)>& apply,
                        const Understands& understands = understands_nothing);

// Whether it is time for a new snapshot: when the journal is as large as the snapshot. Then all
// that is ever written is at most twice the events' own bytes, plus the snapshots of a growing
// filter, and recovery reads at most twice the size of the snapshot.
constexpr bool compaction_pays(std::uint64_t journal_bytes, std::uint64_t snapshot_bytes) noexcept {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;  // less is read back quickly
  return journal_bytes >= std::max(snapshot_bytes, kLeast);
}

}  // namespace sluice
