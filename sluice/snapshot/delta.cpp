#include "sluice/snapshot/delta.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "sluice/filters/catalogue.hpp"
#include "sluice/snapshot/chunks.hpp"
#include "sluice/snapshot/delta_coding.hpp"
#include "sluice/snapshot/header.hpp"
#include "sluice/snapshot/layout.hpp"

namespace sluice {
namespace {

constexpr auto& kMagic = layout::kDeltaMagic;
constexpr std::uint8_t kVersion = 1;
// Magic, version, whether there is a base, both identities, bytes of the snapshot's header.
constexpr std::uint64_t kFixedBytes = 4 + 1 + 1 + 8 + 8 + 4;
// Length, coding, checksum.
constexpr std::uint64_t kLeastChunkBytes = 4 + 1 + layout::kChecksumBytes;

class StoredDecoder final : public Decoder {
 public:
  explicit StoredDecoder(const StoredBytes& from) : from_(from) {}
  void bytes(std::span<std::byte> out) override {
    if (out.size() > remaining())
      throw CorruptAt(fmt::format("the bytes end where {} more should be", out.size()),
                      from_.size());
    from_.read(at_, out);
    at_ += out.size();
  }
  std::uint64_t remaining() const override { return from_.size() - at_; }
  std::uint64_t offset() const { return at_; }

 private:
  const StoredBytes& from_;
  std::uint64_t at_ = 0;
};

// Names what is damaged.
template <class Read>
auto named(const StoredBytes& bytes, const char* what, Read read) {
  try {
    return read();
  } catch (const CorruptSnapshot& error) {
    throw CorruptSnapshot(fmt::format("{} '{}' is refused: {}", what, bytes.name(), error.what()));
  }
}

// A snapshot of which only the header is looked into; every checksum is checked on the way.
class SnapshotStream {
 public:
  explicit SnapshotStream(const StoredBytes& bytes)
      : bytes_(bytes),
        from_(bytes),
        header_(named(bytes_, kWhat, [&] { return read_header(from_); })),
        payload_(named(bytes_, kWhat, [&] {
          return ChunkDecoder(from_, header_.bytes(), header_.checksum, header_.payload);
        })) {
    // It is only true when finish() has found it so.
    std::array<std::byte, layout::kChecksumBytes> last;
    bytes.read(bytes.size() - last.size(), last);
    identity_ = BytesDecoder(last).u64();
  }

  SnapshotStream(const SnapshotStream&) = delete;
  SnapshotStream& operator=(const SnapshotStream&) = delete;

  const SnapshotHeader& header() const { return header_; }
  const std::string& name() const { return bytes_.name(); }
  std::uint64_t size() const { return bytes_.size(); }
  std::uint64_t payload_bytes() const { return header_.payload; }
  std::uint64_t identity() const { return identity_; }

  // What is there of `out`, and zeros behind it.
  void read(std::span<std::byte> out) {
    const auto there = std::min<std::uint64_t>(out.size(), payload_.remaining());
    named(bytes_, kWhat, [&] { payload_.bytes(out.first(there)); });
    std::ranges::fill(out.subspan(there), std::byte{0});
  }

  // Reads what is left.
  void finish() {
    std::vector<std::byte> unread(std::min(layout::kChunkBytes, payload_.remaining()));
    while (payload_.remaining() > 0)
      read(std::span(unread).first(std::min<std::uint64_t>(unread.size(), payload_.remaining())));
    named(bytes_, kWhat, [&] { payload_.finish(); });
  }

 private:
  static constexpr const char* kWhat = "snapshot";

  const StoredBytes& bytes_;
  StoredDecoder from_;
  SnapshotHeader header_;
  ChunkDecoder payload_;
  std::uint64_t identity_ = 0;
};

void check_versions_of_one(const SnapshotStream& a, const SnapshotStream& b) {
  const SnapshotHeader &one = a.header(), &other = b.header();
  std::string why =
      difference_between(a.name(), one.hasher, one.labels, b.name(), other.hasher, other.labels);
  if (one.kind != other.kind || one.version != other.version)
    why = fmt::format("'{}' is a filter '{}' and '{}' is a filter '{}'", a.name(),
                      name_of(static_cast<FilterKind>(one.kind)), b.name(),
                      name_of(static_cast<FilterKind>(other.kind)));
  if (!why.empty())
    throw BadParameters("there is no delta between what are not two versions of one filter: " +
                        why);
}

void exclusive_or(std::span<std::byte> into, std::span<const std::byte> with) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] ^= with[i];
}

std::size_t chunk_size(std::uint64_t payload, std::uint64_t number) {
  return static_cast<std::size_t>(
      std::min(layout::kChunkBytes, payload - number * layout::kChunkBytes));
}

