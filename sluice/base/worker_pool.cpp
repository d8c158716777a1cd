#include "sluice/base/worker_pool.hpp"

#include <cassert>
#include <chrono>

#include "sluice/base/signals.hpp"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

// How long a worker polls before it sleeps. Between two batches the caller reads and hashes for
// tens or hundreds of microseconds. Waking a thread takes tens of microseconds on a virtual
// machine, and far longer if no processor is idle: it then queues behind the thread that woke it.
// If work comes less often than that, polling is useless.
constexpr std::chrono::microseconds kPatience{1000};
constexpr std::chrono::microseconds kLittlePatience{50};
// A pause takes 40 to 140 cycles: some of them between two looks at the clock.
constexpr int kLooksATime = 64;

// More tasks than a run may have.
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
std::uint64_t await_change(const std::atomic<std::uint64_t>& value, std::uint64_t old,
                           std::chrono::microseconds patience) noexcept {
  const auto until = Clock::now() + patience;
  do {
    for (int look = 0; look < kLooksATime; ++look) {
      const std::uint64_t now = value.load(std::memory_order_acquire);
      if (now != old) return now;
      pause_briefly();
    }
  } while (Clock::now() < until);
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

WorkerPool::WorkerPool(unsigned threads) {
  workers_.reserve(threads - 1);
  const SignalsBlocked blocked;
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
  std::chrono::microseconds patience = kPatience;
  // Also take() may find that the state has become kStop.
  for (std::uint64_t state = state_.load(std::memory_order_acquire); state != kStop;) {
    if (take(state) || state == kStop) continue;
    const auto since = Clock::now();
    state = await_change(state_, state, patience);
    patience = Clock::now() - since < kPatience ? kPatience : kLittlePatience;
  }
}

// No thread can take a task of a run that is over: the state has changed by then, at least by the
// number of the run. And while a task is in progress its run is not over, so the run's data stay
// valid.
bool WorkerPool::take(std::uint64_t& state) noexcept {
  while (next_of(state) < tasks_of(state)) {
    if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
      continue;
    call_(context_, next_of(state));
    done_.fetch_add(1, std::memory_order_acq_rel);
    done_.notify_all();
    state = state_.load(std::memory_order_acquire);
    return true;
  }
  return false;
}

void WorkerPool::run(unsigned tasks) noexcept {
  assert(tasks <= kMostTasks);
  std::uint64_t state = std::uint64_t{++number_} << 32 | std::uint64_t{tasks} << 16;
  tasks_done_ += tasks;
  state_.store(state, std::memory_order_release);
  state_.notify_all();
  while (take(state)) {
  }
  for (std::uint64_t done = done_.load(std::memory_order_acquire); done != tasks_done_;)
    done = await_change(done_, done, kPatience);
}

}  // namespace sluice
