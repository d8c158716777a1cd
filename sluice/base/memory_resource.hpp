// Where a filter's memory comes from.
//
// A filter, window or snapshot is made or decoded with a memory resource, and all its memory comes
// from there. The resource counts: taken() is what all its users together hold.
//
// Two exceptions. While a short list of keys grows or becomes a table, its keys may be on the
// ordinary heap, at most 12 KiB; they stay there if the resource gives no memory to come back to,
// until it does. And windows made with the same parameters share those parameters, the text of their
// filter and their plan, about 800 bytes. Windows of several resources may share them, so they lie
// on the ordinary heap and no resource counts them. A window keeps the ones that it uses, and each
// thread keeps the last 1,024, about 2 MiB at most, until it ends. A thread that makes windows by
// more plans than that in turn makes new ones for each window.
//
//   SystemMemory  the default: large tables are mapped from the system, on huge pages, and a helper
//                 thread fetches the next page of a table that grows
//   HostMemory    for a library inside a server: plain blocks of at most 1 MiB from the server's
//                 own allocator, so that the server can count them; no mmap, no madvise, no thread
//
// A resource outlives everything made with it. It may be used by several threads at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <utility>
#include <vector>

namespace sluice {

inline constexpr std::size_t kCacheLineBytes = 64;

// What a resource may count for a block beyond the bytes that were asked for. Planning adds it.
struct BlockCosts {
  bool pages = false;       // large tables are cut into pages (line_table.hpp)
  bool rounds = false;      // up to a size class: at most a quarter more, or kLeastRounding bytes
  std::size_t padding = 0;  // of a block that is aligned to cache lines
  static constexpr std::uint64_t kLeastRounding = 48;

  // The most for one block without padding.
  constexpr std::uint64_t block(std::uint64_t bytes) const noexcept {
    return rounds ? bytes + std::max(bytes / 4, kLeastRounding) : bytes;
  }
  friend bool operator==(const BlockCosts&, const BlockCosts&) = default;
};

class MemoryResource : public std::pmr::memory_resource {
 public:
  static constexpr std::uint64_t kNoBudget = std::numeric_limits<std::uint64_t>::max();

  // How tables may be mapped.
  struct Mapping {
    bool huge_pages = true;
    bool fetch_ahead = true;  // by a helper thread
  };

  explicit MemoryResource(std::uint64_t budget = kNoBudget) noexcept : budget_(budget) {}
  MemoryResource(const MemoryResource&) = delete;
  MemoryResource& operator=(const MemoryResource&) = delete;

  // The size that the allocator really spent on a block, overhead included: at least what was asked
  // for.
  virtual std::size_t usable(const void* block, std::size_t bytes,
                             std::size_t alignment) const noexcept = 0;
  // The largest block that one call of allocate() gives, aligned to cache lines: kLeastLargest or
  // more. A larger table is made of pages.
  virtual std::size_t largest_block() const noexcept = 0;
  static constexpr std::size_t kLeastLargest = (std::size_t{1} << 20) - 1024;
  // Throws BadParameters if it gives only smaller ones. Called when a filter is made or decoded.
  void check_largest_block() const;
  // Null: no memory may be mapped and no thread may be started.
  virtual const Mapping* mapping() const noexcept { return nullptr; }
  // The most that usable() adds to a block.
  virtual BlockCosts costs() const noexcept {
    return {.pages = mapping() == nullptr, .rounds = true, .padding = kCacheLineBytes};
  }

  // The limit in bytes, the bytes taken now, what is left, and in how many blocks.
  std::uint64_t budget() const noexcept { return budget_; }
  std::uint64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
  std::uint64_t left() const noexcept { return budget_ - std::min(budget_, taken()); }
  std::uint64_t blocks() const noexcept { return blocks_.load(std::memory_order_relaxed); }

  // Throws NoMemory if the budget has less left than that: for what is taken block by block.
  void check_left(std::uint64_t bytes) const;
  // For mapped memory: counts a block, or more bytes of one. Throws NoMemory when the budget would
  // be exceeded.
  virtual void charge(std::uint64_t bytes, std::uint64_t blocks = 1);
  virtual void discharge(std::uint64_t bytes, std::uint64_t blocks = 1) noexcept;

 protected:
  // Returns null when there is no memory.
  virtual void* get(std::size_t bytes, std::size_t alignment) noexcept = 0;
  virtual void put(void* block, std::size_t bytes, std::size_t alignment) noexcept = 0;

 private:
  // Throws NoMemory.
  void* do_allocate(std::size_t bytes, std::size_t alignment) final;
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) final;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept final {
    return this == &other;
  }

