// A few threads that do short pieces of work together, again and again.
//
// A run is some tasks. Whoever is free takes the next one, the caller too, so it never waits for a
// thread that is asleep or has no processor: only for tasks that others are at. Tasks are handed
// over by a counter. A worker looks at it for a millisecond, while runs come as fast, or for a
// twentieth of that; then it sleeps until it is woken, so an idle pool costs nothing. The threads
// start in the constructor and end in the destructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace sluice {

class WorkerPool {
 public:
  static constexpr unsigned kMostTasks = 0xFFFF;

  // `threads` in all, the caller of run() among them. Throws std::system_error when they cannot be
  // had.
  explicit WorkerPool(unsigned threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  unsigned threads() const noexcept { return static_cast<unsigned>(workers_.size()) + 1; }

  // Calls work(task) for each task below their number, at most kMostTasks, on any threads, and
  // returns when all are done. One run at a time. `work` must not throw.
  template <class Work>
  void run(unsigned tasks, Work& work) noexcept {
    context_ = &work;
    call_ = [](void* context, unsigned task) { (*static_cast<Work*>(context))(task); };
    run(tasks);
  }

 private:
  using Call = void (*)(void* context, unsigned task);

  void run(unsigned tasks) noexcept;
  // Takes the next task of the run that `state` is of, if there is one, and does it.
  bool take(std::uint64_t& state) noexcept;
  void serve() noexcept;
  void stop() noexcept;

  // Written by the caller between runs, read by whoever has taken a task of one.
  Call call_ = nullptr;
  void* context_ = nullptr;
  std::uint32_t number_ = 0;      // of the run
  std::uint64_t tasks_done_ = 0;  // by all runs before
  // The number of the run, its tasks, and the next one of them: 32, 16 and 16 bits. Each word on
  // a line of its own, so that those who wait for one are not disturbed by the other.
  alignas(64) std::atomic<std::uint64_t> state_{0};
  alignas(64) std::atomic<std::uint64_t> done_{0};  // tasks so far
  std::vector<std::thread> workers_;
};

}  // namespace sluice
