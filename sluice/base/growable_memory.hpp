// Memory for a table that grows at its end, without a copy and without a second table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

#include "sluice/base/memory.hpp"

namespace sluice {

// Bytes that can be made more and less, owned, movable with their resource, aligned to cache lines.
//
// Where the resource may map, they are one block, and zero. Up to 64 KiB it is a plain one, and copied
// when it grows: most are that small, and a process has a limited number of mappings. Beyond, address
// space is reserved some way ahead and given memory as the block grows; when the reservation ends,
// the pages (not their bytes) move to a larger one, so data() may change. Large blocks ask for huge
// pages, each before it is needed, and let a short-lived thread wait for it. Nothing else of a block
// may be used by two threads at once.
//
// Elsewhere they are pages of kPageBytes, with anything in them: what is never read before it is
// written need not be cleared. The first is smaller as long as it is the only one, and is copied
// when it grows.
class GrowableMemory {
 public:
  // With what aligns it, a page takes 64 KiB.
  static constexpr std::size_t kPageBytes = (std::size_t{64} << 10) - kCacheLineBytes;

  explicit GrowableMemory(MemoryResource& resource = default_memory()) noexcept
      : resource_(&resource), pages_(resource) {}
  GrowableMemory(GrowableMemory&& other) noexcept;
  GrowableMemory& operator=(GrowableMemory&& other) noexcept;
  GrowableMemory(const GrowableMemory&) = delete;
  GrowableMemory& operator=(const GrowableMemory&) = delete;
  ~GrowableMemory();

  // At least `bytes` from now on: somewhat more (at most a quarter, or 64 KiB), so that a table that
  // grows line by line asks seldom. Throws NoMemory when the resource cannot give them; the bytes are
  // then as they were, but data() may have changed.
  void grow(std::uint64_t bytes);
  // Only as many as `bytes` need, the first `bytes` of them zero. It takes nothing new, and keeps
  // more where the resource refuses less.
  void reset(std::uint64_t bytes) noexcept;
  // The first `bytes`, at most size(), are zero from now on.
  void zero(std::uint64_t bytes) noexcept;

  // The block; null where there are pages.
  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  // The pages; null where there is a block.
  std::byte* const* pages() const noexcept { return pages_.empty() ? nullptr : pages_.data(); }
  std::size_t size() const noexcept { return bytes_; }
  MemoryResource& resource() const noexcept { return *resource_; }
  // What it holds of its resource: with the page that is there, or on its way, for the next grow().
  std::uint64_t taken() const noexcept { return taken_ + taken_by(pages_); }
  // The size after grow(bytes), of one that was smaller.
  static std::uint64_t given_for(std::uint64_t bytes) noexcept;

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
  std::size_t taken_ = 0;     // the same and the page behind, if there is one; of all pages
  std::size_t reserved_ = 0;  // from data_ on
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::thread fetching_;  // of the page behind
  Vector<std::byte*> pages_;
};

}  // namespace sluice
