#include "sluice/hash/highway.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/kernels/simd.hpp"

namespace sluice::hashing {
namespace {

constexpr HighwayKey kSecret = {0x0706050403020100, 0x0F0E0D0C0B0A0908, 0x1716151413121110,
                                0x1F1E1D1C1B1A1918};

// Keys in blocks of exactly their sizes, so that the address sanitizer sees a byte read beside them.
class Keys {
 public:
  explicit Keys(std::uint64_t seed) : random_(seed) {}
  void add(std::size_t size) {
    blocks_.push_back(std::make_unique<char[]>(size));
    for (std::size_t i = 0; i < size; ++i) blocks_.back()[i] = static_cast<char>(random_.next());
    views_.emplace_back(blocks_.back().get(), size);
  }
  std::size_t below(std::uint64_t most) { return random_.next() % most; }
  std::span<const std::string_view> views() const { return views_; }

 private:
  SplitMix64 random_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::vector<std::string_view> views_;
};

void expect_as_library(const Keys& keys, std::string_view level) {
  std::vector<Digest> digests(keys.views().size() + 1);
  const Digest behind = digests.back();
  highway(kSecret, keys.views(), std::span(digests).first(keys.views().size()));
  for (std::size_t i = 0; i < keys.views().size(); ++i)
    ASSERT_EQ(digests[i], highway_portable(kSecret, keys.views()[i]))
        << level << ": key " << i << " of " << keys.views().size() << ", " << keys.views()[i].size()
        << " bytes";
  EXPECT_EQ(digests.back(), behind) << level;
}

template <class Check>
void on_every_level(const Check& check) {
  const std::string before(simd_level());
  for (const std::string_view level : simd_levels()) {
    force_simd_level(level);
    check(level);
  }
  force_simd_level(before);
}

TEST(Highway, EqualsLibraryForEveryLength) {
  on_every_level([](std::string_view level) {
    for (std::size_t size = 0; size <= 300; ++size)
      for (std::size_t count = 1; count <= 9; ++count) {
        Keys keys(size);
        for (std::size_t i = 0; i < count; ++i) keys.add(size);
        expect_as_library(keys, level);
      }
  });
}

// Lengths that differ within a group: with and without a rest, and with different numbers of packets.
TEST(Highway, EqualsLibraryForMixedBatches) {
  on_every_level([](std::string_view level) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      Keys keys(1000 + seed);
      const std::size_t count = keys.below(70);
      const bool short_ones = keys.below(2) == 0;
      for (std::size_t i = 0; i < count; ++i)
        keys.add(keys.below(4) == 0 ? 32 * keys.below(4) : keys.below(short_ones ? 32 : 301));
      expect_as_library(keys, level);
    }
  });
}

// Of the authors' own test vectors, by bytes 0, 1, 2 ...: that the library is what it claims to be.
TEST(Highway, LibraryIsHighwayHash) {
  std::string text;
  EXPECT_EQ(highway_portable(kSecret, text), (Digest{0x0FED268F9D8FFEC7, 0x33565E767F093E6F}));
  for (int i = 0; i < 64; ++i) text += static_cast<char>(i);
  const Digest one = highway_portable(kSecret, std::string_view(text).substr(0, 1));
  EXPECT_EQ(one, (Digest{0xD6B0A8893681E7A8, 0xDC291DF9EB9CDCB4}));
}

}  // namespace
}  // namespace sluice::hashing
