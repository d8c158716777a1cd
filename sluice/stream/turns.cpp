#include "sluice/stream/turns.hpp"

#include <utility>

namespace sluice {

std::optional<Turns::Ticket> Turns::begin_reading(bool helper) {
  std::unique_lock lock(mutex_);
  changed_.wait(
      lock, [&] { return finished_ || failure_ || (!reading_ && (!helper || helpers_called_)); });
  if (finished_ || failure_) return std::nullopt;
  reading_ = true;
  return next_++;
}

void Turns::end_reading() {
  {
    const std::lock_guard lock(mutex_);
    reading_ = false;
  }
  changed_.notify_all();
}

void Turns::decline_reading() {
  const std::lock_guard lock(mutex_);
  reading_ = false;
  helpers_called_ = false;
  --next_;
  changed_.notify_all();
}

void Turns::finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

void Turns::call_helpers(bool call) {
  const std::lock_guard lock(mutex_);
  if (helpers_called_ == call) return;
  helpers_called_ = call;
  changed_.notify_all();
}

bool Turns::begin_judging(Ticket ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || judged_ == ticket; });
  return !failure_;
}

void Turns::end_judging() {
  {
    const std::lock_guard lock(mutex_);
    ++judged_;
  }
  changed_.notify_all();
}

bool Turns::begin_writing(Ticket ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || written_ >= ticket; });
  return !failure_;
}

void Turns::end_writing() {
  {
    const std::lock_guard lock(mutex_);
    ++written_;
  }
  changed_.notify_all();
}

void Turns::fail(std::exception_ptr failure) noexcept {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
  changed_.notify_all();
}

void Turns::rethrow() const {
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
  }
  if (failure) std::rethrow_exception(failure);
}

void Turns::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

bool Turns::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

}  // namespace sluice
