#include "sluice/base/counted.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace sluice {
namespace {

struct Watched {
  std::shared_ptr<int> alive;
};

TEST(Counted, LivesAsLongAsItsLastHolder) {
  const auto alive = std::make_shared<int>(7);
  auto first = Counted<Watched>::make(alive);
  {
    Counted<Watched> second = first;
    const Counted<Watched> third = std::move(second);
    EXPECT_EQ(*third->alive, 7);
    EXPECT_EQ(alive.use_count(), 2);
    first = Counted<Watched>::make(nullptr);
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Counted, IsSharedByThreads) {
  const auto alive = std::make_shared<int>(7);
  {
    const auto shared = Counted<Watched>::make(alive);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([copy = shared] {
        for (int round = 0; round < 10'000; ++round) {
          const Counted<Watched> another = copy;
          ASSERT_NE((*another).alive, nullptr);
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace sluice
