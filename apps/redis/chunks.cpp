#include "apps/redis/chunks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/snapshot/chunks.hpp"

namespace sluice::server {
namespace {

constexpr std::string_view kMagic = "SLUCHNK1";
constexpr std::size_t kAligned = 8;

[[noreturn]] void refuse(std::string_view why) {
  throw BadParameters(fmt::format("this is not a chunk of SLUICE.SCANDUMP: {}", why));
}

std::size_t chunk_bytes(std::uint64_t total, std::uint64_t offset) noexcept {
  return static_cast<std::size_t>(std::min<std::uint64_t>(total - offset, Chunk::kMostBytes));
}

}  // namespace

std::uint64_t first_link(std::uint64_t total) noexcept {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(total >> (8 * i) & 0xFF);
  return checksum_of(bytes);
}

std::uint64_t next_link(std::uint64_t before, std::span<const std::byte> bytes) noexcept {
  return chunk_checksum(before, bytes);
}

Chunk Chunk::read(std::span<const std::byte> from) {
  constexpr std::uint64_t kMostMs = std::uint64_t{1} << 43;  // the year 2248
  if (from.size() < kHeaderBytes) refuse("it is too short");
  BytesDecoder fields(from.first(kHeaderBytes));
  std::array<std::byte, kMagic.size()> magic;
  fields.bytes(magic);
  if (!std::ranges::equal(magic, std::as_bytes(std::span(kMagic))))
    refuse("it begins with other bytes");
  Chunk chunk;
  chunk.total = fields.u64();
  chunk.offset = fields.u64();
  const std::uint64_t expiry = fields.u64();
  chunk.before = fields.u64();
  chunk.after = fields.u64();
  chunk.bytes = from.subspan(kHeaderBytes);
  if (fields.u64() != checksum_of(from.first(kHeaderBytes - 8))) refuse("its header is damaged");
  if (chunk.total == 0 || chunk.total > kMostTotal || expiry > kMostMs)
    refuse("its header has impossible numbers");
  chunk.expiry_ms = static_cast<std::int64_t>(expiry);
  if (chunk.offset >= chunk.total || chunk.offset % kMostBytes != 0 ||
      chunk.bytes.size() != chunk_bytes(chunk.total, chunk.offset))
    refuse("it was cut or put together in another way");
  if (chunk.offset == 0 && chunk.before != first_link(chunk.total)) refuse("its header is damaged");
  if (chunk.after != next_link(chunk.before, chunk.bytes)) refuse("its bytes are damaged");
  return chunk;
}

void Chunk::write_header(std::span<std::byte, kHeaderBytes> to) const {
  BytesEncoder fields;
  fields.bytes(std::as_bytes(std::span(kMagic)));
  fields.u64(total);
  fields.u64(offset);
  fields.u64(static_cast<std::uint64_t>(expiry_ms));
  fields.u64(before);
  fields.u64(after);
  fields.u64(checksum_of(fields.written()));
  std::ranges::copy(fields.written(), to.begin());
}

std::int64_t Chunk::cursor() const noexcept {
  return Cursor{
      .chunks = offset / kMostBytes + 1, .all = last(), .link = static_cast<std::uint32_t>(after)}
      .number();
}

Cursor Cursor::of(std::int64_t number) noexcept {
  const auto bits = static_cast<std::uint64_t>(number);
  return {
      .chunks = bits >> 33, .all = (bits >> 32 & 1) != 0, .link = static_cast<std::uint32_t>(bits)};
}

std::int64_t Cursor::number() const noexcept {
  return static_cast<std::int64_t>(chunks << 33 | (all ? std::uint64_t{1} << 32 : 0) | link);
}

// --- Cutter

Cutter::Cutter(const Entry& entry, std::int64_t expiry_ms, std::size_t front)
    : encoded_(entry), front_(front) {
  if (encoded_.size() > Chunk::kMostTotal)
    throw BadParameters("this key is too large for chunks: at most 1 TiB can be dumped");
  chunk_.total = encoded_.size();
  chunk_.expiry_ms = std::max<std::int64_t>(expiry_ms, 0);
  chunk_.after = first_link(chunk_.total);
}

std::span<std::byte> Cutter::next() {
  const std::uint64_t offset = encoded_.pull().position().offset;
  if (offset == chunk_.total) return {};
  const std::size_t ahead = front_ + Chunk::kHeaderBytes;
  if (!buffer_)
    buffer_ =
        std::make_unique_for_overwrite<std::byte[]>(ahead + chunk_bytes(chunk_.total, offset));
  const std::span bytes(buffer_.get() + ahead, chunk_bytes(chunk_.total, offset));
  if (encoded_.next(bytes) != bytes.size()) throw BadParameters("the entry has changed");
  chunk_.offset = offset;
  chunk_.bytes = bytes;
  chunk_.before = chunk_.after;
  chunk_.after = next_link(chunk_.before, bytes);
  chunk_.write_header(std::span(buffer_.get() + front_, bytes.data()).first<Chunk::kHeaderBytes>());
  return {buffer_.get(), ahead + bytes.size()};
}

void Cutter::resume(const Position& position) {
  encoded_.pull().resume(position.pull);
  chunk_.after = position.link;
}

// --- Dumps

Dumps& dumps() {
  static Dumps all;
  return all;
}

Dumps::Place* Dumps::find(const Entry& entry, std::uint64_t size, std::int64_t cursor,
                          std::int64_t now_ms) {
  const auto found = std::ranges::find_if(places_, [&](const Place& each) {
    return each.cursor == cursor && each.changes == entry.changes() && each.size == size &&
           each.last_ms == entry.last_ms() && now_ms >= each.used_ms &&
           now_ms - each.used_ms < kLongestMs;
  });
  return found == places_.end() ? nullptr : &*found;
}

Dumps::Next Dumps::next(Cutter& cutter, const Entry& entry, std::int64_t cursor,
                        std::int64_t now_ms) {
  Place* place = nullptr;
  if (cursor != 0) {
    place = find(entry, cutter.size(), cursor, now_ms);
    if (place != nullptr) {
      cutter.resume(place->position);
    } else {
      // What came before is made again: if it is the same, so is the cursor. There is a chunk after it.
      const std::uint64_t chunks = Cursor::of(cursor).chunks;
      const bool possible = chunks != 0 && chunks * Chunk::kMostBytes < cutter.size();
      for (std::uint64_t i = 0; possible && i < chunks; ++i) cutter.next();
      if (!possible || cutter.cursor() != cursor)
        throw BadParameters(
            "the key has changed since this dump began, or the cursor is of another key: start "
            "again with cursor 0");
    }
  }
  const std::span<const std::byte> chunk = cutter.next();
  const std::int64_t after = cutter.cursor();
  if (place == nullptr) place = &*std::ranges::min_element(places_, {}, &Place::used_ms);
  // After the last chunk nothing is to be made.
  *place = Cursor::of(after).all ? Place{}
                                 : Place{.cursor = after,
                                         .changes = entry.changes(),
                                         .size = cutter.size(),
                                         .last_ms = entry.last_ms(),
                                         .used_ms = now_ms,
                                         .position = cutter.position()};
  return {.cursor = after, .chunk = chunk};
}

// --- Partial

Partial::Partial(const Chunk& first, MemoryResource& memory)
    : total_(first.total), link_(first.before), parts_(memory) {}

Partial::~Partial() {
  for (std::size_t part = 0; part < parts_.size(); ++part) free_part(part);
}

Partial::Pointer Partial::begin(const Chunk& first, MemoryResource& memory) {
  if (first.offset != 0)
    throw BadParameters(
        "the first chunk is missing: load the chunks in the order in which SLUICE.SCANDUMP gave "
        "them");
  Pointer partial = make_owned<Partial>(memory, first, memory);
  partial->add(first);
  return partial;
}

void Partial::add(const Chunk& next) {
  if (next.total != total_ || next.offset != here_ || next.before != link_)
    throw BadParameters(fmt::format(
        "this chunk does not follow those that were loaded, {} of {} bytes: load the chunks of one "
        "dump in their order, or begin again with the first",
        here_, total_));
  keep(next.bytes);
  here_ += next.bytes.size();
  link_ = next.after;
}

std::size_t Partial::size_of(std::size_t part) const noexcept {
  return chunk_bytes(total_, part * std::uint64_t{Chunk::kMostBytes});
}

void Partial::keep(std::span<const std::byte> bytes) {
  MemoryResource& memory = parts_.get_allocator().resource();
  parts_.push_back(nullptr);
  try {
    parts_.back() = static_cast<std::byte*>(memory.allocate(bytes.size(), kAligned));
  } catch (...) {
    parts_.pop_back();
    throw;
  }
  std::ranges::copy(bytes, parts_.back());
}

void Partial::free_part(std::size_t part) noexcept {
  if (parts_[part] == nullptr) return;
  parts_.get_allocator().resource().deallocate(parts_[part], size_of(part), kAligned);
  parts_[part] = nullptr;
}

// All bytes in order. Gives each part back once it was read.
class Partial::Parts final : public Decoder {
 public:
  explicit Parts(Partial& of) : of_(of), left_(of.total_) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() override {
    for (; at_ < of_.parts_.size(); ++at_) of_.free_part(at_);
  }

