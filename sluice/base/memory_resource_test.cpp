#include "sluice/base/memory_resource.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/base/memory.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

// A host whose blocks are aligned to 8 bytes and no more, and that knows every one of them.
struct Host {
  static inline std::set<void*> blocks;
  static inline std::size_t largest = 0;
  static void* allocate(std::size_t bytes) {
    largest = std::max(largest, bytes);
    void* const block = static_cast<std::byte*>(std::malloc(bytes + 8)) + 8;
    blocks.insert(block);
    return block;
  }
  static void free(void* block) {
    EXPECT_EQ(blocks.erase(block), 1u) << "a block that was never given";
    std::free(static_cast<std::byte*>(block) - 8);
  }
};

TEST(HostMemory, AlignsWhatTheHostDoesNot) {
  HostMemory memory({Host::allocate, Host::free});
  for (const std::size_t alignment : {1, 8, 16, 64, 4096})
    for (const std::size_t bytes : {1, 24, 1000, 100'000}) {
      void* const block = memory.allocate(bytes, alignment);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
      std::memset(block, 0xAB, bytes);
      EXPECT_GE(memory.taken(), bytes);
      EXPECT_EQ(memory.blocks(), 1u);
      memory.deallocate(block, bytes, alignment);
      EXPECT_EQ(memory.taken(), 0u);
      EXPECT_TRUE(Host::blocks.empty());
    }
}

TEST(HostMemory, NeedsAnAllocatorThatTakesBack) {
  const auto error_of = [](const HostMemory::Calls& calls) -> std::string {
    try {
      HostMemory memory(calls);
    } catch (const BadParameters& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(error_of({}).find("`allocate`"), 0u);
  EXPECT_EQ(error_of({.allocate = Host::allocate}).find("`free`"), 0u);
  EXPECT_EQ(error_of({.free = Host::free}).find("`allocate`"), 0u);
  EXPECT_EQ(error_of({Host::allocate, Host::free}), "none");
}

TEST(HostMemory, GivesNoBlockBeyondAMebibyte) {
  HostMemory memory({Host::allocate, Host::free});
  Host::largest = 0;
  { const Memory whole(memory.largest_block(), memory); }
  EXPECT_EQ(Host::largest, std::size_t{1} << 20);
  EXPECT_THROW(Memory(memory.largest_block() + 1, memory), NoMemory);
  EXPECT_THROW(static_cast<void>(memory.allocate(2 << 20, 8)), NoMemory);
  EXPECT_EQ(Host::largest, std::size_t{1} << 20);
  EXPECT_TRUE(Host::blocks.empty());
  EXPECT_EQ(memory.taken(), 0u);
}

TEST(HostMemory, CountsWhatTheHostReallyGave) {
  HostMemory memory(malloc_calls());
  void* const block = memory.allocate(1001, 8);
  EXPECT_EQ(memory.taken(), malloc_usable_size(block));
  EXPECT_EQ(memory.taken(), memory.usable(block, 1001, 8));
  memory.deallocate(block, 1001, 8);
  const Memory table(1000, memory);
  EXPECT_GE(memory.taken(), 1000u + 64u);
  EXPECT_EQ(memory.taken(), table.taken());
}

TEST(MemoryResource, KeepsItsBudget) {
  SystemMemory memory({.budget = 1 << 20});
  EXPECT_EQ(memory.budget(), 1u << 20);
  Memory half(512 << 10, memory);
  Memory small(1000, memory);
  EXPECT_EQ(memory.taken(), half.taken() + small.taken());
  EXPECT_EQ(memory.blocks(), 2u);
  EXPECT_THROW(Memory(512 << 10, memory), NoMemory);
  EXPECT_THROW(Memory(2 << 20, memory), NoMemory);
  EXPECT_EQ(memory.taken(), half.taken() + small.taken());
  half = Memory();
  EXPECT_NO_THROW(Memory(512 << 10, memory));
  EXPECT_EQ(memory.taken(), small.taken());
}

TEST(MemoryResource, ServesStandardContainers) {
  TestMemory memory;
  {
    std::pmr::vector<int> numbers(100, &memory);
    EXPECT_EQ(memory.taken(), memory.usable(nullptr, 400, 4));
  }
  EXPECT_EQ(memory.taken(), 0u);
}

// A container that is moved, by construction or by assignment, keeps its resource.
TEST(MemoryResource, MovesWithAVector) {
  TestMemory one, other;
  Vector<int> from(10, one);
  const int* const where = from.data();
  Vector<int> to(20, other);
  to = std::move(from);
  EXPECT_EQ(to.data(), where);
  EXPECT_EQ(&to.get_allocator().resource(), &one);
  EXPECT_EQ(taken_by(to), one.taken());
  EXPECT_EQ(other.taken(), 0u);
}

}  // namespace
}  // namespace sluice
