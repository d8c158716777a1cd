// A table of zeros, aligned to cache lines, from a memory resource: one block if it is small or may
// be mapped, otherwise pages of at most 1 MiB that are cleared on first use.
//
// All pages are allocated when the table is made, so that nothing fails later. But making the
// table, or clear(), only marks its granules of 16 lines as not cleared. A write to such a granule
// clears it first; a read of it reads zeros from elsewhere.
#pragma once

#include <cstring>

#include "sluice/base/codec.hpp"
#include "sluice/base/memory.hpp"

namespace sluice {

// Pages in the form that loops use; none: the table is one block.
struct LinePages {
  static constexpr std::uint64_t kGranuleLines = 16;
  // Whole granules. With what aligns it, a page takes 1 MiB less 15 lines.
  static constexpr std::uint64_t kPageLines = 1023 * kGranuleLines;
  static_assert(kPageLines * kCacheLineBytes <= MemoryResource::kLeastLargest);
  alignas(kCacheLineBytes) static constexpr std::byte kZeros[kCacheLineBytes] = {};

  // One bit per granule says whether it was cleared. These bits are in blocks of 512 KiB, each for
  // 4 GiB; this is the number of granules per block.
  static constexpr std::uint64_t kBlockGranules = std::uint64_t{1} << 22;

  std::byte* const* pages = nullptr;
  std::uint64_t* const* cleared = nullptr;

  explicit operator bool() const noexcept { return pages != nullptr; }
  std::byte* at(std::uint64_t line) const noexcept {
    return pages[line / kPageLines] + line % kPageLines * kCacheLineBytes;
  }
  bool is_clear(std::uint64_t line) const noexcept {
    const std::uint64_t granule = line / kGranuleLines;
    return (bits_of(granule) >> (granule % 64) & 1) != 0;
  }
  std::uint64_t& bits_of(std::uint64_t granule) const noexcept {
    return cleared[granule / kBlockGranules][granule % kBlockGranules / 64];
  }
  const std::byte* to_read(std::uint64_t line) const noexcept {
    return is_clear(line) ? at(line) : kZeros;
  }
  std::byte* to_write(std::uint64_t line) const noexcept {
    if (!is_clear(line)) {
      const std::uint64_t granule = line / kGranuleLines;
      std::memset(at(granule * kGranuleLines), 0, kGranuleLines * kCacheLineBytes);
      bits_of(granule) |= std::uint64_t{1} << (granule % 64);
    }
    return at(line);
  }
};

class LineTable {
 public:
  LineTable() noexcept : LineTable(default_memory()) {}  // of no bytes
  // Throws NoMemory.
  LineTable(std::uint64_t bytes, MemoryResource& resource);
  // A smaller table is one block: soon cleared, and found without a division.
  static constexpr std::uint64_t kPagesFromBytes = std::uint64_t{64} << 10;
  LineTable(LineTable&& other) noexcept;
  LineTable& operator=(LineTable&& other) noexcept;
  ~LineTable();

  // The block; null where there are pages.
  std::byte* data() const noexcept { return const_cast<std::byte*>(block_.data()); }
  LinePages pages() const noexcept {
    if (pages_.empty()) return {};
    return {pages_.data(), cleared_.data()};
  }
  const std::byte* to_read(std::uint64_t line) const noexcept {
    return pages_.empty() ? data() + line * kCacheLineBytes : pages().to_read(line);
  }
  std::byte* to_write(std::uint64_t line) noexcept {
    return pages_.empty() ? data() + line * kCacheLineBytes : pages().to_write(line);
  }

  std::uint64_t size() const noexcept { return bytes_; }
  std::uint64_t taken() const noexcept;
  MemoryResource& resource() const noexcept { return pages_.get_allocator().resource(); }
  std::uint64_t count_ones() const noexcept;
  void clear() noexcept;

  void encode(Encoder& to) const { encode(to, bytes_); }
  void decode(Decoder& from) { decode(from, bytes_); }
  // The first `bytes` only.
  void encode(Encoder& to, std::uint64_t bytes) const;
  void decode(Decoder& from, std::uint64_t bytes);

