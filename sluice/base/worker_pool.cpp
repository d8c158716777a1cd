#include "sluice/base/worker_pool.hpp"

#include <cassert>
#include <chrono>

namespace sluice {
namespace {

// How long a worker looks before it sleeps. Between two batches their caller reads and hashes for
// tens of microseconds. To wake a sleeper takes as long on a virtual machine, and far longer where
// no processor is idle: it is then put in line behind the very thread that woke it.
constexpr std::chrono::microseconds kPatience{250};
// A pause takes 40 to 140 cycles: some of them between two looks at the clock.
constexpr int kLooksATime = 64;

// More tasks than a phase may have.
constexpr std::uint64_t kStop = 0xFFFF'FFFF;

constexpr unsigned tasks_of(std::uint64_t state) {
  return static_cast<unsigned>(state >> 16 & 0xFFFF);
}
constexpr unsigned next_of(std::uint64_t state) {
  return static_cast<unsigned>(state & 0xFFFF);
}

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns the value when it is no longer `old`.
std::uint64_t await_change(const std::atomic<std::uint64_t>& value, std::uint64_t old) noexcept {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int look = 0; look < kLooksATime; ++look) {
      const std::uint64_t now = value.load(std::memory_order_acquire);
      if (now != old) return now;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < until);
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

WorkerPool::WorkerPool(unsigned threads) {
  workers_.reserve(threads - 1);
  try {
    for (unsigned worker = 1; worker < threads; ++worker)
      workers_.emplace_back([this] { serve(); });
  } catch (...) {
    stop();
    throw;
  }
}

WorkerPool::~WorkerPool() {
  stop();
}

void WorkerPool::stop() noexcept {
  state_.store(kStop, std::memory_order_release);
  state_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::serve() noexcept {
  // Also take() may find that the state has become kStop.
  for (std::uint64_t state = state_.load(std::memory_order_acquire); state != kStop;)
    if (!take(state) && state != kStop) state = await_change(state_, state);
}

// Nobody can take a task of a phase that is over: the state has changed then, if only by the number
// of the phase. And while a task is taken its phase is not over, so what belongs to it stays.
bool WorkerPool::take(std::uint64_t& state) noexcept {
  while (next_of(state) < tasks_of(state)) {
    if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
      continue;
    call_(context_, phase_, next_of(state));
    done_.fetch_add(1, std::memory_order_acq_rel);
    done_.notify_all();
    state = state_.load(std::memory_order_acquire);
    return true;
  }
  return false;
}

void WorkerPool::run_phase(unsigned tasks) noexcept {
  assert(tasks <= kMostTasks);
  std::uint64_t state = std::uint64_t{++number_} << 32 | std::uint64_t{tasks} << 16;
  tasks_done_ += tasks;
  state_.store(state, std::memory_order_release);
  state_.notify_all();
  while (take(state)) {
  }
  for (std::uint64_t done = done_.load(std::memory_order_acquire); done != tasks_done_;)
    done = await_change(done_, done);
}

}  // namespace sluice
