// Zeroed memory for tables, aligned to cache lines, from a memory resource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/base/memory_resource.hpp"

namespace sluice {

// Owns a fixed block of zeroed bytes; movable, with its resource. If the resource may map, pages of
// a large block are allocated on first touch, so a sparse table takes only the pages that it
// touches. From 2 MiB on they are huge pages, because otherwise random access to a table out of
// cache costs a second miss for the page table.
class Memory {
 public:
  Memory() noexcept = default;
  // Throws NoMemory when the resource cannot give `bytes`.
  explicit Memory(std::uint64_t bytes, MemoryResource& resource = default_memory());
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }
  // Must not be called on one that was made without bytes and without a resource.
  MemoryResource& resource() const noexcept { return *resource_; }
  // The memory that it has taken from its resource.
  std::uint64_t taken() const noexcept;

  template <class T>
  T* as() noexcept {
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  const T* as() const noexcept {
    return reinterpret_cast<const T*>(data_);
  }
  std::span<std::byte> bytes() noexcept { return {data_, bytes_}; }
  std::span<const std::byte> bytes() const noexcept { return {data_, bytes_}; }

  // How many bits are set.
  std::uint64_t count_ones() const noexcept;

  // Sets all bytes to zero, as new; large blocks return their pages to the system.
  void clear() noexcept;

 private:
  void map(std::size_t bytes);

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  MemoryResource* resource_ = nullptr;
  void* mapping_ = nullptr;  // null: a plain block
  std::size_t mapping_bytes_ = 0;
};

}  // namespace sluice
