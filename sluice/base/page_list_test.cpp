#include "sluice/base/page_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/base/growable_memory.hpp"

namespace sluice {
namespace {

// A host with any number of pages, which are all the same one, and of the largest blocks that it must
// give.
class OnePage final : public MemoryResource {
 public:
  ~OnePage() override { EXPECT_EQ(taken(), 0u); }
  std::size_t usable(const void*, std::size_t bytes, std::size_t) const noexcept override {
    return bytes;
  }
  std::size_t largest_block() const noexcept override { return kLeastLargest; }
  std::uint64_t largest() const noexcept { return largest_; }
  std::uint64_t refuse_from = std::numeric_limits<std::uint64_t>::max();  // of other blocks

 private:
  void* get(std::size_t bytes, std::size_t alignment) noexcept override {
    largest_ = std::max<std::uint64_t>(largest_, bytes);
    if (bytes == sizeof page_) return page_;
    if (bytes > kLeastLargest || ++others_ > refuse_from) return nullptr;
    return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
  }
  void put(void* block, std::size_t, std::size_t alignment) noexcept override {
    if (block != page_) ::operator delete(block, std::align_val_t(alignment));
  }

  alignas(kCacheLineBytes) std::byte page_[GrowableMemory::kPageBytes];
  std::uint64_t largest_ = 0, others_ = 0;
};

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// A host gives no block above 1 MiB, also not for the list of the pages.
TEST(PageList, HoldsATableOfAnySize) {
  const auto host = std::make_unique<OnePage>();
  {
    GrowableMemory memory(*host);
    std::uint64_t before = 0;
    for (const std::uint64_t bytes :
         {std::uint64_t{100'000}, kGiB / 4, kGiB, 9 * kGiB, 20 * kGiB}) {
      memory.grow(bytes);
      EXPECT_GE(memory.size(), bytes);
      EXPECT_GT(memory.size(), before);
      EXPECT_EQ(memory.taken(), host->taken());
      before = memory.size();
    }
    EXPECT_EQ(host->largest(), GrownPages::kPerList * sizeof(GrownPage));
    EXPECT_NE(memory.pages()[before / GrowableMemory::kPageBytes - 1].bytes, nullptr);
    memory.reset(kGiB);
    EXPECT_LT(memory.size(), kGiB + GrowableMemory::kPageBytes);
    EXPECT_EQ(memory.taken(), host->taken());
    GrowableMemory other(std::move(memory));
    EXPECT_EQ(other.taken(), host->taken());
    other.grow(9 * kGiB);
    EXPECT_EQ(other.taken(), host->taken());
  }
}

TEST(PageList, TakesWhatItIsForecast) {
  for (const std::uint64_t pages : {2u, 100u, 4095u, 4096u, 4097u, 20'000u}) {
    const auto host = std::make_unique<OnePage>();
    GrowableMemory memory(*host);
    memory.grow(pages * GrowableMemory::kPageBytes);
    EXPECT_EQ(memory.taken(),
              GrowableMemory::given_in_pages_for(pages * GrowableMemory::kPageBytes))
        << pages;
  }
}

// Whatever block is refused: the pages are as before.
TEST(PageList, IsKeptIfMoreIsRefused) {
  for (std::uint64_t refused = 0;; ++refused) {
    const auto host = std::make_unique<OnePage>();
    GrowableMemory memory(*host);
    memory.grow(10 * GrowableMemory::kPageBytes);
    host->refuse_from = 2 + refused;  // the first two are the list of the lists, and one list
    try {
      memory.grow(kGiB);
      break;
    } catch (const NoMemory&) {
    }
    EXPECT_EQ(memory.size(), 10 * GrowableMemory::kPageBytes);
    EXPECT_EQ(memory.taken(), host->taken());
    EXPECT_NE(memory.pages()[9].bytes, nullptr);
    ASSERT_LT(refused, 10u);
  }
}

}  // namespace
}  // namespace sluice
