#include "sluice/base/worker_pool.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <vector>

namespace sluice {
namespace {

TEST(WorkerPool, EachIndexRunsOnAThreadOfItsOwn) {
  for (const unsigned threads : {1u, 2u, 5u}) {
    WorkerPool pool(threads);
    std::vector<std::thread::id> ids(threads);
    std::vector<int> calls(threads);
    auto work = [&](unsigned index) {
      ids[index] = std::this_thread::get_id();
      ++calls[index];
    };
    for (int run = 0; run < 100; ++run) pool.run(work);
    EXPECT_EQ(calls, std::vector<int>(threads, 100));
    EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), threads);
    EXPECT_EQ(ids[0], std::this_thread::get_id());
  }
}

// What one thread writes before a meeting, the others read after it, and the caller after the run.
TEST(WorkerPool, AfterAMeetingAllIsSeen) {
  constexpr unsigned kThreads = 3;
  WorkerPool pool(kThreads);
  std::vector<unsigned> first(kThreads), second(kThreads);
  for (unsigned run = 1; run <= 300; ++run) {
    auto work = [&](unsigned index) {
      first[index] = run + index;
      pool.meet();
      second[index] = first[(index + 1) % kThreads] + first[(index + 2) % kThreads];
      pool.meet();
      first[index] = 0;
    };
    pool.run(work);
    EXPECT_EQ(second, (std::vector<unsigned>{2 * run + 3, 2 * run + 2, 2 * run + 1}));
    EXPECT_EQ(first, std::vector<unsigned>(kThreads));
  }
}

// Long enough apart for the workers to fall asleep, whatever the machine does: they must wake up.
TEST(WorkerPool, WakesSleepers) {
  WorkerPool pool(2);
  int calls = 0;
  auto work = [&](unsigned index) { calls += index == 1; };
  for (int run = 0; run < 20; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    pool.run(work);
  }
  EXPECT_EQ(calls, 20);
}

TEST(WorkerPool, EndsWithoutARun) {
  for (int i = 0; i < 20; ++i) WorkerPool pool(3);
}

}  // namespace
}  // namespace sluice
