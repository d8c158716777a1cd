// Named sections: what else has to be durable together with a filter, in the same record. Offsets
// of a source, lengths of outputs, claims and an audit travel so, in snapshots and in journals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/codec.hpp"

namespace sluice {

struct Section {
  std::string name;  // 1 to 64 bytes
  // A reader that does not know the name must refuse the whole; else it may skip the section.
  bool must_understand = true;
  std::vector<std::byte> bytes;

  friend bool operator==(const Section&, const Section&) = default;
};

// At most 64, of different names, in an order that counts.
using Sections = std::vector<Section>;

// Whether a reader knows what a section of this name means.
using Understands = std::function<bool(std::string_view name)>;

inline bool understands_nothing(std::string_view) {
  return false;
}
inline bool understands_all(std::string_view) {
  return true;
}

// A section's entry in a table: all but its bytes.
struct SectionEntry {
  std::string name;
  bool must_understand;
  std::uint64_t size;
};

// Throws BadParameters when a name is too long, empty or there twice, or there are too many.
void encode_section_table(const Sections& sections, Encoder& to);
// Throws CorruptSnapshot.
std::vector<SectionEntry> decode_section_table(Decoder& from);
// Reads the bytes of all, which come next. A section that the reader does not understand is
// refused with CorruptSnapshot when it must be understood. Otherwise it is skipped and not handed
// out: it belongs to the moment that it was written at, and must not be written again later.
Sections decode_sections(const std::vector<SectionEntry>& table, Decoder& from,
                         const Understands& understands);
// Throws CorruptSnapshot as decode_sections would, before anything is read.
void check_understood(const std::vector<SectionEntry>& table, const Understands& understands);

}  // namespace sluice
