#include "sluice/base/worker_pool.hpp"

namespace sluice {
namespace {

// How often a thread looks before it sleeps: for a quarter of a millisecond where a pause takes 140
// cycles, a third of that where it takes 45. Between two batches their caller reads and hashes for
// tens of microseconds, and on a virtual machine to wake a sleeper takes 50.
constexpr int kLooks = 4096;

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void await(const std::atomic<std::uint64_t>& count, std::uint64_t least) noexcept {
  for (int look = 0; look < kLooks; ++look) {
    if (count.load(std::memory_order_acquire) >= least) return;
    pause_briefly();
  }
  for (;;) {
    const std::uint64_t now = count.load(std::memory_order_acquire);
    if (now >= least) return;
    count.wait(now, std::memory_order_acquire);
  }
}

}  // namespace

WorkerPool::WorkerPool(unsigned threads) : threads_(threads) {
  workers_.reserve(threads - 1);
  try {
    for (unsigned index = 1; index < threads; ++index)
      workers_.emplace_back([this, index] { serve(index); });
  } catch (...) {
    stop();
    throw;
  }
}

WorkerPool::~WorkerPool() {
  stop();
}

void WorkerPool::stop() noexcept {
  stopping_ = true;
  runs_.fetch_add(1, std::memory_order_release);
  runs_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::serve(unsigned index) noexcept {
  for (std::uint64_t run = 1;; ++run) {
    await(runs_, run);
    if (stopping_) return;
    call_(context_, index);
    arrive();
  }
}

void WorkerPool::run_erased(Call call, void* context) noexcept {
  call_ = call;
  context_ = context;
  runs_.fetch_add(1, std::memory_order_release);
  runs_.notify_all();
  call(context, 0);
  meet();
}

// A meeting is over with the arrival whose number is the next multiple of the threads: nobody comes
// to one before the one before is over.
std::uint64_t WorkerPool::arrive() noexcept {
  const std::uint64_t before = arrivals_.fetch_add(1, std::memory_order_acq_rel);
  arrivals_.notify_all();
  return (before / threads_ + 1) * threads_;
}

void WorkerPool::meet() noexcept {
  await(arrivals_, arrive());
}

}  // namespace sluice