 private:
  explicit LineTable(MemoryResource& resource) noexcept : pages_(resource), cleared_(resource) {}
  std::uint64_t lines() const noexcept { return (bytes_ + kCacheLineBytes - 1) / kCacheLineBytes; }
  void take_pages(std::uint64_t bytes);
  void release() noexcept;
  std::uint64_t page_bytes(std::size_t page) const noexcept;
  std::uint64_t bit_bytes(std::size_t block) const noexcept;
  void set_cleared(bool cleared) noexcept;
  void* take(std::uint64_t bytes, std::size_t alignment);

  std::uint64_t bytes_ = 0;
  Memory block_;
  Vector<std::byte*> pages_;
  Vector<std::uint64_t*> cleared_;
  std::uint64_t usable_ = 0;  // what pages and bits hold of the resource
};

// The 64-bit words of a table. Loops are templates on how they lie, and with_words() chooses one for
// a whole batch.
struct FlatWords {
  std::uint64_t* words;

  static FlatWords of(const LineTable& table) noexcept {
    return {reinterpret_cast<std::uint64_t*>(table.data())};
  }
  std::uint64_t get(std::uint64_t at) const noexcept { return words[at]; }
  // To be written.
  std::uint64_t& at(std::uint64_t at) const noexcept { return words[at]; }
  // To be prefetched.
  const void* address(std::uint64_t at) const noexcept { return words + at; }
  // A word from any byte on; the table must be one word longer than what is read this way.
  std::uint64_t load(std::uint64_t byte) const noexcept {
    std::uint64_t word;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(words) + byte, sizeof word);
    return word;
  }
  std::uint64_t byte(std::uint64_t byte) const noexcept {
    return std::to_integer<std::uint64_t>(reinterpret_cast<const std::byte*>(words)[byte]);
  }
  void store(std::uint64_t byte, std::uint64_t word) const noexcept {
    std::memcpy(reinterpret_cast<std::byte*>(words) + byte, &word, sizeof word);
  }
};

struct PagedWords {
  static constexpr std::uint64_t kOfLine = kCacheLineBytes / sizeof(std::uint64_t);
  LinePages pages;

  std::uint64_t get(std::uint64_t at) const noexcept {
    return reinterpret_cast<const std::uint64_t*>(pages.to_read(at / kOfLine))[at % kOfLine];
  }
  std::uint64_t& at(std::uint64_t at) const noexcept {
    return reinterpret_cast<std::uint64_t*>(pages.to_write(at / kOfLine))[at % kOfLine];
  }
  const void* address(std::uint64_t at) const noexcept { return pages.at(at / kOfLine); }
  std::uint64_t load(std::uint64_t byte) const noexcept {
    const std::uint64_t shift = byte % 8 * 8;
    if (shift == 0) return get(byte / 8);
    return get(byte / 8) >> shift | get(byte / 8 + 1) << (64 - shift);
  }
  std::uint64_t byte(std::uint64_t byte) const noexcept {
    return get(byte / 8) >> (byte % 8 * 8) & 0xFF;
  }
  void store(std::uint64_t byte, std::uint64_t word) const noexcept {
    const std::uint64_t shift = byte % 8 * 8;
    if (shift == 0) {
      at(byte / 8) = word;
      return;
    }
    const std::uint64_t upper = ~std::uint64_t{0} << shift;
    std::uint64_t& first = at(byte / 8);
    first = (first & ~upper) | word << shift;
    std::uint64_t& second = at(byte / 8 + 1);
    second = (second & upper) | word >> (64 - shift);
  }
};

// Calls act(words). The words can be written even if the table is const here.
template <class Act>
[[gnu::always_inline]] inline decltype(auto) with_words(const LineTable& table, Act act) {
  if (const LinePages pages = table.pages()) [[unlikely]]
    return act(PagedWords{pages});
  return act(FlatWords::of(table));
}

// Each word becomes join(word, the other table's word). Both tables have the same number of whole
// words.
template <class Join>
void join_words(LineTable& table, const LineTable& other, Join join) {
  with_words(table, [&](auto words) {
    with_words(other, [&](auto others) {
      for (std::uint64_t at = 0; at < table.size() / sizeof(std::uint64_t); ++at)
        words.at(at) = join(words.get(at), others.get(at));
    });
  });
}

}  // namespace sluice
