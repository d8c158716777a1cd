// A few threads that repeatedly share short pieces of work.
//
// A run is a number of tasks. Any free thread takes the next one, the caller too, so the caller
// never waits for a thread that sleeps or has no processor, only for tasks in progress. Tasks are
// handed out by a counter. A worker polls it for a millisecond while runs come that fast, otherwise
// for a twentieth of that; then it sleeps until it is woken, so an idle pool costs nothing. The
// threads start in the constructor and end in the destructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace sluice {

class WorkerPool {
 public:
  static constexpr unsigned kMostTasks = 0xFFFF;

  // `threads` in all, including the caller of run(). Throws std::system_error when they cannot be
  // started.
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
  // Takes the next task of the run in `state`, if there is one, and does it.
  bool take(std::uint64_t& state) noexcept;
  void serve() noexcept;
  void stop() noexcept;

  // Written by the caller between runs, read by threads that have taken a task.
  Call call_ = nullptr;
  void* context_ = nullptr;
  std::uint32_t number_ = 0;      // of the run
  std::uint64_t tasks_done_ = 0;  // by all runs before
  // The number of the run, its tasks, and the next one of them: 32, 16 and 16 bits. Each word has
  // its own cache line, so that threads that wait for one are not disturbed by the other.
  alignas(64) std::atomic<std::uint64_t> state_{0};
  alignas(64) std::atomic<std::uint64_t> done_{0};  // tasks so far
  std::vector<std::thread> workers_;
};

}  // namespace sluice
