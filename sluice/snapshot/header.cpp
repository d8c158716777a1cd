#include "sluice/snapshot/header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "sluice/base/error.hpp"
#include "sluice/snapshot/chunks.hpp"

namespace sluice {
namespace {

// ---- writing

void put_text(std::string_view text, Encoder& to) {
  if (text.size() > layout::kMostLabelBytes)
    throw BadParameters(fmt::format("a label of a snapshot takes at most {} bytes, not {}",
                                    layout::kMostLabelBytes, text.size()));
  to.varint(text.size());
  to.bytes(std::as_bytes(std::span(text)));
}

void put_labels(const Labels& labels, Encoder& to) {
  if (labels.size() > layout::kMostLabels)
    throw BadParameters(fmt::format("a snapshot takes at most {} labels, not {}",
                                    layout::kMostLabels, labels.size()));
  to.varint(labels.size());
  for (const auto& [name, value] : labels) {
    put_text(name, to);
    put_text(value, to);
  }
}

// ---- reading

// The header in memory, which knows where it stood in the snapshot.
class Part final : public Decoder {
 public:
  Part(std::span<const std::byte> data, std::uint64_t starts_at)
      : bytes_(data), ends_at_(starts_at + data.size()) {}
  void bytes(std::span<std::byte> out) override { bytes_.bytes(out); }
  std::uint64_t remaining() const override { return bytes_.remaining(); }
  std::span<const std::byte> view(std::uint64_t size) { return bytes_.view(size); }
  std::uint64_t offset() const { return ends_at_ - bytes_.remaining(); }

