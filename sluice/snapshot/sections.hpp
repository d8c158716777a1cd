// Named sections: other data that must be durable together with a filter, in the same record:
// offsets of a source, lengths of outputs, claims, an audit. Snapshots and journals both have them.
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
  // True: a reader that does not know the name must refuse the whole; false: it may skip the
  // section.
  bool must_understand = true;
  std::vector<std::byte> bytes;

  friend bool operator==(const Section&, const Section&) = default;
};

// At most 64, with different names; their order matters.
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
// out: it describes the moment of its writing, and must not be written again later.
Sections decode_sections(const std::vector<SectionEntry>& table, Decoder& from,
                         const Understands& understands);
// Throws CorruptSnapshot as decode_sections would, before anything is read.
void check_understood(const std::vector<SectionEntry>& table, const Understands& understands);

}  // namespace sluice