  void bytes(std::span<std::byte> out) override {
    if (out.size() > left_) throw CorruptSnapshot("it ends too early");
    left_ -= out.size();
    while (!out.empty()) {
      const std::size_t size = of_.size_of(at_);
      const std::size_t count = std::min(out.size(), size - offset_);
      std::memcpy(out.data(), of_.parts_[at_] + offset_, count);
      out = out.subspan(count);
      offset_ += count;
      if (offset_ < size) continue;
      of_.free_part(at_++);
      offset_ = 0;
    }
  }
  std::uint64_t remaining() const override { return left_; }

 private:
  Partial& of_;
  std::size_t at_ = 0, offset_ = 0;
  std::uint64_t left_;
};

Entry::Pointer Partial::finish(std::int64_t now_ms) {
  Parts all(*this);
  Entry::Pointer entry = Entry::load(all, parts_.get_allocator().resource(), now_ms);
  if (all.remaining() != 0) throw CorruptSnapshot("there are bytes after its end");
  return entry;
}

void Partial::each_chunk(std::size_t front,
                         const std::function<void(std::span<std::byte>)>& take) const {
  const std::size_t ahead = front + Chunk::kHeaderBytes;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(ahead + size_of(0));
  Chunk chunk{.total = total_, .after = first_link(total_)};
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    chunk.bytes = {parts_[part], size_of(part)};
    chunk.before = chunk.after;
    chunk.after = next_link(chunk.before, chunk.bytes);
    chunk.write_header(
        std::span<std::byte, Chunk::kHeaderBytes>(buffer.get() + front, Chunk::kHeaderBytes));
    std::ranges::copy(chunk.bytes, buffer.get() + ahead);
    take({buffer.get(), ahead + chunk.bytes.size()});
    chunk.offset += chunk.bytes.size();
  }
}

Partial::Pointer Partial::clone(MemoryResource& memory) const {
  Pointer copy =
      make_owned<Partial>(memory, Chunk{.total = total_, .before = first_link(total_)}, memory);
  for (std::size_t part = 0; part < parts_.size(); ++part)
    copy->keep({parts_[part], size_of(part)});
  copy->here_ = here_;
  copy->link_ = link_;
  return copy;
}

std::uint64_t Partial::bytes() const noexcept {
  const MemoryResource& memory = parts_.get_allocator().resource();
  std::uint64_t sum = memory.usable(this, sizeof(Partial), alignof(Partial)) + taken_by(parts_);
  for (std::size_t part = 0; part < parts_.size(); ++part)
    if (parts_[part] != nullptr) sum += memory.usable(parts_[part], size_of(part), kAligned);
  return sum;
}

void refuse_partial(const Partial& partial) {
  throw BadParameters(fmt::format(
      "the key is still being loaded: {} of {} bytes are here; go on with SLUICE.LOADCHUNK, or DEL "
      "the key",
      partial.here(), partial.total()));
}

}  // namespace sluice::server
