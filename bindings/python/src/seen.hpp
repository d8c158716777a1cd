// A Seen that several Python threads may use at once.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "column.hpp"
#include "sluice/seen.hpp"

namespace sluice::python {

// What a call of observe() did: all rows, or as many as were judged before `error`.
struct Observed {
  std::size_t judged = 0;
  std::exception_ptr error = {};
};

// Times of keys, in nanoseconds since 1970; none: now.
using Times = std::optional<std::span<const std::int64_t>>;

// Who has the GIL gives it up before he waits for the lock, so that the two cannot wait for each
// other.
class SharedSeen {
 public:
  explicit SharedSeen(Seen seen) : labels_(seen.labels()), seen_(std::move(seen)) {}

  // Calls work(seen) with the lock and the GIL: for what is soon done.
  template <class Work>
  auto with(const Work& work) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      const nanobind::gil_scoped_release free;
      lock.lock();
    }
    return work(seen_);
  }
  // The same without the GIL.
  template <class Work>
  auto alone(const Work& work) {
    const nanobind::gil_scoped_release free;
    const std::lock_guard lock(mutex_);
    return work(seen_);
  }

  // Judges all rows in order. first[i] is 1 if row i is new, or has no key.
  Observed observe(Column& column, const Times& times, std::span<std::uint8_t> first);
  void merge(SharedSeen& other);

  // How records are cut into keys, for the command. The GIL protects it.
  const Labels& labels() const noexcept { return labels_; }
  void set_labels(Labels labels) { labels_ = std::move(labels); }

 private:
  void judge(class Batch& batch, Observed& observed);

  Labels labels_;
  std::mutex mutex_;
  Seen seen_;
};

}  // namespace sluice::python
