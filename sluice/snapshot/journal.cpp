#include "sluice/snapshot/journal.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "sluice/snapshot/chunks.hpp"
#include "sluice/snapshot/layout.hpp"

namespace sluice {
namespace {

// As a snapshot's, with a J where that has a U.
constexpr std::array<std::uint8_t, 4> kMagic = {0xD3, 'S', 'L', 'J'};
constexpr std::uint8_t kVersion = 1;
// Magic, version, identity, checksum.
constexpr std::uint64_t kHeadBytes = 4 + 1 + 8 + layout::kChecksumBytes;
constexpr std::uint64_t kMostEvents = 65536;
// With the events of one record, whose times take at most ten bytes each.
constexpr std::uint64_t kMostSectionBytes = std::uint64_t{32} << 20;
constexpr std::uint64_t kMostBodyBytes = kMostSectionBytes + kMostEvents * (16 + 10) + 65536;

std::vector<std::byte> head_of(std::uint64_t identity) {
  BytesEncoder head;
  head.bytes(std::as_bytes(std::span(kMagic)));
  head.u8(kVersion);
  head.u64(identity);
  head.u64(checksum_of(head.written()));
  return head.take();
}

// Of a record's length: tells a length that was damaged, which would hide all that follows, from a
// record that was cut off.
std::uint16_t length_check(std::uint64_t before, std::uint64_t length) {
  BytesEncoder bytes;
  bytes.varint(length);
  return static_cast<std::uint16_t>(chunk_checksum(before, bytes.written()));
}

// Small differences of either sign are small numbers.
std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ (difference >> 63 != 0 ? ~std::uint64_t{0} : 0);
}
std::uint64_t unzigzag(std::uint64_t value) {
  return value >> 1 ^ ((value & 1) != 0 ? ~std::uint64_t{0} : 0);
}

// Counts what is read, so that one knows where a record began.
class PlaceDecoder final : public Decoder {
 public:
  explicit PlaceDecoder(Decoder& from) : from_(from) {}
  void bytes(std::span<std::byte> out) override {
    from_.bytes(out);
    at_ += out.size();
  }
  std::uint64_t remaining() const override { return from_.remaining(); }
  std::uint64_t at() const { return at_; }

 private:
  Decoder& from_;
  std::uint64_t at_ = 0;
};

bool only_zeros(Decoder& from) {
  std::array<std::byte, 4096> some;
  while (from.remaining() != 0) {
    const auto part = std::span(some).first(std::min<std::uint64_t>(some.size(), from.remaining()));
    from.bytes(part);
    if (std::ranges::any_of(part, [](std::byte byte) { return byte != std::byte{0}; }))
      return false;
  }
  return true;
}

// The body of the next record. Nothing where the journal ends, whole or torn.
class RecordReader {
 public:
  RecordReader(PlaceDecoder& from, std::uint64_t checksum) : from_(from), checksum_(checksum) {}

  bool next() {
    const std::uint64_t at = from_.at();
    std::uint64_t length = 0;
    bool cut = false, sound = false;
    try {
      length = from_.varint();
      cut = from_.remaining() < sizeof(std::uint16_t);
      sound = !cut && from_.u16() == length_check(checksum_, length) && length != 0 &&
              length <= kMostBodyBytes;
    } catch (const CorruptSnapshot&) {
      cut = from_.remaining() == 0;
    }
    if (!cut && !sound) return torn_or_throw("length", at);
    if (cut || from_.remaining() < length + layout::kChecksumBytes) return false;
    body_.resize(length);
    from_.bytes(body_);
    const std::uint64_t checksum = chunk_checksum(checksum_, body_);
    if (from_.u64() != checksum) return torn_or_throw("checksum", at);
    checksum_ = checksum;
    return true;
  }

  std::span<const std::byte> body() const { return body_; }
  std::uint64_t checksum() const { return checksum_; }

 private:
  // Nothing but zeros behind it: a write that did not reach the disk whole.
  bool torn_or_throw(const char* what, std::uint64_t at) {
    if (only_zeros(from_)) return false;
    throw CorruptAt(fmt::format("the journal is damaged: the {} of a record does not match", what),
                    at);
  }

  PlaceDecoder& from_;
  std::uint64_t checksum_;
  std::vector<std::byte> body_;
};

// Digests and times of a record; its sections are left in `from`.
void decode_events(BytesDecoder& from, std::vector<Digest>& digests,
                   std::vector<Nanoseconds>& times) {
  const std::uint64_t count_and_times = from.varint();
  const std::uint64_t count = count_and_times >> 1;
  const bool timed = (count_and_times & 1) != 0;
  if (count > kMostEvents || count * sizeof(Digest) > from.remaining())
    throw CorruptSnapshot("a record claims more events than it holds");
  digests.resize(count);
  for (Digest& digest : digests) {
    digest.lo = from.u64();
    digest.hi = from.u64();
  }
  times.resize(timed ? count : 0);
  std::uint64_t time = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    time = i == 0 ? from.u64() : time + unzigzag(from.varint());
    times[i] = static_cast<Nanoseconds>(time);
  }
}

}  // namespace

