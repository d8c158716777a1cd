// A few threads that do one short piece of work together, again and again.
//
// Pieces of some tens of microseconds are handed over by a counter that waiting threads look at for
// about as long (kLooks); then they sleep until they are woken, so an idle pool costs nothing. The
// threads start in the constructor and end in the destructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace sluice {

class WorkerPool {
 public:
  // `threads` in all, the caller of run() among them. Throws std::system_error when they cannot be
  // had.
  explicit WorkerPool(unsigned threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  unsigned threads() const noexcept { return threads_; }

  // Calls work(index) for each index below threads(), each on a thread of its own, 0 on the
  // caller's, and returns when all have returned. One run at a time. `work` must not throw.
  template <class Work>
  void run(Work& work) noexcept {
    run_erased([](void* context, unsigned index) { (*static_cast<Work*>(context))(index); }, &work);
  }

  // For use within a run, by all threads equally often: returns when all have come to it. What each
  // has written before is then seen by the others.
  void meet() noexcept;

 private:
  using Call = void (*)(void* context, unsigned index);

  void run_erased(Call call, void* context) noexcept;
  void serve(unsigned index) noexcept;
  // The number of the last arrival that must be in before the caller may go on.
  std::uint64_t arrive() noexcept;
  void stop() noexcept;

  unsigned threads_;
  Call call_ = nullptr;
  void* context_ = nullptr;
  bool stopping_ = false;
  // A line each: those who wait for one are not disturbed by the other.
  alignas(64) std::atomic<std::uint64_t> runs_{0};      // begun so far
  alignas(64) std::atomic<std::uint64_t> arrivals_{0};  // at meetings and ends of runs so far
  std::vector<std::thread> workers_;
};

}  // namespace sluice
