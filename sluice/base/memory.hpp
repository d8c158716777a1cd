// Zeroed memory for tables, aligned to cache lines, from a memory resource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/base/memory_resource.hpp"

namespace sluice {

// A fixed block of zeroed bytes, owned, movable with its resource. Where the resource may map, pages
// of a large block arrive on first touch, so a sparse table costs what it touches; and from 2 MiB on
// they are huge ones, since random access to a table out of cache otherwise pays a second miss for
// the page table.
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
  // Not of one that was made without bytes and without a resource.
  MemoryResource& resource() const noexcept { return *resource_; }
  // What it holds of its resource.
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

  // All bytes zero again, as new; large blocks give their pages back.
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
