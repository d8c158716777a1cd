#include "sluice/base/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"

namespace sluice {
namespace {

bool all_zero(const Memory& memory) {
  return std::ranges::all_of(memory.bytes(), [](std::byte byte) { return byte == std::byte{0}; });
}

// Below, at and beyond the size from which huge pages are asked for.
constexpr std::uint64_t kSizes[] = {1, 64, 4097, (2 << 20) - 1, 2 << 20, (5 << 20) + 100};

TEST(Memory, IsAlignedZeroedAndWholeForEverySize) {
  for (const std::uint64_t bytes : kSizes) {
    Memory memory(bytes);
    ASSERT_EQ(memory.size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % kCacheLineBytes, 0u) << bytes;
    EXPECT_TRUE(all_zero(memory)) << bytes;
    // To the last byte: a mapping too short ends the test here.
    std::memset(memory.data(), 0xAB, memory.size());
    EXPECT_EQ(memory.bytes().back(), std::byte{0xAB});
  }
}

TEST(Memory, ClearGivesZerosToTheLastByte) {
  for (const std::uint64_t bytes : kSizes) {
    Memory memory(bytes);
    std::memset(memory.data(), 0xFF, memory.size());
    memory.clear();
    EXPECT_TRUE(all_zero(memory)) << bytes;
    memory.bytes().back() = std::byte{1};
    EXPECT_EQ(memory.bytes().back(), std::byte{1}) << "still ours after clear";
  }
}

TEST(Memory, NothingIsNothing) {
  Memory none;
  EXPECT_EQ(none.size(), 0u);
  none.clear();
  EXPECT_EQ(Memory(0).size(), 0u);
}

TEST(Memory, MovesWithItsBytes) {
  Memory from(100);
  from.bytes()[99] = std::byte{7};
  const std::byte* const where = from.data();
  Memory to(std::move(from));
  EXPECT_EQ(to.data(), where);
  EXPECT_EQ(to.bytes()[99], std::byte{7});
  Memory other(5);
  other = std::move(to);
  EXPECT_EQ(other.data(), where);
  EXPECT_EQ(other.size(), 100u);
}

TEST(Memory, CountsTheOnesOfAnyBytes) {
  SplitMix64 random(1);
  // Below, at and beyond what is counted together; all set is the most that a sum must hold.
  for (const std::uint64_t size : {1, 7, 191, 192, 193, 1000, 100'003}) {
    Memory memory(size);
    EXPECT_EQ(memory.count_ones(), 0u);
    std::ranges::fill(memory.bytes(), std::byte{0xFF});
    EXPECT_EQ(memory.count_ones(), 8 * size);
    std::uint64_t ones = 0;
    for (std::byte& byte : memory.bytes()) {
      byte = static_cast<std::byte>(random.next());
      ones += static_cast<std::uint64_t>(std::popcount(std::to_integer<unsigned>(byte)));
    }
    EXPECT_EQ(memory.count_ones(), ones);
  }
}

TEST(Memory, MoreThanThereCanBeIsRefused) {
  // More than any machine has; the last would wrap around when rounded up to pages.
  for (const std::uint64_t bytes :
       {std::uint64_t{1} << 45, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    try {
      Memory memory(bytes);
      FAIL() << bytes << " bytes were given";
    } catch (const BadParameters& error) {
      EXPECT_TRUE(std::string(error.what()).find(std::to_string(bytes) + " bytes") !=
                  std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace sluice