JournalWriter::JournalWriter(std::uint64_t identity, Encoder& to) {
  const std::vector<std::byte> head = head_of(identity);
  to.bytes(head);
  end_.bytes = head.size();
  end_.checksum = BytesDecoder(std::span(head).last(layout::kChecksumBytes)).u64();
}

JournalWriter::JournalWriter(const JournalEnd& end) : end_(end) {
  if (end.bytes < kHeadBytes)
    throw BadParameters(
        "a journal that has no head cannot be continued: start a new one with the identity of its "
        "snapshot");
  end_.torn_bytes = 0;
}

void JournalWriter::append(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                           const Sections& sections, Encoder& to) {
  if (!times.empty()) check_length("times", times.size(), digests.size());
  BytesEncoder encoded;
  encode_section_table(sections, encoded);
  for (const Section& section : sections) encoded.bytes(section.bytes);
  if (encoded.written().size() > kMostSectionBytes)
    throw BadParameters(
        fmt::format("the sections of a journal's record take at most {} bytes, not "
                    "{}: keep them in a snapshot",
                    kMostSectionBytes, encoded.written().size()));
  const bool timed = !times.empty();
  while (digests.size() > kMostEvents) {
    const std::array<std::byte, 1> no_sections{};
    write_record(digests.first(kMostEvents), timed ? times.first(kMostEvents) : times, no_sections,
                 to);
    digests = digests.subspan(kMostEvents);
    if (timed) times = times.subspan(kMostEvents);
  }
  write_record(digests, times, encoded.written(), to);
}

void JournalWriter::write_record(std::span<const Digest> digests,
                                 std::span<const Nanoseconds> times,
                                 std::span<const std::byte> sections, Encoder& to) {
  BytesEncoder body;
  body.varint(digests.size() << 1 | (times.empty() ? 0 : 1));
  for (const Digest& digest : digests) {
    body.u64(digest.lo);
    body.u64(digest.hi);
  }
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto time = static_cast<std::uint64_t>(times[i]);
    if (i == 0)
      body.u64(time);
    else
      body.varint(zigzag(time - before));
    before = time;
  }
  body.bytes(sections);

  BytesEncoder record;
  record.varint(body.written().size());
  record.u16(length_check(end_.checksum, body.written().size()));
  record.bytes(body.written());
  const std::uint64_t checksum = chunk_checksum(end_.checksum, body.written());
  record.u64(checksum);
  to.bytes(record.written());
  end_.bytes += record.written().size();
  end_.checksum = checksum;
  ++end_.records;
  end_.events += digests.size();
}

JournalEnd read_journal(Decoder& from, std::uint64_t identity,
                        const std::function<void(const JournalRecord&)>& apply,
                        const Understands& understands) {
  const std::uint64_t size = from.remaining();
  PlaceDecoder place(from);
  std::vector<std::byte> head(std::min(size, kHeadBytes));
  place.bytes(head);
  const std::vector<std::byte> expected = head_of(identity);
  JournalEnd end;
  end.torn_bytes = size;
  // Shorter than a head: it was being begun.
  if (head.size() < kHeadBytes && std::equal(head.begin(), head.end(), expected.begin()))
    return end;
  if (head != expected) {
    if (std::ranges::all_of(head, [](std::byte byte) { return byte == std::byte{0}; }) &&
        only_zeros(place))
      return end;
    BytesDecoder fields(head);
    if (head.size() == kHeadBytes) {
      fields.view(kMagic.size() + 1);
      const std::uint64_t other = fields.u64();
      if (head == head_of(other))
        throw JournalGap(
            fmt::format("the journal continues snapshot {:016x}, and this is snapshot {:016x}",
                        other, identity));
    }
    throw CorruptAt("this is not a sluice journal, or its first bytes were changed", 0);
  }
  end.bytes = kHeadBytes;
  end.checksum = BytesDecoder(std::span(head).last(layout::kChecksumBytes)).u64();

  RecordReader records(place, end.checksum);
  std::vector<Digest> digests;
  std::vector<Nanoseconds> times;
  while (place.remaining() != 0 && records.next()) {
    BytesDecoder body(records.body());
    Sections sections;
    try {
      decode_events(body, digests, times);
      sections = decode_sections(decode_section_table(body), body, understands);
      if (body.remaining() != 0) throw CorruptSnapshot("a record is longer than what it holds");
    } catch (const CorruptSnapshot& error) {
      throw CorruptAt(error.what(), end.bytes);
    }
    apply({digests, times, std::move(sections)});
    end.bytes = place.at();
    end.checksum = records.checksum();
    ++end.records;
    end.events += digests.size();
  }
  end.torn_bytes = size - end.bytes;
  return end;
}

}  // namespace sluice
