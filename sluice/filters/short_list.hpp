// Short list: what a filter is while it has few keys. Exact digests in order, each with a stamp
// (the time it was written, or its number), in one block that is as large as they need.
//
// Cost     find: a binary search. insert: moves what lies behind, so it is for hundreds of keys,
//          not thousands. 24 bytes per key; no memory without keys.
// Errors   None.
// Use it   inside a filter, until the filter's own table is the smaller of the two.
//
// The same keys and stamps give the same bytes, in whatever order they came.
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

  explicit ShortList(MemoryResource& memory) noexcept : memory_(&memory) {}
  ShortList(ShortList&& other) noexcept;
  ShortList& operator=(ShortList&& other) noexcept;
  ShortList(const ShortList&) = delete;
  ShortList& operator=(const ShortList&) = delete;
  ~ShortList();

  MemoryResource& memory() const noexcept { return *memory_; }
  std::size_t size() const noexcept { return size_; }
  // Bytes of the block, as the resource counts them.
  std::uint64_t bytes() const noexcept;
  // What a list of so many keys takes at most.
  static std::uint64_t bytes_for(std::size_t keys) noexcept;

  // In the order of their digests.
  std::span<const Digest> digests() const noexcept { return {data_, size_}; }
  std::span<const Stamp> stamps() const noexcept { return {stamps_of(data_, room_), size_}; }

  // Where the key stands.
  std::optional<std::size_t> find(const Digest& digest) const noexcept;
  // Writes its stamp anew.
  void stamp(std::size_t at, Stamp stamp) noexcept { stamps_of(data_, room_)[at] = stamp; }
  bool full() const noexcept { return size_ == room_; }
  // Room for one key more. Throws NoMemory, and is then as before.
  void grow();
  // The key is not in the list, and the list is not full.
  void insert(const Digest& digest, Stamp stamp) noexcept;
  void erase(std::size_t at) noexcept;
  // Adds to every stamp.
  void shift(Stamp by) noexcept;
  // Erases every key whose stamp is below `oldest`.
  void erase_before(Stamp oldest) noexcept;
  // No keys, no memory.
  void clear() noexcept;

  // Keys whose stamp is below `oldest` are left out, as if erase_before() had been called. Stamps are
  // written as how far they lie before `newest`, which none is after.
  void encode(Encoder& to, Stamp oldest, Stamp newest) const;
  // In place of an empty list, at most `most` keys. Throws CorruptSnapshot before it allocates.
  void decode(Decoder& from, std::size_t most, Stamp newest);

 private:
  static std::size_t room_for(std::size_t keys) noexcept;
  static Stamp* stamps_of(Digest* data, std::size_t room) noexcept {
    return reinterpret_cast<Stamp*>(data + room);
  }
  void reserve(std::size_t room);

  MemoryResource* memory_;
  Digest* data_ = nullptr;  // digests, then stamps
  std::uint32_t size_ = 0;
  std::uint32_t room_ = 0;
};

}  // namespace sluice
