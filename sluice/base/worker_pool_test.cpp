#include "sluice/base/worker_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace sluice {
namespace {

TEST(WorkerPool, EachTaskIsDoneOnce) {
  for (const unsigned threads : {1u, 2u, 5u}) {
    WorkerPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<int> first(3), second(70);
    auto work = [&](unsigned phase, unsigned task) { ++(phase == 0 ? first : second)[task]; };
    for (int run = 0; run < 300; ++run) pool.run({3, 70, 0}, work);
    EXPECT_EQ(first, std::vector<int>(3, 300));
    EXPECT_EQ(second, std::vector<int>(70, 300));
  }
}

// Two tasks that wait for each other: they can only be done at the same time.
TEST(WorkerPool, TasksAreDoneAtTheSameTime) {
  WorkerPool pool(2);
  std::atomic<int> there{0};
  auto work = [&](unsigned, unsigned) {
    for (++there; there.load() < 2;) std::this_thread::yield();
  };
  pool.run({2}, work);
  EXPECT_EQ(there, 2);
}

// What is written in one phase is read in the next, and by the caller after the last.
TEST(WorkerPool, APhaseSeesTheOneBefore) {
  constexpr unsigned kTasks = 3;
  WorkerPool pool(kTasks);
  std::vector<unsigned> first(kTasks), second(kTasks);
  for (unsigned run = 1; run <= 2000; ++run) {
    auto work = [&](unsigned phase, unsigned task) {
      if (phase == 0) first[task] = run + task;
      if (phase == 1) second[task] = first[(task + 1) % kTasks] + first[(task + 2) % kTasks];
      if (phase == 2) first[task] = 0;
    };
    pool.run({kTasks, kTasks, kTasks}, work);
    ASSERT_EQ(second, (std::vector<unsigned>{2 * run + 3, 2 * run + 2, 2 * run + 1}));
    ASSERT_EQ(first, std::vector<unsigned>(kTasks));
  }
}

// Long enough apart for the worker to fall asleep, whatever the machine does: it must wake up, or
// the two tasks would wait for each other for ever.
TEST(WorkerPool, WakesSleepers) {
  WorkerPool pool(2);
  for (int run = 0; run < 20; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::atomic<int> there{0};
    auto work = [&](unsigned, unsigned) {
      for (++there; there.load() < 2;) std::this_thread::yield();
    };
    pool.run({2}, work);
  }
}

TEST(WorkerPool, EndsWithoutARun) {
  for (int i = 0; i < 20; ++i) WorkerPool pool(3);
}

}  // namespace
}  // namespace sluice