 private:
  BytesDecoder bytes_;
  std::uint64_t ends_at_;
};

// The bytes from the magic to the end of the header.
std::vector<std::byte> read_preamble(Decoder& from) {
  const std::uint64_t total = from.remaining();
  std::vector<std::byte> preamble(std::min(total, layout::kHeaderLengthAt));
  from.bytes(preamble);
  const auto magic = std::as_bytes(std::span(layout::kMagic));
  const std::size_t seen = std::min(preamble.size(), magic.size());
  const auto delta = std::as_bytes(std::span(layout::kDeltaMagic));
  if (preamble.size() >= delta.size() &&
      std::ranges::equal(std::span(preamble).first(delta.size()), delta))
    throw CorruptAt("this is a delta, not a snapshot: apply it to the state that it was made from",
                    0);
  if (!std::ranges::equal(std::span(preamble).first(seen), magic.first(seen)))
    throw CorruptAt("this is not a sluice snapshot, or its first bytes were changed", 0);
  if (preamble.size() < layout::kHeaderLengthAt)
    throw CorruptAt(total == 0 ? "this is not a sluice snapshot: it is empty"
                               : "the snapshot is cut off: it ends before its header",
                    total);
  if (const auto version = std::to_integer<unsigned>(preamble[layout::kVersionAt]);
      version != layout::kVersion)
    throw CorruptAt(fmt::format("the snapshot has format version {}, this sluice reads version "
                                "{}: was it written by a newer sluice?",
                                version, layout::kVersion),
                    layout::kVersionAt);

  std::uint64_t length = 0;
  try {
    length = from.varint();
  } catch (const CorruptSnapshot&) {
    throw CorruptAt("the snapshot is cut off or damaged: it has no length of a header",
                    layout::kHeaderLengthAt);
  }
  if (length > layout::kMostHeaderBytes)
    throw CorruptAt(fmt::format("the header claims {} bytes, but at most {} are allowed", length,
                                layout::kMostHeaderBytes),
                    layout::kHeaderLengthAt);
  if (from.remaining() < length + layout::kChecksumBytes)
    throw CorruptAt("the snapshot is cut off: it ends within its header", total);
  BytesEncoder fixed;
  fixed.bytes(preamble);
  fixed.varint(length);
  preamble = fixed.take();
  const std::size_t header_at = preamble.size();
  preamble.resize(header_at + length);
  from.bytes(std::span(preamble).subspan(header_at));
  return preamble;
}

std::uint16_t read_number(Decoder& from, const char* what) {
  const std::uint64_t number = from.varint();
  if (number > std::numeric_limits<std::uint16_t>::max())
    throw CorruptSnapshot(
        fmt::format("the filter has {} {}: was it written by a newer sluice?", what, number));
  return static_cast<std::uint16_t>(number);
}

Hasher read_hasher(Decoder& from) {
  const std::uint8_t kind = from.u8();
  if (kind != static_cast<std::uint8_t>(HashKind::xxh3) &&
      kind != static_cast<std::uint8_t>(HashKind::highway))
    throw CorruptSnapshot(
        fmt::format("the hash has unknown number {}: was it written by a newer sluice?", kind));
  std::array<std::byte, Secret::kBytes> secret;
  from.bytes(secret);
  return Hasher(static_cast<HashKind>(kind), Secret::from_bytes(secret));
}

std::string read_text(Part& from) {
  const std::uint64_t size = from.varint();
  if (size > layout::kMostLabelBytes)
    throw CorruptSnapshot(fmt::format("a label claims {} bytes, but at most {} are allowed", size,
                                      layout::kMostLabelBytes));
  const auto text = from.view(size);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

Labels read_labels(Part& from) {
  const std::uint64_t count = from.varint();
  if (count > layout::kMostLabels)
    throw CorruptSnapshot(fmt::format("the snapshot claims {} labels, but at most {} are allowed",
                                      count, layout::kMostLabels));
  Labels labels;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name = read_text(from);
    labels.emplace_back(std::move(name), read_text(from));
  }
  return labels;
}

// The sum of what the header says of the payload.
std::uint64_t payload_of(std::uint64_t filter, const std::vector<SectionEntry>& sections) {
  // Each is at most 2^62, and there are few: one addition more cannot wrap around.
  std::uint64_t payload = filter;
  for (const SectionEntry& entry : sections) {
    if (payload > layout::kMostPayloadBytes) break;
    payload += entry.size;
  }
  if (payload > layout::kMostPayloadBytes)
    throw CorruptSnapshot("the header claims a payload that no memory holds");
  return payload;
}

}  // namespace

std::vector<std::byte> encode_preamble(const Hasher& hasher, const AnyFilter& filter,
                                       const Labels& labels, const Sections& sections,
                                       std::uint64_t filter_payload) {
  BytesEncoder fields;
  filter.encode_header(fields);
  BytesEncoder header;
  header.varint(static_cast<std::uint16_t>(filter.kind()));
  header.varint(filter.version());
  header.varint(fields.written().size());
  header.bytes(fields.written());
  header.varint(filter_payload);
  header.u8(static_cast<std::uint8_t>(hasher.kind()));
  header.bytes(hasher.secret().bytes());
  put_labels(labels, header);
  encode_section_table(sections, header);
  if (header.written().size() > layout::kMostHeaderBytes)
    throw BadParameters(
        fmt::format("a snapshot's header takes at most {} bytes, not {}: use shorter labels",
                    layout::kMostHeaderBytes, header.written().size()));
  BytesEncoder preamble;
  preamble.bytes(std::as_bytes(std::span(layout::kMagic)));
  preamble.u8(layout::kVersion);
  preamble.varint(header.written().size());
  preamble.bytes(header.written());
  return preamble.take();
}

SnapshotHeader read_header(Decoder& from) {
  std::vector<std::byte> preamble = read_preamble(from);
  const std::uint64_t checksum = from.u64();
  if (checksum != checksum_of(preamble))
    throw CorruptAt("the header is damaged: its checksum does not match", preamble.size());

  Part part{std::span(preamble).subspan(layout::kHeaderLengthAt), layout::kHeaderLengthAt};
  part.varint();  // the length, which was read before
  try {
    const std::uint16_t kind = read_number(part, "kind");
    const std::uint16_t version = read_number(part, "version");
    const std::uint64_t fields_bytes = part.varint();
    const std::uint64_t fields_at = part.offset();
    part.view(fields_bytes);
    const std::uint64_t filter_payload = part.varint();
    const Hasher hasher = read_hasher(part);
    Labels labels = read_labels(part);
    std::vector<SectionEntry> sections = decode_section_table(part);
    const std::uint64_t payload = payload_of(filter_payload, sections);
    if (part.remaining() != 0)
      throw CorruptSnapshot(
          fmt::format("the header's last field is followed by {} bytes that it does not need",
                      part.remaining()));
    return {std::move(preamble), checksum,       kind,   version,
            fields_at,           fields_bytes,   hasher, std::move(labels),
            std::move(sections), filter_payload, payload};
  } catch (const CorruptSnapshot& error) {
    throw CorruptAt(error.what(), part.offset());
  }
}

}  // namespace sluice
