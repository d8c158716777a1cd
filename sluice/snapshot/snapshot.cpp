#include "sluice/snapshot/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/snapshot/chunks.hpp"
#include "sluice/snapshot/decode_any.hpp"
#include "sluice/snapshot/header.hpp"
#include "sluice/snapshot/layout.hpp"
#include "sluice/snapshot/pull.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
// A window is a filter of filters, which the catalogue below it does not know.
AnyFilter decode_any(std::uint16_t kind, std::uint16_t version, Decoder& header, Decoder& payload,
                     MemoryResource& memory) {
  if (static_cast<FilterKind>(kind) == FilterKind::window && version == Window::kVersion)
    return AnyFilter(Window::decode(header, payload, memory));
  return decode_filter(kind, version, header, payload, memory);
}

namespace {

AnyFilter read_filter(const SnapshotHeader& header, ChunkDecoder& payload, MemoryResource& memory) {
  BytesDecoder fields(header.filter_fields());
  PartDecoder part(payload, header.filter_payload);
  const auto offset = [&] {
    return payload.started() ? payload.offset()
                             : header.fields_at + header.fields_bytes - fields.remaining();
  };
  try {
    AnyFilter filter = decode_any(header.kind, header.version, fields, part, memory);
    if (fields.remaining() != 0)
      throw CorruptSnapshot("the filter's header is followed by " +
                            std::to_string(fields.remaining()) + " bytes that it does not need");
    if (part.remaining() != 0)
      throw CorruptSnapshot(
          fmt::format("the payload is {} bytes longer than its filter", part.remaining()));
    return filter;
  } catch (const CorruptAt&) {
    throw;
  } catch (const CorruptSnapshot& error) {
    throw CorruptAt(error.what(), offset());
  }
}

}  // namespace

void check_snapshot(const Hasher& hasher, const AnyFilter& filter, const Labels& labels,
                    const Sections& sections) {
  encode_preamble(hasher, filter, labels, sections, 0);
}

std::uint64_t write_snapshot(const Hasher& hasher, const AnyFilter& filter, const Labels& labels,
                             Encoder& to, const Sections& sections) {
  SnapshotPull pull(hasher, filter, labels, sections);
  std::vector<std::byte> piece(std::min(pull.size(), layout::kChunkBytes));
  while (const std::size_t count = pull.next(piece)) to.bytes(std::span(piece).first(count));
  return pull.position().checksum;
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

Snapshot read_snapshot(Decoder& from, MemoryResource& memory, const Understands& understands) {
  SnapshotHeader header = read_header(from);
  try {
    check_understood(header.sections, understands);
  } catch (const CorruptSnapshot& error) {
    throw CorruptAt(error.what(), header.preamble.size());
  }
  ChunkDecoder payload(from, header.bytes(), header.checksum, header.payload);
  AnyFilter filter = read_filter(header, payload, memory);
  Sections sections = decode_sections(header.sections, payload, understands);
  return {header.hasher, std::move(filter), std::move(header.labels), std::move(sections),
          payload.checksum()};
}

}  // namespace sluice
