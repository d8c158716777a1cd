// A few threads that do short pieces of work together, again and again.
//
// A run has phases, each of some tasks. Whoever is free takes the next task, the caller too, so it
// never waits for a thread that is asleep or has no processor: only for tasks that others are at.
// Tasks are handed over by a counter that a worker looks at for a quarter of a millisecond; then it
// sleeps until it is woken, so an idle pool costs nothing. The threads start in the constructor and
// end in the destructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
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

  // Calls work(phase, task) for each task below the phase's number of them, at most kMostTasks, on
  // any threads. A phase begins when the one before is done, and sees what that has written; so
  // does the caller with the last. One run at a time. `work` must not throw.
  template <class Work>
  void run(std::initializer_list<unsigned> tasks, Work& work) noexcept {
    context_ = &work;
    call_ = [](void* context, unsigned phase, unsigned task) {
      (*static_cast<Work*>(context))(phase, task);
    };
    phase_ = 0;
    for (const unsigned count : tasks) {
      run_phase(count);
      ++phase_;
    }
  }

 private:
  using Call = void (*)(void* context, unsigned phase, unsigned task);

  void run_phase(unsigned tasks) noexcept;
  // Takes the next task of the phase that `state` is of, if there is one, and does it.
  bool take(std::uint64_t& state) noexcept;
  void serve() noexcept;
  void stop() noexcept;

  // Written by the caller between phases, read by whoever has taken a task of one.
  Call call_ = nullptr;
  void* context_ = nullptr;
  unsigned phase_ = 0;
  std::uint32_t number_ = 0;      // of the phase, counted over all runs
  std::uint64_t tasks_done_ = 0;  // by all phases before
  // The number of the phase, its tasks, and the next one of them: 32, 16 and 16 bits. Each word on
  // a line of its own, so that those who wait for one are not disturbed by the other.
  alignas(64) std::atomic<std::uint64_t> state_{0};
  alignas(64) std::atomic<std::uint64_t> done_{0};  // tasks so far
  std::vector<std::thread> workers_;
};

}  // namespace sluice
