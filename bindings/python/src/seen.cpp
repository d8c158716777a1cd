#include "seen.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "sluice/base/verdict.hpp"

namespace nb = nanobind;

namespace sluice::python {

namespace {

// Slices between looks at signals where that needs the GIL: about a million keys, a few tenths of a
// second.
constexpr unsigned kSlicesTogether = 64;

// Ctrl-C. With the GIL, without the lock.
void heed_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

// A slice of rows with room for what is asked and answered about them.
class Batch {
 public:
  Batch(Column& column, const Times& times, std::span<std::uint8_t> first)
      : column_(column), times_(times), first_(first) {}

  bool done(const Observed& observed) const noexcept { return observed.judged == column_.size(); }
  bool has_times() const noexcept { return times_.has_value(); }

  void gather(std::size_t begin) {
    slice_.clear();
    begin_ = begin;
    rows_ = column_.gather(begin, std::min(Slice::kMost, column_.size() - begin), slice_);
    keyed_.clear();
    if (slice_.missing > 0) drop_missing();
    if (!times_) return;
    whens_.resize(count());
    for (std::size_t i = 0; i < count(); ++i)
      whens_[i] = Seen::Time(std::chrono::nanoseconds((*times_)[row(i)]));
  }

  // The keys of the slice: of all its rows, or of those that have one.
  std::size_t count() const noexcept { return slice_.missing > 0 ? keyed_.size() : rows_; }
  std::span<const std::string_view> keys() const noexcept {
    return std::span(slice_.keys).first(count());
  }
  std::span<const Seen::Time> times() const noexcept { return whens_; }
  std::span<Verdict> verdicts() noexcept { return std::span(verdicts_).first(count()); }

  // The first `judged` keys have their verdicts: writes the answers of the rows up to there, and
  // returns how many these are.
  std::size_t answer(std::size_t judged) noexcept {
    const std::size_t end = judged == count() ? begin_ + rows_ : row(judged);
    if (slice_.missing > 0)
      std::fill(first_.begin() + begin_, first_.begin() + end, std::uint8_t{1});
    for (std::size_t i = 0; i < judged; ++i)
      first_[row(i)] = verdicts_[i] == Verdict::distinct ? 1 : 0;
    return end;
  }

 private:
  std::size_t row(std::size_t key) const noexcept {
    return begin_ + (slice_.missing > 0 ? keyed_[key] : key);
  }
  void drop_missing() {
    for (std::size_t i = 0; i < rows_; ++i) {
      if (slice_.keys[i].data() == nullptr) continue;
      slice_.keys[keyed_.size()] = slice_.keys[i];
      keyed_.push_back(i);
    }
  }

  Column& column_;
  const Times& times_;
  std::span<std::uint8_t> first_;
  std::size_t begin_ = 0, rows_ = 0;
  Slice slice_;
  std::vector<std::size_t> keyed_;  // if rows are missing: the row of each key
  std::vector<Seen::Time> whens_;
  std::vector<Verdict> verdicts_ = std::vector<Verdict>(Slice::kMost);
};

// If memory ends in a slice, observe() tells how far it came, and asking for the next key alone why.
void SharedSeen::judge(Batch& batch, Observed& observed) {
  const std::lock_guard lock(mutex_);
  const auto keys = batch.keys();
  std::size_t judged = 0;
  try {
    while (true) {
      const auto verdicts = batch.verdicts().subspan(judged);
      judged += batch.has_times()
                    ? seen_.observe(keys.subspan(judged), batch.times().subspan(judged), verdicts)
                    : seen_.observe(keys.subspan(judged), verdicts);
      if (judged == keys.size()) break;
      const bool first = batch.has_times() ? seen_.first(keys[judged], batch.times()[judged])
                                           : seen_.first(keys[judged]);
      batch.verdicts()[judged++] = first ? Verdict::distinct : Verdict::duplicate;
    }
  } catch (...) {
    observed.error = std::current_exception();
  }
  observed.judged = batch.answer(judged);
}

Observed SharedSeen::observe(Column& column, const Times& times, std::span<std::uint8_t> first) {
  check_length("times", times ? times->size() : column.size(), column.size());
  check_length("first", first.size(), column.size());
  Observed observed;
  try {
    Batch batch(column, times, first);
    if (column.needs_gil()) {
      while (!batch.done(observed) && !observed.error) {
        batch.gather(observed.judged);
        {
          const nb::gil_scoped_release free;
          judge(batch, observed);
        }
        if (!observed.error) heed_signals();
      }
    } else {
      while (!batch.done(observed) && !observed.error) {
        {
          const nb::gil_scoped_release free;
          for (unsigned i = 0; i < kSlicesTogether && !batch.done(observed) && !observed.error;
               ++i) {
            batch.gather(observed.judged);
            judge(batch, observed);
          }
        }
        // Also after the last slice: the caller would not learn the answers of a call that returned
        // when the signal was handled.
        if (!observed.error) heed_signals();
      }
    }
  } catch (...) {
    observed.error = std::current_exception();
  }
  return observed;
}

void SharedSeen::merge(SharedSeen& other) {
  const nb::gil_scoped_release free;
  if (this == &other) {
    const std::lock_guard lock(mutex_);
    if (!seen_.filter().can_merge()) seen_.merge(seen_);  // says why not
    return;
  }
  const std::scoped_lock lock(mutex_, other.mutex_);
  seen_.merge(other.seen_);
}

}  // namespace sluice::python
