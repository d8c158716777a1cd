// Zeroed memory for tables: aligned to cache lines, on huge pages where the kernel gives them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

inline constexpr std::size_t kCacheLineBytes = 64;

// A fixed block of zeroed bytes, owned, movable. Pages arrive on first touch, so a sparse table
// costs what it touches. Blocks of 2 MiB and more ask for huge pages: random access to a table out
// of cache otherwise pays a second miss for the page table.
class Memory {
 public:
  Memory() noexcept = default;
  // Throws NoMemory when the system cannot give `bytes`.
  explicit Memory(std::uint64_t bytes);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

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
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
};

}  // namespace sluice
