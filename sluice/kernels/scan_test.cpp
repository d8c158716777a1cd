#include "sluice/kernels/scan.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice {
namespace {

struct Result {
  std::vector<std::uint32_t> positions;
  std::size_t scanned;
  bool operator==(const Result&) const = default;
};

template <class FindAll>
Result run(FindAll find, std::string_view text, Needles needles, std::size_t most) {
  std::vector<std::uint32_t> positions(most + kScanSlack);
  const Scan scan = find(text.data(), text.size(), needles, most, positions.data());
  positions.resize(scan.found);
  return {positions, scan.scanned};
}

// The portable loop and every vector version that this machine can run.
class EveryLevel : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { force_simd_level(GetParam()); }
  void TearDown() override { force_simd_level(simd_levels().front()); }
};

TEST_P(EveryLevel, EqualsPortableAtEverySizeAndAlignment) {
  SplitMix64 random(1);
  for (std::size_t size = 0; size < 200; ++size) {
    for (std::size_t shift = 0; shift < 64; shift += 1 + random.next() % 3) {
      // The range ends where the allocation ends, so that sanitizers see a read past it.
      const auto block = std::make_unique<char[]>(shift + size);
      for (std::size_t i = 0; i < shift + size; ++i)
        block[i] = static_cast<char>('a' + random.next() % 8);
      const std::string_view text(block.get() + shift, size);
      const std::size_t most = random.next() % (size + 2);
      for (const Needles needles : {Needles{'b', 'b'}, Needles{'c', 'h'}, Needles{'\n', '\n'}}) {
        EXPECT_EQ(run(find_all, text, needles, most), run(find_all_portable, text, needles, most))
            << size << " bytes at " << shift << ", most " << most;
      }
    }
  }
}

TEST_P(EveryLevel, FindsZerosAndHighBytesButNotThePadding) {
  const std::string text("\0a\xff\0", 4);
  EXPECT_EQ(run(find_all, text, {'\0', '\xff'}, 9), (Result{{0, 2, 3}, 4}));
  EXPECT_EQ(run(find_all, std::string_view(), {'\0', '\0'}, 9), (Result{{}, 0}));
}

TEST_P(EveryLevel, StopsAfterTheMostWanted) {
  const std::string text(1000, '\n');
  for (const std::size_t most : {0u, 1u, 63u, 64u, 65u, 999u, 1000u}) {
    const Result result = run(find_all, text, {'\n', '\n'}, most);
    EXPECT_EQ(result.positions.size(), most);
    EXPECT_EQ(result.scanned, most);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, EveryLevel, testing::ValuesIn(simd_levels()),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace sluice
