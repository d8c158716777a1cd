// Memory for a table that grows at its end, without a copy and without a second table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

#include "sluice/base/memory.hpp"
#include "sluice/base/page_list.hpp"

namespace sluice {

// Owns bytes that can grow and shrink; movable, with its resource; aligned to cache lines.
//
// If the resource may map, they are one block of zeros. Up to 64 KiB it is a plain block, copied
// when it grows: most are that small, and a process has a limited number of mappings. A larger
// block reserves address space ahead and gets memory as it grows; when the reservation ends, its
// pages are remapped (not copied) to a larger one, so data() may change. Large blocks ask for huge
// pages, each before it is needed, on a short-lived thread. Apart from that, a block may be used by
// only one thread at a time.
//
// Otherwise they are pages of kPageBytes, not cleared: the user must write before it reads, or call
// zero(). The first page is smaller while it is the only one, and is copied when it grows.
class GrowableMemory {
 public:
  static constexpr std::size_t kPageBytes = GrownPage::kLines * kCacheLineBytes;

  explicit GrowableMemory(MemoryResource& resource = default_memory()) noexcept
      : resource_(&resource), pages_(resource) {}
  GrowableMemory(GrowableMemory&& other) noexcept;
  GrowableMemory& operator=(GrowableMemory&& other) noexcept;
  GrowableMemory(const GrowableMemory&) = delete;
  GrowableMemory& operator=(const GrowableMemory&) = delete;
  ~GrowableMemory();

  // Grows to at least `bytes`, and up to a quarter or 64 KiB more, so that a table that grows line
  // by line calls the resource rarely. Throws NoMemory when the resource cannot give them; the
  // bytes are then unchanged, but data() may have changed.
  void grow(std::uint64_t bytes);
  // Shrinks to what `bytes` need, with the first `bytes` zero. Cannot fail: it keeps more if the
  // system refuses a smaller block.
  void reset(std::uint64_t bytes) noexcept;
  // Clears the first `bytes`, at most size(). Several pages are only marked: use to_read() and
  // to_write() of their lines.
  void zero(std::uint64_t bytes) noexcept;

  // The block; null if there are pages.
  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  // The pages; none if there is a block.
  GrownPages pages() const noexcept { return pages_.pages(); }
  std::size_t size() const noexcept { return bytes_; }
  MemoryResource& resource() const noexcept { return *resource_; }
  // The memory that it has taken from its resource, including a page prepared for the next grow().
  std::uint64_t taken() const noexcept { return taken_ + pages_.taken(); }
  // The size after grow(bytes), if it was smaller before.
  static std::uint64_t given_for(std::uint64_t bytes) noexcept;
  // The same in a resource that maps nothing, with the list of the pages.
  static std::uint64_t given_in_pages_for(std::uint64_t bytes) noexcept;

 private:
  bool maps() const noexcept { return resource_->mapping() != nullptr; }
  void grow_pages(std::size_t bytes);
  void grow_first_page(std::size_t bytes);
  void drop_pages(std::size_t keep) noexcept;
  std::size_t page_bytes(std::size_t page) const noexcept;
  bool is_small() const noexcept { return data_ != nullptr && mapping_ == nullptr; }
  void grow_small(std::size_t bytes);
  void grow_out_of_small(std::uint64_t bytes);
  void reserve(std::size_t bytes);
  void advise_huge(std::size_t from, std::size_t until) noexcept;
  void fetch_page() noexcept;
  void wait_for_page() noexcept;

  MemoryResource* resource_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;     // that may be used, from data_ on
  std::size_t taken_ = 0;     // bytes_ and the prepared page, if there is one; of all pages
  std::size_t reserved_ = 0;  // from data_ on
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::thread fetching_;  // of the page behind
  PageList pages_;
};

}  // namespace sluice