struct DeltaHeader {
  bool whole = false;
  std::uint64_t old_identity = 0;
  std::uint64_t new_identity = 0;
  std::uint64_t new_payload = 0;    // as the new snapshot's header says
  std::vector<std::byte> preamble;  // of the new snapshot, with its checksum
  std::uint64_t new_checksum = 0;   // of that preamble
  std::uint64_t checksum = 0;       // of the delta's own header
};

DeltaHeader read_delta_header(StoredDecoder& from) {
  std::array<std::byte, kFixedBytes> fixed{};
  const std::uint64_t there = std::min<std::uint64_t>(from.remaining(), fixed.size());
  from.bytes(std::span(fixed).first(there));
  if (!std::ranges::equal(std::span(fixed).first(kMagic.size()), std::as_bytes(std::span(kMagic))))
    throw CorruptAt("this is not a sluice delta, or its first bytes were changed", 0);
  if (there < fixed.size()) throw CorruptAt("it is cut off within its header", there);
  BytesDecoder fields{std::span(fixed).subspan(kMagic.size())};
  if (const std::uint8_t version = fields.u8(); version != kVersion)
    throw CorruptAt(fmt::format("it has format version {}, this sluice reads version {}: was it "
                                "written by a newer sluice?",
                                version, kVersion),
                    kMagic.size());
  DeltaHeader header;
  const std::uint8_t base = fields.u8();
  header.whole = base == 0;
  header.old_identity = fields.u64();
  header.new_identity = fields.u64();
  const std::uint64_t length = fields.u32();
  if (base > 1 || (header.whole && header.old_identity != 0))
    throw CorruptAt("it has fields that no delta has", kMagic.size() + 1);
  // The header's length takes at most three bytes.
  if (length > layout::kHeaderLengthAt + 3 + layout::kMostHeaderBytes + layout::kChecksumBytes)
    throw CorruptAt(fmt::format("it claims a snapshot's header of {} bytes", length),
                    kFixedBytes - 4);
  if (from.remaining() < length + layout::kChecksumBytes)
    throw CorruptAt("it is cut off within its header", from.offset() + from.remaining());
  header.preamble.resize(length);
  from.bytes(header.preamble);
  std::vector<std::byte> all(fixed.begin(), fixed.end());
  all.insert(all.end(), header.preamble.begin(), header.preamble.end());
  header.checksum = from.u64();
  if (header.checksum != checksum_of(all))
    throw CorruptAt("its header is damaged: the checksum does not match", from.offset());
  BytesDecoder of_new(header.preamble);
  const SnapshotHeader fresh = read_header(of_new);
  header.new_checksum = fresh.checksum;
  header.new_payload = fresh.payload;
  if (of_new.remaining() != 0) throw CorruptAt("bytes follow the snapshot's header", kFixedBytes);
  // So that a few bytes cannot promise an endless snapshot.
  if (layout::chunks_for(header.new_payload) > from.remaining() / kLeastChunkBytes)
    throw CorruptAt(fmt::format("it is cut off: {} bytes are too few for the chunks of {}",
                                from.remaining(), header.new_payload),
                    from.offset());
  return header;
}

std::vector<std::byte> read_coded(StoredDecoder& from, std::uint64_t number, std::size_t chunk,
                                  std::uint64_t& checksum) {
  const std::uint64_t at = from.offset();
  const std::uint64_t length = from.u32();
  // Coded chunks are never larger than plain ones.
  if (length == 0 || length > 1 + chunk || length > from.remaining())
    throw CorruptAt(fmt::format("chunk {} claims {} bytes", number, length), at);
  std::vector<std::byte> coded(length);
  from.bytes(coded);
  checksum = chunk_checksum(checksum, coded);
  if (from.u64() != checksum)
    throw CorruptAt(fmt::format("chunk {} is damaged or not in its place", number), at);
  return coded;
}

// Tells apart what has to be done about it.
[[noreturn]] void refuse_base(SnapshotStream& old_one, const StoredBytes& delta,
                              const DeltaHeader& header) {
  old_one.finish();  // what is damaged is said to be damaged
  if (old_one.identity() == header.new_identity)
    throw DeltaRepeat(fmt::format(
        "'{}' is already the version that '{}' leads to ({:016x}): it was applied before",
        old_one.name(), delta.name(), header.new_identity));
  throw DeltaGap(fmt::format(
      "'{}' was made against version {:016x}, and '{}' is version {:016x}: apply the deltas that "
      "lie between first, in their order, or ask for the whole",
      delta.name(), header.old_identity, old_one.name(), old_one.identity()));
}

