// The part of a snapshot before its payload, read and checked without making the filter.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sluice/base/codec.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/snapshot/layout.hpp"
#include "sluice/snapshot/sections.hpp"
#include "sluice/snapshot/snapshot.hpp"

namespace sluice {

struct SnapshotHeader {
  std::vector<std::byte> preamble;  // from the magic to the end of the header
  std::uint64_t checksum;           // of the preamble
  std::uint16_t kind;               // of the filter, perhaps one that this build does not know
  std::uint16_t version;
  std::uint64_t fields_at;  // offset of the filter's own fields in the preamble
  std::uint64_t fields_bytes;
  Hasher hasher;
  Labels labels;
  std::vector<SectionEntry> sections;
  std::uint64_t filter_payload;  // bytes of the payload that are the filter's; sections follow
  std::uint64_t payload;         // all bytes of the payload

  std::span<const std::byte> filter_fields() const {
    return std::span(preamble).subspan(fields_at, fields_bytes);
  }
  // Number of bytes before the payload.
  std::uint64_t bytes() const { return preamble.size() + layout::kChecksumBytes; }
};

// The preamble. Throws BadParameters when labels or sections are more than a header holds.
std::vector<std::byte> encode_preamble(const Hasher& hasher, const AnyFilter& filter,
                                       const Labels& labels, const Sections& sections,
                                       std::uint64_t filter_payload);

// Throws CorruptSnapshot with what is wrong and at which byte.
SnapshotHeader read_header(Decoder& from);

}  // namespace sluice
