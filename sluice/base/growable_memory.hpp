// Zeroed memory for a table that grows at its end, from a memory resource; where that may map,
// without a copy and without a second table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

#include "sluice/base/memory.hpp"

namespace sluice {

// A block of zeroed bytes, owned, movable, aligned to cache lines, that can be made longer and
// shorter. Address space is reserved some way ahead and given memory as the block grows; when the
// reservation ends, the pages (not their bytes) move to a larger one, so data() may change.
// Large blocks ask for huge pages, each before it is needed, and let a short-lived thread wait for
// it. Nothing else of a block may be used by two threads at once. Where the resource may not map, a
// block that grows is copied.
class GrowableMemory {
 public:
  explicit GrowableMemory(MemoryResource& resource = default_memory()) noexcept
      : resource_(&resource) {}
  GrowableMemory(GrowableMemory&& other) noexcept;
  GrowableMemory& operator=(GrowableMemory&& other) noexcept;
  GrowableMemory(const GrowableMemory&) = delete;
  GrowableMemory& operator=(const GrowableMemory&) = delete;
  ~GrowableMemory();

  // At least `bytes` from now on: somewhat more (at most a quarter, or 64 KiB), so that a table that
  // grows line by line asks seldom. Throws NoMemory when the resource cannot give them; the bytes are
  // then as they were, but data() may have changed.
  void grow(std::uint64_t bytes);
  // All bytes zero, and only as many as `bytes` need, unless there is no memory for less: what a
  // grow() of this size before has given is there again.
  void reset(std::uint64_t bytes) noexcept;

  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }
  MemoryResource& resource() const noexcept { return *resource_; }
  // What it holds of its resource: with the page that is there, or on its way, for the next grow().
  std::uint64_t taken() const noexcept;
  // The size after grow(bytes), of one that was smaller.
  static std::uint64_t given_for(std::uint64_t bytes) noexcept;

 private:
  bool maps() const noexcept { return resource_->mapping() != nullptr; }
  void grow_plain(std::size_t bytes);
  void release_plain() noexcept;
  void reserve(std::size_t bytes);
  void advise_huge(std::size_t from, std::size_t until) noexcept;
  void fetch_page() noexcept;
  void wait_for_page() noexcept;

  MemoryResource* resource_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;     // that may be used, from data_ on
  std::size_t taken_ = 0;     // the same and the page behind, if there is one
  std::size_t reserved_ = 0;  // from data_ on
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::thread fetching_;  // of the page behind
};

}  // namespace sluice
