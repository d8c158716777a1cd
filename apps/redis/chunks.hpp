// A key in chunks: SLUICE.SCANDUMP cuts them, clients carry them, SLUICE.LOADCHUNK puts them together. They
// are also how an append-only file without an RDB preamble holds a key.
//
//   chunk = "SLUCHNK1", bytes of the whole, offset, expiry, link before, link after, checksum of all these,
//           then the bytes from the offset on: kMostBytes, and in the last chunk what is left
//
// All numbers have 8 bytes and are little-endian. The bytes of the whole are those of Encoded: they hold the
// secret of the key. A link is a checksum over all bytes so far, and ties a chunk to those before it.
//
// A cursor says how many chunks came before, whether they were all, and 32 bits of their link. It is below
// 2^53, so that clients that have only floating-point numbers keep it whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "apps/redis/entry.hpp"
#include "sluice/base/memory_resource.hpp"

namespace sluice::server {

struct Chunk {
  static constexpr std::size_t kHeaderBytes = 56;
  // With its header and that of an effect it stays below 1 MiB, and its bytes fit one block of a host.
  static constexpr std::size_t kMostBytes = (std::size_t{1} << 20) - 128;
  static constexpr std::uint64_t kMostChunks = (std::uint64_t{1} << 20) - 1;
  static constexpr std::uint64_t kMostTotal = kMostChunks * kMostBytes;

  std::uint64_t total = 0;
  std::uint64_t offset = 0;
  std::int64_t expiry_ms = 0;  // of the key, since 1970; 0: none, or somebody else says
  std::uint64_t before = 0, after = 0;
  std::span<const std::byte> bytes = {};

  // Throws BadParameters if these are not the bytes of one chunk, whole and undamaged.
  static Chunk read(std::span<const std::byte> from);
  void write_header(std::span<std::byte, kHeaderBytes> to) const;

  bool last() const noexcept { return offset + bytes.size() == total; }
  std::int64_t cursor() const noexcept;
};

// The link before the first chunk of so many bytes, and that after one more chunk.
std::uint64_t first_link(std::uint64_t total) noexcept;
std::uint64_t next_link(std::uint64_t before, std::span<const std::byte> bytes) noexcept;

// What a cursor says.
struct Cursor {
  std::uint64_t chunks = 0;
  bool all = false;
  std::uint32_t link = 0;

  static constexpr std::int64_t kMost = (std::int64_t{1} << 53) - 1;
  static Cursor of(std::int64_t number) noexcept;
  std::int64_t number() const noexcept;
};

// Cuts an entry into chunks: one at a time, in buffers of `front` bytes that are left to the caller, the
// header of a chunk, and its bytes.
class Cutter {
 public:
  // Throws BadParameters if the entry is too large for chunks.
  Cutter(const Entry& entry, std::int64_t expiry_ms, std::size_t front = 0);

  // The next chunk with its `front`, valid until the next call; empty at the end.
  std::span<std::byte> next();
  // Of the chunk that next() has made.
  std::int64_t cursor() const noexcept { return chunk_.cursor(); }
  std::uint64_t size() const noexcept { return encoded_.size(); }

  // Where it is, for another one of the same, unchanged entry.
  struct Position {
    SnapshotPull::Position pull;
    std::uint64_t link = 0;
  };
  Position position() { return {encoded_.pull().position(), chunk_.after}; }
  void resume(const Position& position);

 private:
  Encoded encoded_;
  Chunk chunk_;  // the last one
  std::size_t front_;
  std::unique_ptr<std::byte[]> buffer_;
};

// Dumps that have begun: where the next call for a chunk goes on. There are few places; a dump that has
// lost its own is made again from the start, and the cursor tells whether it is still the same.
class Dumps {
 public:
  // The chunk after those of the cursor, which may be empty, and its own cursor. Throws BadParameters if
  // the entry has changed since. `now_ms` is for forgetting.
  struct Next {
    std::int64_t cursor = 0;
    std::span<const std::byte> chunk = {};  // of the cutter
  };
  Next next(Cutter& cutter, const Entry& entry, std::int64_t cursor, std::int64_t now_ms);

 private:
  // How one sees that an entry is the one of before. Counts of changes are used again after 2^32 of them,
  // so a place is not used for longer than that can take.
  static constexpr std::int64_t kLongestMs = 60'000;
  struct Place {
    std::int64_t cursor = 0;
    std::uint32_t changes = 0;
    std::uint64_t size = 0;
    std::int64_t last_ms = 0, used_ms = 0;
    Cutter::Position position = {};
  };
  Place* find(const Entry& entry, std::uint64_t size, std::int64_t cursor, std::int64_t now_ms);

  std::array<Place, 16> places_;
};
Dumps& dumps();

// A key of which not all chunks are here yet.
class Partial {
 public:
  using Pointer = Owned<Partial>;

  // Throws BadParameters unless it is the first chunk, and NoMemory.
  static Pointer begin(const Chunk& first, MemoryResource& memory);
  Partial(const Chunk& first, MemoryResource& memory);
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;
  ~Partial();

  // Throws BadParameters unless it is the next chunk, and NoMemory. Nothing has changed then.
  void add(const Chunk& next);
  std::uint64_t total() const noexcept { return total_; }
  std::uint64_t here() const noexcept { return here_; }
  // Once all are here. Gives each part back as soon as it was read: whether it throws what Entry::load
  // does or not, nothing is left.
  Entry::Pointer finish(std::int64_t now_ms);

  // The chunks that are here, as they came but without an expiry, in buffers of `front` bytes and a chunk.
  void each_chunk(std::size_t front, const std::function<void(std::span<std::byte>)>& take) const;
  Pointer clone(MemoryResource& memory) const;
  // All memory that it takes, itself included.
  std::uint64_t bytes() const noexcept;
  std::uint64_t blocks() const noexcept { return 1 + parts_.size(); }

 private:
  class Parts;
  std::size_t size_of(std::size_t part) const noexcept;
  void keep(std::span<const std::byte> bytes);
  void free_part(std::size_t part) noexcept;

  std::uint64_t total_, here_ = 0;
  std::uint64_t link_;
  Vector<std::byte*> parts_;  // null: given back
};

// For every command but LOADCHUNK.
[[noreturn]] void refuse_partial(const Partial& partial);

}  // namespace sluice::server
