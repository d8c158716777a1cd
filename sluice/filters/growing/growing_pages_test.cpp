// A growing filter made for many keys in a host's memory: its pages are cleared as they are reached.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "sluice/filters/growing/growing.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::random_digests;

constexpr std::uint64_t kKeys = 200'000;
constexpr std::byte kUntouched{0xEB};

// Blocks that are full of a pattern: a line that still has it was not written.
class PatternedMemory final : public MemoryResource {
 public:
  std::size_t usable(const void*, std::size_t bytes, std::size_t) const noexcept override {
    return bytes;
  }
  std::size_t largest_block() const noexcept override { return kLeastLargest; }

  std::size_t lines_written() const {
    std::size_t lines = 0;
    for (const auto& [block, bytes] : blocks_)
      for (std::size_t at = 0; at + kCacheLineBytes <= bytes; at += kCacheLineBytes)
        lines += std::any_of(block + at, block + at + kCacheLineBytes,
                             [](std::byte byte) { return byte != kUntouched; });
    return lines;
  }
  void fill() {
    for (const auto& [block, bytes] : blocks_)
      if (bytes >= 60'000) std::memset(block, static_cast<int>(kUntouched), bytes);
  }

 private:
  void* get(std::size_t bytes, std::size_t alignment) noexcept override {
    auto* const block =
        static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment), std::nothrow));
    std::memset(block, static_cast<int>(kUntouched), bytes);
    blocks_[block] = bytes;
    return block;
  }
  void put(void* block, std::size_t, std::size_t alignment) noexcept override {
    blocks_.erase(static_cast<std::byte*>(block));
    ::operator delete(block, std::align_val_t(alignment));
  }

  std::map<std::byte*, std::size_t> blocks_;
};

class GrowingPages : public testing::TestWithParam<unsigned> {
 protected:
  Growing make(MemoryResource& memory) const {
    return Growing::make({.slot_bits = GetParam(), .expected_keys = kKeys, .target_fpr = 0.05},
                         memory);
  }
};

INSTANTIATE_TEST_SUITE_P(Slots, GrowingPages, testing::Values(16u, 32u, 64u),
                         testing::PrintToStringParamName());

TEST_P(GrowingPages, AreClearedAsTheyAreReached) {
  PatternedMemory memory;
  Growing filter = make(memory);
  const std::size_t all = filter.bytes() / kCacheLineBytes;
  const std::size_t made = memory.lines_written();
  EXPECT_LE(made, 64u) << "of " << all << " lines";
  const std::vector<Digest> digests = random_digests(1, kKeys);
  std::vector<Verdict> verdicts(100);
  // Asking clears nothing.
  filter.may_contain(std::span(digests).first(100), verdicts);
  EXPECT_EQ(std::ranges::count(verdicts, Verdict::distinct), 100);
  EXPECT_EQ(memory.lines_written(), made);
  // A call reaches two granules per key.
  EXPECT_EQ(filter.observe(std::span(digests).first(100), verdicts), 100u);
  EXPECT_LE(memory.lines_written(), made + 100 * 2 * GrownPage::kGranuleLines);
  // Emptying it touches as little as making it did.
  EXPECT_EQ(filter.insert(std::span(digests)), kKeys);
  filter.clear();
  memory.fill();
  EXPECT_EQ(filter.stats().keys, 0u);
  filter.may_contain(std::span(digests).first(100), verdicts);
  EXPECT_EQ(std::ranges::count(verdicts, Verdict::distinct), 100);
}

// Granule by granule the same as a table that was cleared at once: verdicts, bytes, growth, copies,
// and what is forgotten and merged.
TEST_P(GrowingPages, HoldWhatAMappedTableHolds) {
  PatternedMemory memory;
  Growing paged = make(memory), mapped = make(default_memory());
  const std::vector<Digest> digests = random_digests(2, 2 * kKeys);
  const auto same = [&](const char* when) {
    EXPECT_EQ(bytes_of(paged), bytes_of(mapped)) << when;
    EXPECT_EQ(paged.stats().keys, mapped.stats().keys) << when;
  };
  const auto observe = [&](std::size_t from, std::size_t count, std::size_t call) {
    std::vector<Verdict> one(count), two(count);
    for (std::size_t at = 0; at < count; at += call) {
      const auto keys = std::span(digests).subspan(from + at, std::min(call, count - at));
      ASSERT_EQ(paged.observe(keys, std::span(one).subspan(at, keys.size())), keys.size());
      ASSERT_EQ(mapped.observe(keys, std::span(two).subspan(at, keys.size())), keys.size());
    }
    EXPECT_EQ(one, two);
  };
  same("empty");
  observe(0, 300, 7);
  same("few");
  EXPECT_TRUE(paged.forget(digests[5]) && mapped.forget(digests[5]));
  EXPECT_EQ(paged.forget(digests[kKeys]), mapped.forget(digests[kKeys]));
  {
    PatternedMemory other_memory;
    Growing other = make(other_memory), other_mapped = make(default_memory());
    for (std::size_t i = 300; i < 500; ++i) {
      other.insert(digests[i]);
      other_mapped.insert(digests[i]);
    }
    paged.merge(other);
    mapped.merge(other_mapped);
  }
  same("merged");
  paged.clear();
  mapped.clear();
  memory.fill();
  same("cleared");
  observe(0, 2 * kKeys, 1000);  // grows beyond the first pages
  same("grown");
  for (std::size_t i = 0; i < digests.size(); ++i) ASSERT_TRUE(paged.may_contain(digests[i])) << i;
}

}  // namespace
}  // namespace sluice
