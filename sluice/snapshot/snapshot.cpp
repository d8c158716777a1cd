#include "sluice/snapshot/snapshot.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/snapshot/chunks.hpp"
#include "sluice/snapshot/layout.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
namespace {

// A window is a filter of filters, which the catalogue below it does not know.
AnyFilter decode_any(std::uint16_t kind, std::uint16_t version, Decoder& header, Decoder& payload) {
  if (static_cast<FilterKind>(kind) == FilterKind::window && version == Window::kVersion)
    return AnyFilter(Window::decode(header, payload));
  return decode_filter(kind, version, header, payload);
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

// A part of the header in memory that knows where it stood in the snapshot.
struct Part {
  Part(std::span<const std::byte> data, std::uint64_t starts_at)
      : bytes(data), ends_at(starts_at + data.size()) {}
  std::uint64_t offset() const { return ends_at - bytes.remaining(); }

  BytesDecoder bytes;
  std::uint64_t ends_at;
};

// Runs `read` and adds the place to what it complains about.
template <class Read>
auto located(Part& part, Read read) {
  try {
    return read(part.bytes);
  } catch (const CorruptAt&) {
    throw;
  } catch (const CorruptSnapshot& error) {
    throw CorruptAt(error.what(), part.offset());
  }
}

void expect_end(const Part& part, const char* what) {
  if (part.bytes.remaining() != 0)
    throw CorruptAt(std::string(what) + " is followed by " +
                        std::to_string(part.bytes.remaining()) + " bytes that it does not need",
                    part.offset());
}

// The bytes from magic to the end of the sections, checked against their checksum.
std::vector<std::byte> read_preamble(Decoder& from) {
  const std::uint64_t total = from.remaining();
  std::vector<std::byte> preamble(std::min(total, layout::kHeaderAt));
  from.bytes(preamble);
  const auto magic = std::as_bytes(std::span(layout::kMagic));
  const std::size_t seen = std::min(preamble.size(), magic.size());
  if (!std::ranges::equal(std::span(preamble).first(seen), magic.first(seen)))
    throw CorruptAt("this is not a sluice snapshot, or its first bytes were changed", 0);
  if (preamble.size() < layout::kHeaderAt)
    throw CorruptAt(total == 0 ? "this is not a sluice snapshot: it is empty"
                               : "the snapshot is cut off: it ends before its header",
                    total);

  BytesDecoder fields{std::span(preamble).subspan(magic.size())};
  if (const std::uint32_t version = fields.u32(); version != layout::kVersion)
    throw CorruptAt("the snapshot has format version " + std::to_string(version) +
                        ", this sluice reads version " + std::to_string(layout::kVersion) +
                        ": was it written by a newer sluice?",
                    layout::kVersionAt);
  const std::uint64_t length = fields.u32();
  if (length > layout::kMostHeaderBytes)
    throw CorruptAt("the header claims " + std::to_string(length) + " bytes, but at most " +
                        std::to_string(layout::kMostHeaderBytes) + " are allowed",
                    layout::kHeaderLengthAt);
  if (from.remaining() < length + layout::kChecksumBytes)
    throw CorruptAt("the snapshot is cut off: it ends within its header", total);

  preamble.resize(layout::kHeaderAt + length);
  from.bytes(std::span(preamble).subspan(layout::kHeaderAt));
  return preamble;
}

[[noreturn]] void refuse_section(std::uint16_t tag, std::uint64_t offset) {
  if (tag == 0 || tag > static_cast<std::uint16_t>(Section::labels))
    throw CorruptAt("the header has a section of unknown kind " + std::to_string(tag) +
                        ": was it written by a newer sluice?",
                    offset);
  throw CorruptAt("section " + std::to_string(tag) + " of the header is not in its place", offset);
}

// The next section, which must have this tag.
Part next_section(Part& header, Section tag) {
  return located(header, [&](BytesDecoder& bytes) {
    const std::uint64_t at = header.offset();
    const std::uint16_t found = bytes.u16();
    if (found != static_cast<std::uint16_t>(tag)) refuse_section(found, at);
    const std::uint32_t length = bytes.u32();
    const std::uint64_t starts_at = header.offset();
    return Part(bytes.view(length), starts_at);
  });
}

Hasher read_hasher(Part section) {
  return located(section, [&](BytesDecoder& bytes) {
    const std::uint64_t at = section.offset();
    const std::uint8_t kind = bytes.u8();
    if (kind != static_cast<std::uint8_t>(HashKind::xxh3) &&
        kind != static_cast<std::uint8_t>(HashKind::highway))
      throw CorruptAt("the hash has unknown number " + std::to_string(kind) +
                          ": was it written by a newer sluice?",
                      at);
    std::array<std::byte, Secret::kBytes> secret;
    bytes.bytes(secret);
    expect_end(section, "the hash's secret");
    return Hasher(static_cast<HashKind>(kind), Secret::from_bytes(secret));
  });
}

std::string read_text(BytesDecoder& from) {
  const std::uint32_t size = from.u32();
  if (size > layout::kMostLabelBytes)
    throw CorruptSnapshot("a label claims " + std::to_string(size) + " bytes, but at most " +
                          std::to_string(layout::kMostLabelBytes) + " are allowed");
  const auto text = from.view(size);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

Labels read_labels(Part section) {
  return located(section, [&](BytesDecoder& bytes) {
    const std::uint32_t count = bytes.u32();
    if (count > layout::kMostLabels)
      throw CorruptSnapshot("the snapshot claims " + std::to_string(count) +
                            " labels, but at most " + std::to_string(layout::kMostLabels) +
                            " are allowed");
    Labels labels;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::string name = read_text(bytes);
      labels.emplace_back(std::move(name), read_text(bytes));
    }
    expect_end(section, "the last label");
    return labels;
  });
}

AnyFilter read_filter(Part& section, ChunkDecoder& payload) {
  try {
    const std::uint16_t kind = section.bytes.u16();
    const std::uint16_t version = section.bytes.u16();
    AnyFilter filter = decode_any(kind, version, section.bytes, payload);
    expect_end(section, "the filter's header");
    return filter;
  } catch (const CorruptAt&) {
    throw;
  } catch (const CorruptSnapshot& error) {
    throw CorruptAt(error.what(), payload.started() ? payload.offset() : section.offset());
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

Snapshot read_snapshot(Decoder& from) {
  const std::vector<std::byte> preamble = read_preamble(from);
  const std::uint64_t checksum = from.u64();
  if (checksum != checksum_of(preamble))
    throw CorruptAt("the header is damaged: its checksum does not match", preamble.size());

  Part header{std::span(preamble).subspan(layout::kHeaderAt), layout::kHeaderAt};
  Part of_filter = next_section(header, Section::filter);
  const Hasher hasher = read_hasher(next_section(header, Section::hash));
  Labels labels = read_labels(next_section(header, Section::labels));
  if (header.bytes.remaining() >= sizeof(std::uint16_t)) {
    const std::uint64_t at = header.offset();
    refuse_section(header.bytes.u16(), at);
  }
  expect_end(header, "the last section");

  ChunkDecoder payload(from, preamble.size() + layout::kChecksumBytes, checksum);
  AnyFilter filter = read_filter(of_filter, payload);
  payload.finish();
  return {hasher, std::move(filter), std::move(labels)};
}

}  // namespace sluice
