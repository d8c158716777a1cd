// A snapshot: a filter as bytes, with its hash function and labels that describe the run.
//
// The format is versioned and checksummed (layout.hpp, docs/format.md). The same state gives the
// same bytes. Payloads stream through in chunks of 1 MiB: neither saving nor loading needs a second
// copy of the filter. To get the bytes piece by piece, use pull.hpp.
//
// Reading treats the bytes as hostile: every length is checked before an allocation, and a table is
// only allocated when the snapshot has exactly its bytes. Checksums catch accidents, not forgery: a
// snapshot from someone else may hold any keys, but it cannot harm the process.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sluice/base/codec.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/snapshot/sections.hpp"

namespace sluice {

// Settings of the run that made the snapshot, as pairs of name and value. Their order matters.
// Names and values may have any bytes; at most 1024 pairs, at most 65536 bytes per name or value.
using Labels = std::vector<std::pair<std::string, std::string>>;

struct Snapshot {
  Hasher hasher;
  AnyFilter filter;
  Labels labels;
  Sections sections = {};  // those that the reader knows
  // The snapshot's last checksum. A delta and a journal use it to name the version that they
  // follow.
  std::uint64_t identity = 0;
};

// Throws what write_snapshot would throw for these arguments, so that they can be checked before a
// run instead of at its end.
void check_snapshot(const Hasher& hasher, const AnyFilter& filter, const Labels& labels,
                    const Sections& sections = {});

// Returns the snapshot's identity. Throws BadParameters if the labels or sections do not fit into a
// header, and any exception of `to`.
std::uint64_t write_snapshot(const Hasher& hasher, const AnyFilter& filter, const Labels& labels,
                             Encoder& to, const Sections& sections = {});

// Two snapshots can be merged, or have a delta between them, only if they are of one family: equal
// hash, secret and labels. Returns an empty string if these are; otherwise a sentence that names
// both, says why not and what would be right.
std::string difference_between(const std::string& one, const Hasher& one_hasher,
                               const Labels& one_labels, const std::string& other,
                               const Hasher& other_hasher, const Labels& other_labels);

// Labels for messages, such as "records=csv key=id".
std::string text_of(const Labels& labels);

// Reads one snapshot, which must be all that is left in `from`. Throws CorruptSnapshot with what is
// wrong and at which byte, and BadParameters when there is no memory for the filter. A required
// section that the reader does not know is refused before anything else is read.
Snapshot read_snapshot(Decoder& from, MemoryResource& memory = default_memory(),
                       const Understands& understands = understands_nothing);

}  // namespace sluice
