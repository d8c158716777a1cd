// When to try again what has failed: after twice as long each time, up to a limit, and at a random
// point of the second half of that, so that clients that failed together do not come back together.
// Time and randomness are arguments.
#pragma once

#include <algorithm>
#include <chrono>

namespace sluice::redis {

using TimePoint = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::milliseconds;

class Backoff {
 public:
  Backoff(Milliseconds first, Milliseconds most) : first_(first), most_(std::max(first, most)) {}

  bool may_try(TimePoint now) const noexcept { return now >= next_; }
  TimePoint next() const noexcept { return next_; }

  // `unit` is random in [0, 1).
  void failed(TimePoint now, double unit) noexcept {
    wait_ = wait_.count() == 0 ? first_ : std::min(wait_ * 2, most_);
    const auto half = std::chrono::duration_cast<TimePoint::duration>(wait_) / 2;
    next_ =
        now + half +
        TimePoint::duration(static_cast<TimePoint::rep>(static_cast<double>(half.count()) * unit));
  }
  void succeeded() noexcept {
    wait_ = Milliseconds{0};
    next_ = {};
  }

 private:
  Milliseconds first_, most_;
  Milliseconds wait_{0};
  TimePoint next_{};
};

}  // namespace sluice::redis