  std::uint64_t budget_;
  std::atomic<std::uint64_t> taken_ = 0;
  std::atomic<std::uint64_t> blocks_ = 0;
};

class SystemMemory final : public MemoryResource {
 public:
  struct Options {
    Mapping mapping = {};
    // 0: the memory of the machine, or of the container that we run in.
    std::uint64_t budget = 0;
  };
  SystemMemory() : SystemMemory(Options{}) {}
  explicit SystemMemory(const Options& options);

  // The size asked for: the system does not tell the real one.
  std::size_t usable(const void*, std::size_t bytes, std::size_t) const noexcept override {
    return bytes;
  }
  std::size_t largest_block() const noexcept override {
    return std::numeric_limits<std::size_t>::max();
  }
  const Mapping* mapping() const noexcept override { return &mapping_; }
  BlockCosts costs() const noexcept override { return {}; }

 private:
  void* get(std::size_t bytes, std::size_t alignment) noexcept override;
  void put(void* block, std::size_t bytes, std::size_t alignment) noexcept override;

  Mapping mapping_;
};

class HostMemory final : public MemoryResource {
 public:
  // Includes alignment, so that a block fits a size class of the host's allocator.
  static constexpr std::size_t kLargest = std::size_t{1} << 20;

  // The host's allocator. It need not align to more than 8 bytes.
  struct Calls {
    void* (*allocate)(std::size_t bytes) = nullptr;  // required; returns null for "no memory"
    void (*free)(void* block) = nullptr;             // required
    // The real size of a block; null if the allocator cannot tell. Plans then expect up to a
    // quarter more than was asked for, as of jemalloc's size classes.
    std::size_t (*usable)(void* block) = nullptr;
  };
  // Throws BadParameters when a required call is missing.
  explicit HostMemory(const Calls& calls, std::uint64_t budget = kNoBudget);

  std::size_t usable(const void* block, std::size_t bytes,
                     std::size_t alignment) const noexcept override;
  std::size_t largest_block() const noexcept override { return kLargest - kCacheLineBytes; }
  BlockCosts costs() const noexcept override {
    return {.pages = true, .rounds = calls_.usable != nullptr, .padding = kCacheLineBytes};
  }

 private:
  void* get(std::size_t bytes, std::size_t alignment) noexcept override;
  void put(void* block, std::size_t bytes, std::size_t alignment) noexcept override;

  Calls calls_;
};

// The resource that is used when none is given: shared by all, never destroyed.
MemoryResource& default_memory() noexcept;

// An allocator for containers. Unlike that of std::pmr, it moves with its container: a filter that
// is moved keeps its resource.
template <class T>
class ResourceAllocator {
 public:
  using value_type = T;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  ResourceAllocator(MemoryResource& resource) noexcept : resource_(&resource) {}
  template <class U>
  ResourceAllocator(const ResourceAllocator<U>& other) noexcept : resource_(&other.resource()) {}

  T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
    return static_cast<T*>(resource_->allocate(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* block, std::size_t count) noexcept {
    resource_->deallocate(block, count * sizeof(T), alignof(T));
  }
  MemoryResource& resource() const noexcept { return *resource_; }
  friend bool operator==(const ResourceAllocator& a, const ResourceAllocator& b) noexcept {
    return a.resource_ == b.resource_;
  }

 private:
  MemoryResource* resource_;
};

template <class T>
using Vector = std::vector<T, ResourceAllocator<T>>;

// The bytes that a vector has taken from its resource, without those of its elements.
template <class T>
std::uint64_t taken_by(const Vector<T>& vector) noexcept {
  if (vector.capacity() == 0) return 0;
  return vector.get_allocator().resource().usable(vector.data(), vector.capacity() * sizeof(T),
                                                  alignof(T));
}

// Owns one object in memory of a resource.
template <class T>
struct ResourceDelete {
  MemoryResource* resource = nullptr;
  void operator()(T* object) const noexcept {
    object->~T();
    resource->deallocate(object, sizeof(T), alignof(T));
  }
};
template <class T>
using Owned = std::unique_ptr<T, ResourceDelete<T>>;

template <class T, class... Arguments>
Owned<T> make_owned(MemoryResource& resource, Arguments&&... arguments) {
  void* const block = resource.allocate(sizeof(T), alignof(T));
  try {
    return Owned<T>(new (block) T(std::forward<Arguments>(arguments)...), {&resource});
  } catch (...) {
    resource.deallocate(block, sizeof(T), alignof(T));
    throw;
  }
}

template <class T>
std::uint64_t taken_by(const Owned<T>& object) noexcept {
  if (!object) return 0;
  return object.get_deleter().resource->usable(object.get(), sizeof(T), alignof(T));
}

}  // namespace sluice
