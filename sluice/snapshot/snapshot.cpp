#include "sluice/snapshot/snapshot.hpp"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/snapshot/chunks.hpp"
#include "sluice/snapshot/header.hpp"
#include "sluice/snapshot/layout.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
namespace {

// A window is a filter of filters, which the catalogue below it does not know.
AnyFilter decode_any(std::uint16_t kind, std::uint16_t version, Decoder& header, Decoder& payload,
                     MemoryResource& memory) {
  if (static_cast<FilterKind>(kind) == FilterKind::window && version == Window::kVersion)
    return AnyFilter(Window::decode(header, payload, memory));
  return decode_filter(kind, version, header, payload, memory);
}

using layout::Section;

// ---- writing

void put_text(std::string_view text, Encoder& to) {
  if (text.size() > layout::kMostLabelBytes)
    throw BadParameters("a label of a snapshot takes at most " +
                        std::to_string(layout::kMostLabelBytes) + " bytes, not " +
                        std::to_string(text.size()));
  to.u32(static_cast<std::uint32_t>(text.size()));
  to.bytes(std::as_bytes(std::span(text)));
}

void put_section(Section tag, const BytesEncoder& section, Encoder& to) {
  // A longer one is refused with the whole header; here it only must not wrap around.
  if (section.written().size() > layout::kMostHeaderBytes)
    throw BadParameters("a snapshot's header takes at most " +
                        std::to_string(layout::kMostHeaderBytes) + " bytes");
  to.u16(static_cast<std::uint16_t>(tag));
  to.u32(static_cast<std::uint32_t>(section.written().size()));
  to.bytes(section.written());
}

std::vector<std::byte> encode_sections(const Hasher& hasher, const AnyFilter& filter,
                                       const Labels& labels) {
  BytesEncoder sections;

  BytesEncoder of_filter;
  of_filter.u16(static_cast<std::uint16_t>(filter.kind()));
  of_filter.u16(filter.version());
  filter.encode_header(of_filter);
  put_section(Section::filter, of_filter, sections);

  BytesEncoder of_hash;
  of_hash.u8(static_cast<std::uint8_t>(hasher.kind()));
  of_hash.bytes(hasher.secret().bytes());
  put_section(Section::hash, of_hash, sections);

  if (labels.size() > layout::kMostLabels)
    throw BadParameters("a snapshot takes at most " + std::to_string(layout::kMostLabels) +
                        " labels, not " + std::to_string(labels.size()));
  BytesEncoder of_labels;
  of_labels.u32(static_cast<std::uint32_t>(labels.size()));
  for (const auto& [name, value] : labels) {
    put_text(name, of_labels);
    put_text(value, of_labels);
  }
  put_section(Section::labels, of_labels, sections);

  if (sections.written().size() > layout::kMostHeaderBytes)
    throw BadParameters("a snapshot's header takes at most " +
                        std::to_string(layout::kMostHeaderBytes) + " bytes, not " +
                        std::to_string(sections.written().size()) + ": use shorter labels");
  return sections.take();
}

// ---- reading

AnyFilter read_filter(const SnapshotHeader& header, ChunkDecoder& payload, MemoryResource& memory) {
  BytesDecoder fields(header.filter_fields());
  const auto offset = [&] {
    return payload.started() ? payload.offset()
                             : header.fields_at + header.fields_bytes - fields.remaining();
  };
  try {
    AnyFilter filter = decode_any(header.kind, header.version, fields, payload, memory);
    if (fields.remaining() != 0)
      throw CorruptSnapshot("the filter's header is followed by " +
                            std::to_string(fields.remaining()) + " bytes that it does not need");
    return filter;
  } catch (const CorruptAt&) {
    throw;
  } catch (const CorruptSnapshot& error) {
    throw CorruptAt(error.what(), offset());
  }
}

}  // namespace

void check_snapshot(const Hasher& hasher, const AnyFilter& filter, const Labels& labels) {
  encode_sections(hasher, filter, labels);
}

void write_snapshot(const Hasher& hasher, const AnyFilter& filter, const Labels& labels,
                    Encoder& to) {
  const std::vector<std::byte> sections = encode_sections(hasher, filter, labels);
  BytesEncoder preamble;
  preamble.bytes(std::as_bytes(std::span(layout::kMagic)));
  preamble.u32(layout::kVersion);
  preamble.u32(static_cast<std::uint32_t>(sections.size()));
  preamble.bytes(sections);
  const std::uint64_t checksum = checksum_of(preamble.written());
  to.bytes(preamble.written());
  to.u64(checksum);

  ChunkEncoder chunks(to, checksum);
  filter.encode_payload(chunks);
  chunks.finish();
}

std::string text_of(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

std::string difference_between(const std::string& one, const Hasher& one_hasher,
                               const Labels& one_labels, const std::string& other,
                               const Hasher& other_hasher, const Labels& other_labels) {
  if (one_hasher.kind() != other_hasher.kind())
    return fmt::format(
        "'{}' hashes keys with {} and '{}' with {}: give all runs `untrusted_keys`, or none", one,
        name_of(one_hasher.kind()), other, name_of(other_hasher.kind()));
  if (!(one_hasher.secret() == other_hasher.secret()))
    return fmt::format(
        "'{}' and '{}' hash under different secrets, so that the same key is not the same to both: "
        "sites that exchange what they remember must all run with the same `seed` N, or start from "
        "copies of one state file",
        one, other);
  if (one_labels != other_labels)
    return fmt::format(
        "'{}' was made with records and keys '{}' and '{}' with '{}': use the same for both", one,
        text_of(one_labels), other, text_of(other_labels));
  return "";
}

Snapshot read_snapshot(Decoder& from, MemoryResource& memory) {
  SnapshotHeader header = read_header(from);
  ChunkDecoder payload(from, header.bytes(), header.checksum);
  AnyFilter filter = read_filter(header, payload, memory);
  payload.finish();
  return {header.hasher, std::move(filter), std::move(header.labels)};
}

}  // namespace sluice
