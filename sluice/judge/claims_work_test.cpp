// What one claim writes when the table of pending keys grows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/judge/claims.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using testing_support::random_digests;

class NoKeys final : public KeyMemory {
 public:
  bool remembers(const Digest&, const When&) override { return false; }
  bool remember(const Digest&, const When&) override { return true; }
};

// A host that can tell which lines of its blocks have changed.
class ComparedMemory final : public MemoryResource {
 public:
  std::size_t usable(const void*, std::size_t bytes, std::size_t) const noexcept override {
    return bytes;
  }
  std::size_t largest_block() const noexcept override { return kLeastLargest; }

  void look() {
    for (auto& [at, block] : blocks_) block.assign(at, at + block.size());
  }
  // Since then; of blocks that are new, all.
  std::size_t lines_changed() const {
    std::size_t lines = 0;
    for (const auto& [at, block] : blocks_)
      for (std::size_t i = 0; i < block.size(); i += kCacheLineBytes)
        lines +=
            std::memcmp(at + i, block.data() + i, std::min(kCacheLineBytes, block.size() - i)) != 0;
    return lines;
  }

 private:
  void* get(std::size_t bytes, std::size_t alignment) noexcept override {
    auto* const block =
        static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment), std::nothrow));
    std::memset(block, 0x5A, bytes);
    blocks_[block].assign(bytes, std::byte{0x5A});
    return block;
  }
  void put(void* block, std::size_t, std::size_t alignment) noexcept override {
    blocks_.erase(static_cast<std::byte*>(block));
    ::operator delete(block, std::align_val_t(alignment));
  }

  std::map<std::byte*, std::vector<std::byte>> blocks_;
};

// Two pages of slots at most, a page of claims, and the keys that move: not every pending key.
TEST(ClaimsWork, OfOneClaimIsBounded) {
  constexpr std::uint64_t kMost = 20'000;
  constexpr std::size_t kMostLines = 800;
  ComparedMemory host;
  NoKeys memory;
  Claims claims(kMost, host);
  const std::vector<Digest> keys = random_digests(1, kMost);
  std::size_t worst = 0;
  for (std::uint64_t i = 0; i < kMost; ++i) {
    // Around each doubling, and now and then.
    const bool watched = i % 1024 >= 1020 || i % 1024 <= 2 || i % 97 == 0;
    if (watched) host.look();
    ASSERT_EQ(claims.claim(memory, {.key = keys[i], .token = {1, 1}, .lease = 1}),
              ClaimAnswer::claimed);
    if (watched) worst = std::max(worst, host.lines_changed());
    ASSERT_EQ(claims.bytes(), host.taken());
  }
  EXPECT_LE(worst, kMostLines);
  std::size_t missing = 0;
  for (const Digest& key : keys) missing += claims.state_of(key, 0) != Claims::State::pending;
  EXPECT_EQ(missing, 0u);
}

// While keys move, some leave, and the table is encoded and decoded: the same as one that is made anew.
TEST(ClaimsWork, KeysMoveWhileOthersComeAndGo) {
  NoKeys memory;
  Claims claims(100'000);
  SplitMix64 random(2);
  std::vector<Digest> held;
  const auto bytes_of = [](const Claims& of) {
    BytesEncoder to;
    of.encode(to);
    return to.take();
  };
  for (std::uint64_t step = 0; step < 60'000; ++step) {
    const bool grows = step / 10'000 % 3 != 2;
    if (held.empty() || random.next() % 10 < (grows ? 8u : 3u)) {
      held.push_back({random.next(), random.next()});
      ASSERT_EQ(claims.claim(memory, {.key = held.back(), .token = {1, 1}, .lease = 1}),
                ClaimAnswer::claimed);
    } else {
      std::swap(held[random.next() % held.size()], held.back());
      ASSERT_TRUE(claims.release(held.back(), {1, 1}, 0));
      held.pop_back();
    }
    ASSERT_EQ(claims.size(), held.size());
    ASSERT_EQ(claims.state_of(held.empty() ? Digest{} : held[random.next() % held.size()], 0),
              held.empty() ? Claims::State::unknown : Claims::State::pending);
    if (step % 5000 == 0) {
      for (const Digest& key : held)
        ASSERT_EQ(claims.state_of(key, 0), Claims::State::pending) << step;
      const std::vector<std::byte> bytes = bytes_of(claims);
      BytesDecoder from(bytes);
      const Claims copy = Claims::decode(from, 100'000);
      EXPECT_EQ(bytes_of(copy), bytes);
    }
  }
}

}  // namespace
}  // namespace sluice
