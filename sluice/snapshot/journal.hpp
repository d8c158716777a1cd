// A journal: what was judged since the last snapshot, so that a state is durable at every batch and
// not only when a filter is written as a whole.
//
// State = snapshot + journal. Each record holds digests, their times where there are any, and the
// named sections of that moment (source offsets, lengths of outputs, ...). Recovery loads the
// snapshot and gives the records' events, in order, to the verb that they went through before.
//
// Bounded   At most 40 bytes per event, also when every event is a record of its own: 29 bytes
//           without and 37 with a time, plus its sections.
// Durable   Bytes in, bytes out: whoever writes them to a file syncs it and cuts it back.
// Torn      A record that was not written to its end is dropped, and JournalEnd says so. A cut, zeros
//           where data should be, or one damaged record at the very end count as torn. Damage with
//           whole bytes behind it is reported: CorruptSnapshot.
// Tied      A journal names the snapshot that it continues by its identity, and each checksum is
//           seeded with the one before it: no record can be lost in the middle or change places.
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

// The journal continues another snapshot than the one that it was to be read after.
class JournalGap : public BadParameters {
 public:
  using BadParameters::BadParameters;
};

struct JournalRecord {
  std::span<const Digest> digests;
  std::span<const Nanoseconds> times;  // one per digest, or none at all
  Sections sections;                   // those that the reader understands
};

// How far a journal goes: where to cut it and to write on.
struct JournalEnd {
  std::uint64_t bytes = 0;     // up to the end of the last whole record; 0: not even a head
  std::uint64_t checksum = 0;  // of that record
  std::uint64_t records = 0;
  std::uint64_t events = 0;
  std::uint64_t torn_bytes = 0;  // behind `bytes`: to be cut off
};

class JournalWriter {
 public:
  // Of a new journal: writes its head. `identity` is that of the snapshot (Snapshot::identity).
  JournalWriter(std::uint64_t identity, Encoder& to);
  // Goes on where read_journal ended, which was not at 0. What is torn must have been cut off.
  explicit JournalWriter(const JournalEnd& end) : end_(end) { end_.torn_bytes = 0; }

  // Writes one record, or several where there are more than 65,536 events; the sections stand in the
  // last. `times` is empty or as long as `digests`. Throws BadParameters, before anything is
  // written, when the sections are more than a record holds or the times are of another number, and whatever `to` throws: what was
  // written then is torn, and nothing may be appended behind it.
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
// continues another snapshot, CorruptSnapshot when it is damaged before its end or has a section
// that must be understood and is not, and whatever `apply` throws. A record is held in memory as a
// whole, never more than the journal brings.
JournalEnd read_journal(Decoder& from, std::uint64_t identity,
                        const std::function<void(const JournalRecord&)>& apply,
                        const Understands& understands = understands_nothing);

// Whether a new snapshot pays: it costs as much writing as it has bytes. Made when the journal has
// as many, all that is ever written is at most twice the events' own bytes and the snapshots of a
// growing filter, and recovery reads at most twice the snapshot.
constexpr bool compaction_pays(std::uint64_t journal_bytes, std::uint64_t snapshot_bytes) noexcept {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;  // less is read back in no time
  return journal_bytes >= std::max(snapshot_bytes, kLeast);
}

}  // namespace sluice