// Null for a whole one.
std::unique_ptr<SnapshotStream> open_base(const StoredBytes* old_one, const StoredBytes& delta,
                                          const DeltaHeader& header) {
  if (header.whole && old_one != nullptr)
    throw BadParameters(fmt::format("'{}' holds a whole snapshot: apply it without '{}'",
                                    delta.name(), old_one->name()));
  if (header.whole) return nullptr;
  if (old_one == nullptr)
    throw BadParameters(
        fmt::format("'{}' was made against version {:016x}: name the snapshot to apply it to",
                    delta.name(), header.old_identity));
  auto base = std::make_unique<SnapshotStream>(*old_one);
  if (base->identity() != header.old_identity) refuse_base(*base, delta, header);
  return base;
}

}  // namespace

void BytesInMemory::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > data_.size() || out.size() > data_.size() - offset)
    throw CorruptSnapshot(fmt::format("the bytes end where {} more should be", out.size()));
  std::ranges::copy(data_.subspan(offset, out.size()), out.begin());
}

DeltaSizes write_delta(const StoredBytes* old_one, const StoredBytes& new_one, Encoder& to) {
  SnapshotStream fresh(new_one);
  std::unique_ptr<SnapshotStream> base;
  if (old_one != nullptr) {
    base = std::make_unique<SnapshotStream>(*old_one);
    check_versions_of_one(*base, fresh);
  }
  const SnapshotHeader& header = fresh.header();
  BytesEncoder head;
  head.bytes(std::as_bytes(std::span(kMagic)));
  head.u8(kVersion);
  head.u8(base != nullptr);
  head.u64(base ? base->identity() : 0);
  head.u64(fresh.identity());
  head.u32(static_cast<std::uint32_t>(header.bytes()));
  head.bytes(header.preamble);
  head.u64(header.checksum);
  std::uint64_t checksum = checksum_of(head.written());
  to.bytes(head.written());
  to.u64(checksum);

  DeltaSizes sizes{old_one == nullptr ? 0 : old_one->size(), new_one.size(),
                   head.written().size() + layout::kChecksumBytes};
  DeltaChunkEncoder coder;
  const std::uint64_t chunks = layout::chunks_for(fresh.payload_bytes());
  std::vector<std::byte> changed, before;
  for (std::uint64_t number = 0; number < chunks; ++number) {
    changed.resize(chunk_size(fresh.payload_bytes(), number));
    fresh.read(changed);
    if (base) {
      before.resize(changed.size());
      base->read(before);
      exclusive_or(changed, before);
    }
    const std::span<const std::byte> coded = coder.encode(changed);
    checksum = chunk_checksum(checksum, coded);
    to.u32(static_cast<std::uint32_t>(coded.size()));
    to.bytes(coded);
    to.u64(checksum);
    sizes.delta_bytes += 4 + coded.size() + layout::kChecksumBytes;
  }
  fresh.finish();
  if (base) base->finish();
  return sizes;
}

DeltaSizes apply_delta(const StoredBytes* old_one, const StoredBytes& delta, Encoder& to) {
  StoredDecoder from(delta);
  const auto of_delta = [&](auto read) { return named(delta, "delta", read); };
  const DeltaHeader header = of_delta([&] { return read_delta_header(from); });
  const std::unique_ptr<SnapshotStream> base = open_base(old_one, delta, header);

  to.bytes(header.preamble);
  std::uint64_t checksum = header.checksum, new_checksum = header.new_checksum;
  DeltaChunkDecoder coder;
  const std::uint64_t chunks = layout::chunks_for(header.new_payload);
  std::vector<std::byte> chunk, before;
  for (std::uint64_t number = 0; number < chunks; ++number) {
    chunk.resize(chunk_size(header.new_payload, number));
    of_delta([&] { coder.decode(read_coded(from, number, chunk.size(), checksum), chunk); });
    if (base) {
      before.resize(chunk.size());
      base->read(before);
      exclusive_or(chunk, before);
    }
    new_checksum = chunk_checksum(new_checksum, chunk);
    to.bytes(chunk);
    to.u64(new_checksum);
  }
  if (base) base->finish();
  of_delta([&] {
    if (from.remaining() != 0) throw CorruptAt("bytes follow its end", from.offset());
    if (new_checksum != header.new_identity)
      throw CorruptSnapshot("what it leads to is not the version that it promises");
  });
  return {old_one == nullptr ? 0 : old_one->size(),
          header.preamble.size() + layout::chunked_bytes(header.new_payload), delta.size()};
}

bool is_delta(const StoredBytes& bytes) {
  std::array<std::byte, kMagic.size()> first;
  if (bytes.size() < first.size()) return false;
  bytes.read(0, first);
  return std::ranges::equal(first, std::as_bytes(std::span(kMagic)));
}

}  // namespace sluice
