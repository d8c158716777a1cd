// Short list: the form of a filter while it has few keys. Exact digests in order, each with a stamp
// (the time or the number of its writing), in one block of just that size.
//
// Cost     find: a binary search. insert: moves all entries after it, so it is for hundreds of
//          keys, not thousands. 24 bytes per key; no memory without keys.
// Errors   None.
// Memory   From its resource, except for a moment: where the old and the new block, or the list and
//          the table that follows it, do not fit at once, the keys wait on the ordinary heap (aside).
// Use it   inside a filter, until the filter's own table is smaller.
//
// The same keys and stamps give the same bytes, in any order of insertion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sluice/base/codec.hpp"
#include "sluice/base/memory_resource.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

class ShortList {
 public:
  using Stamp = std::int64_t;
  static constexpr std::size_t kKeyBytes = sizeof(Digest) + sizeof(Stamp);
  static constexpr std::size_t kMostKeys = (std::size_t{1} << 31) - 1;

  explicit ShortList(MemoryResource& memory) noexcept : memory_(&memory) {}
  ShortList(ShortList&& other) noexcept;
  ShortList& operator=(ShortList&& other) noexcept;
  ShortList(const ShortList&) = delete;
  ShortList& operator=(const ShortList&) = delete;
  ~ShortList();

  MemoryResource& memory() const noexcept { return *memory_; }
  std::size_t size() const noexcept { return size_; }
  // Bytes of the block, as the resource counts them; none while the keys are aside.
  std::uint64_t bytes() const noexcept;
  // The most bytes that a list of that many keys takes.
  static std::uint64_t bytes_for(std::size_t keys) noexcept;

  // In the order of their digests.
  std::span<const Digest> digests() const noexcept { return {data_, size_}; }
  std::span<const Stamp> stamps() const noexcept { return {stamps_of(data_, room_), size_}; }

  // The index of the key.
  std::optional<std::size_t> find(const Digest& digest) const noexcept;
  // Replaces its stamp.
  void stamp(std::size_t at, Stamp stamp) noexcept { stamps_of(data_, room_)[at] = stamp; }
  bool full() const noexcept { return size_ == room_; }
  std::size_t room() const noexcept { return room_; }
  // Makes room for one more key, and for no more than `most` in all if they are fewer. The old and
  // the new block take no more than `limit` together: else the keys step aside, as they do if the
  // budget has no room for both. Throws NoMemory; nothing has changed then.
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
  void grow(std::size_t most = kMostKeys, std::uint64_t limit = kNoLimit);
  // The same for `keys` in all.
  void grow_to(std::size_t keys, std::size_t most = kMostKeys, std::uint64_t limit = kNoLimit);
  // Gives the block back to the resource, and keeps the keys on the heap. Throws std::bad_alloc.
  void step_aside();
  // The opposite. If the resource refuses, they stay aside, and nothing is lost.
  void step_back() noexcept;
  // The key is not in the list, and the list is not full.
  void insert(const Digest& digest, Stamp stamp) noexcept;
  void erase(std::size_t at) noexcept;
  // Adds to every stamp.
  void shift(Stamp by) noexcept;
  // Erases every key whose stamp is below `oldest`.
  void erase_before(Stamp oldest) noexcept;
  // Gives memory back if the block has room for more than four times its keys. If the smaller block
  // cannot be had, the large one stays.
  void shrink() noexcept;
  // No keys, no memory.
  void clear() noexcept;

  // Keys whose stamp is below `oldest` are left out, as if erase_before() had been called. Stamps
  // are written as distances to `newest`; no stamp may be later than that.
  void encode(Encoder& to, Stamp oldest, Stamp newest) const;
  // Reads into an empty list, at most `most` keys. Throws CorruptSnapshot before it allocates.
  void decode(Decoder& from, std::size_t most, Stamp newest);

 private:
  // A block for so few keys is not worth replacing.
  static constexpr std::size_t kLeastShrunk = 8;
  static constexpr std::size_t kTooLarge = 4;
  static std::size_t room_for(std::size_t keys) noexcept;
  static Stamp* stamps_of(Digest* data, std::size_t room) noexcept {
    return reinterpret_cast<Stamp*>(data + room);
  }
  void reserve(std::size_t room);
  void move_to(void* block, std::size_t room, bool aside) noexcept;
  void free_block() noexcept;

  MemoryResource* memory_;
  Digest* data_ = nullptr;  // digests, then stamps
  std::uint32_t size_ = 0;
  std::uint32_t room_ : 31 = 0;
  bool aside_ : 1 = false;  // the block is on the heap
};

}  // namespace sluice
