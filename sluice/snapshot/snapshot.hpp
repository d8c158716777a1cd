// A snapshot: a filter as bytes, with the hash it was fed by and labels that tell which run made
// it.
//
// The format is versioned and checksummed (layout.hpp, docs/format.md). The same state gives the
// same bytes. Payloads stream through in chunks of 1 MiB: neither saving nor loading needs a second
// copy of the filter. Whoever wants the bytes piece by piece pulls them (pull.hpp).
//
// Reading treats the bytes as hostile: every length is checked before an allocation, and a table is
// only allocated when the snapshot brings exactly its bytes. Checksums catch accidents; they are no
// signature, so a snapshot from someone else may hold any keys, but it cannot harm the process.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sluice/base/codec.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/snapshot/sections.hpp"

namespace sluice {

// What the run that made the snapshot was told: (name, value) in an order that counts. Any bytes;
// at most 1024 pairs, at most 65536 bytes per text.
using Labels = std::vector<std::pair<std::string, std::string>>;

struct Snapshot {
  Hasher hasher;
  AnyFilter filter;
  Labels labels;
  Sections sections = {};  // those that the reader understands
  // The snapshot's last checksum, by which a delta and a journal know the version that they follow.
  std::uint64_t identity = 0;
};

// Throws what write_snapshot would throw of its arguments: asked before a run instead of at its
// end.
void check_snapshot(const Hasher& hasher, const AnyFilter& filter, const Labels& labels,
                    const Sections& sections = {});

// Returns its identity. Throws BadParameters when labels or sections are more than a header holds,
// and whatever `to` throws.
std::uint64_t write_snapshot(const Hasher& hasher, const AnyFilter& filter, const Labels& labels,
                             Encoder& to, const Sections& sections = {});

// What keeps two snapshots from being of one family, whose filters can be merged and told apart by
// a delta: a sentence that names both and says what would be right, or nothing.
std::string difference_between(const std::string& one, const Hasher& one_hasher,
                               const Labels& one_labels, const std::string& other,
                               const Hasher& other_hasher, const Labels& other_labels);

// "records=csv key=id": labels for messages.
std::string text_of(const Labels& labels);

// Reads one snapshot, which must be all that is left in `from`. Throws CorruptSnapshot with what is
// wrong and at which byte, and BadParameters when the memory for the filter cannot be had. A
// section that must be understood and is not is refused before anything else is read.
Snapshot read_snapshot(Decoder& from, MemoryResource& memory = default_memory(),
                       const Understands& understands = understands_nothing);

}  // namespace sluice
