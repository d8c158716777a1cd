// The pages of a table that grows in memory that may not be mapped (growable_memory.hpp): the form
// that loops use, and the list that owns it.
//
// Making or emptying a table only marks the granules of its pages, 16 lines each, as not cleared. A
// write to such a granule clears it first; a read of it reads zeros from elsewhere.
#pragma once

#include <algorithm>
#include <cstring>

#include "sluice/base/memory_resource.hpp"

namespace sluice {

struct GrownPage {
  static constexpr std::uint64_t kLines = 1023;  // with what aligns it, a page takes 64 KiB
  static constexpr std::uint64_t kGranuleLines = 16;
  static constexpr std::uint64_t kAllCleared = ~std::uint64_t{0};

  std::byte* bytes = nullptr;
  std::uint64_t cleared = kAllCleared;  // a bit per granule; the last one has 15 lines

  bool is_clear(std::uint64_t line) const noexcept {
    return (cleared >> (line / kGranuleLines) & 1) != 0;
  }
  std::byte* at(std::uint64_t line) const noexcept { return bytes + line * kCacheLineBytes; }
  void clear_granule(std::uint64_t granule) noexcept {
    const std::uint64_t first = granule * kGranuleLines;
    std::memset(at(first), 0, std::min(kGranuleLines, kLines - first) * kCacheLineBytes);
    cleared |= std::uint64_t{1} << granule;
  }
};
static_assert((GrownPage::kLines + GrownPage::kGranuleLines - 1) / GrownPage::kGranuleLines == 64);

// No pages: the table is one block.
struct GrownPages {
  // Pages lie in lists of this many: 256 MiB of a table. A host gives no blocks for longer ones, and
  // a call must not copy a long one.
  static constexpr std::uint64_t kPerList = 4096;
  static constexpr std::size_t kZeroBytes = GrownPage::kGranuleLines * kCacheLineBytes;
  alignas(kCacheLineBytes) static constexpr std::byte kZeros[kZeroBytes] = {};

  GrownPage* const* lists = nullptr;

  explicit operator bool() const noexcept { return lists != nullptr; }
  GrownPage& operator[](std::uint64_t page) const noexcept {
    return lists[page / kPerList][page % kPerList];
  }
  // Lines are numbered through all pages. What is read must not be written.
  std::byte* to_read(std::uint64_t line) const noexcept {
    const GrownPage& page = (*this)[line / GrownPage::kLines];
    const std::uint64_t in_page = line % GrownPage::kLines;
    return page.is_clear(in_page) ? page.at(in_page) : const_cast<std::byte*>(kZeros);
  }
  std::byte* to_write(std::uint64_t line) const noexcept {
    GrownPage& page = (*this)[line / GrownPage::kLines];
    const std::uint64_t in_page = line % GrownPage::kLines;
    if (!page.is_clear(in_page)) page.clear_granule(in_page / GrownPage::kGranuleLines);
    return page.at(in_page);
  }
};

// Owns the lists, not the pages.
class PageList {
 public:
  explicit PageList(MemoryResource& resource) noexcept : lists_(resource) {}
  PageList(const PageList&) = delete;
  PageList& operator=(const PageList&) = delete;
  ~PageList();
  friend void swap(PageList& a, PageList& b) noexcept;

  // Throws NoMemory; the pages are then as before.
  void reserve(std::size_t pages);
  // There must be room.
  void push_back(std::byte* page) noexcept { view()[size_++] = {.bytes = page}; }
  void pop_back() noexcept { --size_; }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  GrownPage& operator[](std::size_t page) const noexcept { return view()[page]; }
  GrownPages pages() const noexcept { return empty() ? GrownPages{} : view(); }
  // What the lists have taken from their resource.
  std::uint64_t taken() const noexcept { return usable_ + taken_by(lists_); }
  // The bytes of the lists of that many pages.
  static std::uint64_t bytes_for(std::uint64_t pages) noexcept;

 private:
  GrownPages view() const noexcept { return {lists_.data()}; }
  MemoryResource& resource() const noexcept { return lists_.get_allocator().resource(); }
  GrownPage* take(std::size_t pages);
  void give_back(GrownPage* list, std::size_t pages) noexcept;

  Vector<GrownPage*> lists_;  // all full-sized, unless there is only one
  std::size_t size_ = 0;
  std::size_t room_ = 0;
  std::uint64_t usable_ = 0;
};

}  // namespace sluice
