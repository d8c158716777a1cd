#include "sluice/snapshot/header.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/snapshot/chunks.hpp"
#include "sluice/snapshot/layout.hpp"

namespace sluice {
namespace {

using layout::Section;

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

}  // namespace

SnapshotHeader read_header(Decoder& from) {
  std::vector<std::byte> preamble = read_preamble(from);
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
  const auto [kind, version] = located(of_filter, [](BytesDecoder& bytes) {
    const std::uint16_t number = bytes.u16();
    return std::pair(number, bytes.u16());
  });
  const std::uint64_t fields_at = of_filter.offset();
  const std::uint64_t fields_bytes = of_filter.bytes.remaining();
  return {std::move(preamble), checksum,     kind,   version,
          fields_at,           fields_bytes, hasher, std::move(labels)};
}

}  // namespace sluice
