#include "sluice/base/worker_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

namespace sluice {
namespace {

TEST(WorkerPool, EachTaskIsDoneOnce) {
  for (const unsigned threads : {1u, 2u, 5u}) {
    WorkerPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<int> done(70);
    auto work = [&](unsigned task) { ++done[task]; };
    for (int run = 0; run < 300; ++run)
      for (const unsigned tasks : {3u, 70u, 0u}) pool.run(tasks, work);
    for (std::size_t task = 0; task < done.size(); ++task)
      EXPECT_EQ(done[task], task < 3 ? 600 : 300);
  }
}

// Two tasks that wait for each other: they can only be done at the same time.
TEST(WorkerPool, TasksAreDoneAtTheSameTime) {
  WorkerPool pool(2);
  std::atomic<int> there{0};
  auto work = [&](unsigned) {
    for (++there; there.load() < 2;) std::this_thread::yield();
  };
  pool.run(2, work);
  EXPECT_EQ(there, 2);
}

// What is written in one run is read in the next, and by the caller after it.
TEST(WorkerPool, ARunSeesTheOneBefore) {
  constexpr unsigned kTasks = 3;
  WorkerPool pool(kTasks);
  std::vector<unsigned> first(kTasks), second(kTasks);
  for (unsigned run = 1; run <= 2000; ++run) {
    auto write = [&](unsigned task) { first[task] = run + task; };
    auto add = [&](unsigned task) {
      second[task] = first[(task + 1) % kTasks] + first[(task + 2) % kTasks];
    };
    pool.run(kTasks, write);
    pool.run(kTasks, add);
    ASSERT_EQ(second, (std::vector<unsigned>{2 * run + 3, 2 * run + 2, 2 * run + 1}));
  }
}

// Long enough apart for the worker to fall asleep on any machine: it must wake up, or the two tasks
// would wait for each other forever.
TEST(WorkerPool, WakesSleepers) {
  WorkerPool pool(2);
  for (int run = 0; run < 20; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::atomic<int> there{0};
    auto work = [&](unsigned) {
      for (++there; there.load() < 2;) std::this_thread::yield();
    };
    pool.run(2, work);
  }
}

// They are for the threads of the program, which may wait for one.
TEST(WorkerPool, WorkersGetNoSignals) {
  WorkerPool pool(2);
  std::atomic<int> there{0};
  std::atomic<int> blocked{0};
  auto work = [&](unsigned) {
    for (++there; there.load() < 2;) std::this_thread::yield();
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    blocked += sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGINT) == 1;
  };
  pool.run(2, work);
  EXPECT_EQ(blocked, 1);  // not the caller's thread
}

TEST(WorkerPool, EndsWithoutARun) {
  for (int i = 0; i < 20; ++i) WorkerPool pool(3);
}

}  // namespace
}  // namespace sluice
