// A table of cache lines, zero at first, from a memory resource: one block where it may be mapped or
// is small, else pages of at most 1 MiB that are cleared as they are reached.
//
// Pages are all taken when the table is made, so that nothing fails later; but making it, or clear(),
// only marks their granules of 16 lines as not cleared. Writing to a granule clears it first, and
// reading from one that was never written to reads zeros from elsewhere.
#pragma once

#include <cstring>

#include "sluice/base/codec.hpp"
#include "sluice/base/memory.hpp"

namespace sluice {

// Pages as a loop over them sees them; none: the table is one block.
struct LinePages {
  static constexpr std::uint64_t kGranuleLines = 16;
  // Whole granules. With what aligns it, a page takes 1 MiB less 15 lines.
  static constexpr std::uint64_t kPageLines = 1023 * kGranuleLines;
  alignas(kCacheLineBytes) static constexpr std::byte kZeros[kCacheLineBytes] = {};

  std::byte* const* pages = nullptr;
  std::uint64_t* cleared = nullptr;  // a bit per granule

  explicit operator bool() const noexcept { return pages != nullptr; }
  std::byte* at(std::uint64_t line) const noexcept {
    return pages[line / kPageLines] + line % kPageLines * kCacheLineBytes;
  }
  bool is_clear(std::uint64_t line) const noexcept {
    const std::uint64_t granule = line / kGranuleLines;
    return (cleared[granule / 64] >> (granule % 64) & 1) != 0;
  }
  const std::byte* to_read(std::uint64_t line) const noexcept {
    return is_clear(line) ? at(line) : kZeros;
  }
  std::byte* to_write(std::uint64_t line) const noexcept {
    if (!is_clear(line)) {
      const std::uint64_t granule = line / kGranuleLines;
      std::memset(at(granule * kGranuleLines), 0, kGranuleLines * kCacheLineBytes);
      cleared[granule / 64] |= std::uint64_t{1} << (granule % 64);
    }
    return at(line);
  }
};

class LineTable {
 public:
  // Throws NoMemory.
  LineTable(std::uint64_t lines, MemoryResource& resource);
  LineTable(LineTable&& other) noexcept;
  LineTable& operator=(LineTable&& other) noexcept;
  ~LineTable();

  // The block; null where there are pages.
  std::byte* data() const noexcept { return const_cast<std::byte*>(block_.data()); }
  LinePages pages() const noexcept {
    if (pages_.empty()) return {};
    return {pages_.data(), const_cast<std::uint64_t*>(cleared_.data())};
  }
  const std::byte* to_read(std::uint64_t line) const noexcept {
    return pages_.empty() ? data() + line * kCacheLineBytes : pages().to_read(line);
  }
  std::byte* to_write(std::uint64_t line) noexcept {
    return pages_.empty() ? data() + line * kCacheLineBytes : pages().to_write(line);
  }

  std::uint64_t size() const noexcept { return lines_ * kCacheLineBytes; }
  std::uint64_t taken() const noexcept;
  MemoryResource& resource() const noexcept { return pages_.get_allocator().resource(); }
  std::uint64_t count_ones() const noexcept;
  void clear() noexcept;

  void encode(Encoder& to) const;
  void decode(Decoder& from);

 private:
  void take_pages();
  void release() noexcept;
  std::uint64_t page_bytes(std::size_t page) const noexcept;

  std::uint64_t lines_;
  Memory block_;
  Vector<std::byte*> pages_;
  Vector<std::uint64_t> cleared_;
  std::uint64_t page_usable_ = 0;  // what all pages hold of the resource
};

}  // namespace sluice
