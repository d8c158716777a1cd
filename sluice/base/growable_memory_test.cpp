#include "sluice/base/growable_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

bool all_are(const GrowableMemory& memory, std::size_t from, std::size_t until, std::byte value) {
  const std::byte* const first = memory.data() + from;
  // All equal to the first: each to the one before it.
  return from == until || (*first == value && std::memcmp(first, first + 1, until - from - 1) == 0);
}

// Through several reservations and into huge pages: what was written stays, what is new is zero.
TEST(GrowableMemory, KeepsItsBytesAndAddsZeros) {
  GrowableMemory memory;
  std::size_t before = 0;
  for (std::uint64_t bytes = 1; bytes < (std::uint64_t{80} << 20); bytes = bytes * 3 / 2 + 64) {
    memory.grow(bytes);
    ASSERT_GE(memory.size(), bytes);
    EXPECT_LE(memory.size(), bytes + std::max<std::uint64_t>(bytes / 4, 64 << 10));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % kCacheLineBytes, 0u);
    ASSERT_TRUE(all_are(memory, 0, before, std::byte{0xAB})) << bytes;
    ASSERT_TRUE(all_are(memory, before, memory.size(), std::byte{0})) << bytes;
    std::memset(memory.data() + before, 0xAB, memory.size() - before);
    before = memory.size();
  }
}

// In small steps across the size from which the next huge page is fetched ahead, through the end of
// the first reservation, with a move on the way.
TEST(GrowableMemory, StepsFindTheirPagesZero) {
  GrowableMemory memory;
  memory.grow(std::size_t{5} << 20);
  std::memset(memory.data(), 0xAB, memory.size());
  bool ahead = false;
  while (memory.size() < std::size_t{90} << 20) {
    const std::size_t before = memory.size();
    memory.grow(before + 1);
    ASSERT_GT(memory.size(), before);
    ASSERT_TRUE(all_are(memory, before, memory.size(), std::byte{0})) << before;
    ASSERT_TRUE(all_are(memory, before - 64, before, std::byte{0xAB})) << before;
    std::memset(memory.data() + before, 0xAB, memory.size() - before);
    ASSERT_GE(memory.taken(), memory.size());
    ASSERT_LE(memory.taken(), memory.size() + (2 << 20));
    ASSERT_TRUE(memory.taken() == memory.size() || memory.taken() % (2 << 20) == 0);
    ahead = ahead || memory.taken() > memory.size();
    GrowableMemory other(std::move(memory));
    memory = std::move(other);
  }
  EXPECT_TRUE(ahead);
  EXPECT_TRUE(all_are(memory, 0, memory.size(), std::byte{0xAB}));
  memory.reset(1000);
  EXPECT_EQ(memory.taken(), memory.size());
  EXPECT_TRUE(all_are(memory, 0, memory.size(), std::byte{0}));
}

TEST(GrowableMemory, ResetGivesBackAndZeroes) {
  GrowableMemory memory;
  memory.grow(1000);
  const std::size_t small = memory.size();
  memory.grow(50 << 20);
  std::memset(memory.data(), 1, memory.size());
  memory.reset(1000);
  EXPECT_EQ(memory.size(), small);
  EXPECT_TRUE(all_are(memory, 0, memory.size(), std::byte{0}));
  memory.grow(50 << 20);
  EXPECT_TRUE(all_are(memory, 0, memory.size(), std::byte{0}));
}

TEST(GrowableMemory, MovesWithItsBytes) {
  GrowableMemory from;
  from.grow(100);
  from.data()[99] = std::byte{7};
  GrowableMemory to(std::move(from));
  EXPECT_EQ(to.data()[99], std::byte{7});
  GrowableMemory none;
  none.reset(0);
  EXPECT_EQ(none.size(), 0u);
}

TEST(GrowableMemory, MoreThanThereIsIsRefusedAndNothingIsLost) {
  GrowableMemory memory;
  memory.grow(100);
  memory.data()[99] = std::byte{7};
  const std::size_t before = memory.size();
  for (const std::uint64_t bytes : {std::uint64_t{1} << 45, ~std::uint64_t{0}}) {
    try {
      memory.grow(bytes);
      FAIL() << bytes << " bytes were given";
    } catch (const NoMemory&) {
    }
    EXPECT_EQ(memory.size(), before);
    EXPECT_EQ(memory.data()[99], std::byte{7});
  }
}

}  // namespace
}  // namespace sluice
