#include "sluice/snapshot/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "sluice/base/error.hpp"
#include "sluice/snapshot/layout.hpp"

namespace sluice {
namespace {

bool good_name(std::string_view name) {
  return !name.empty() && name.size() <= layout::kMostSectionName;
}

void pass_over(std::uint64_t count, Decoder& from) {
  std::array<std::byte, 4096> unread;
  while (count != 0) {
    const std::uint64_t some = std::min<std::uint64_t>(count, unread.size());
    from.bytes(std::span(unread).first(some));
    count -= some;
  }
}

}  // namespace

void encode_section_table(const Sections& sections, Encoder& to) {
  if (sections.size() > layout::kMostSections)
    throw BadParameters(fmt::format("a snapshot takes at most {} sections, not {}",
                                    layout::kMostSections, sections.size()));
  to.varint(sections.size());
  for (auto section = sections.begin(); section != sections.end(); ++section) {
    if (!good_name(section->name))
      throw BadParameters(fmt::format("the name of a section takes 1 to {} bytes, not {}",
                                      layout::kMostSectionName, section->name.size()));
    if (std::any_of(sections.begin(), section,
                    [&](const Section& before) { return before.name == section->name; }))
      throw BadParameters(fmt::format("two sections have the name '{}'", section->name));
    to.u8(section->must_understand);
    to.varint(section->name.size());
    to.bytes(std::as_bytes(std::span(section->name)));
    to.varint(section->bytes.size());
  }
}

std::vector<SectionEntry> decode_section_table(Decoder& from) {
  const std::uint64_t count = from.varint();
  if (count > layout::kMostSections)
    throw CorruptSnapshot(fmt::format("{} sections are claimed, but at most {} are allowed", count,
                                      layout::kMostSections));
  std::vector<SectionEntry> table;
  for (std::uint64_t i = 0; i < count; ++i) {
    SectionEntry entry;
    const std::uint8_t flags = from.u8();
    entry.must_understand = flags == 1;
    const std::uint64_t length = from.varint();
    if (flags > 1 || length == 0 || length > layout::kMostSectionName)
      throw CorruptSnapshot(fmt::format("section {} has fields that no section has", i));
    entry.name.resize(length);
    from.bytes(std::as_writable_bytes(std::span(entry.name)));
    entry.size = from.varint();
    if (entry.size > layout::kMostPayloadBytes ||
        std::ranges::any_of(table, [&](const auto& before) { return before.name == entry.name; }))
      throw CorruptSnapshot(fmt::format("section {} has fields that no section has", i));
    table.push_back(std::move(entry));
  }
  return table;
}

void check_understood(const std::vector<SectionEntry>& table, const Understands& understands) {
  for (const SectionEntry& entry : table)
    if (entry.must_understand && !understands(entry.name))
      throw CorruptSnapshot(
          fmt::format("it has a section '{}' that must be understood, and this reader does not "
                      "know it: read it with the program that wrote it, or a newer one",
                      entry.name));
}

Sections decode_sections(const std::vector<SectionEntry>& table, Decoder& from,
                         const Understands& understands) {
  check_understood(table, understands);
  Sections sections;
  for (const SectionEntry& entry : table) {
    if (entry.size > from.remaining())
      throw CorruptSnapshot(fmt::format("section '{}' is not there whole", entry.name));
    if (!understands(entry.name)) {
      pass_over(entry.size, from);
      continue;
    }
    Section section{entry.name, entry.must_understand, std::vector<std::byte>(entry.size)};
    from.bytes(section.bytes);
    sections.push_back(std::move(section));
  }
  return sections;
}

}  // namespace sluice
