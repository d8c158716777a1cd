// The threads of a sliced filter, and how a batch goes through them.
//
//   each portion of the batch, as many as threads, is sorted by slices
//   each slice is judged, on what all portions hold for it
//   the verdicts of each portion are brought back in order
//
// A slice is judged by one thread at a time, its records in the order of the batch, so the verdicts
// are those of judging one by one. Nothing is allocated once the threads run.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sluice/base/memory.hpp"
#include "sluice/base/worker_pool.hpp"
#include "sluice/filters/slice_sort.hpp"

namespace sluice {

class SliceCrew {
 public:
  // Records that go through the threads at once: enough that three changes of phase, some
  // hundred nanoseconds each, do not count, and that chance deals the slices nearly equal parts.
  static constexpr std::size_t kTogether = 8192;
  // Fewer than this are judged on the caller's thread before the others are awake.
  static constexpr std::size_t kFewest = 512;
  // Records that the caller sorts at once when alone: they lie on the stack.
  static constexpr std::size_t kAlone = 256;

  explicit SliceCrew(unsigned slices) noexcept : slices_(slices) {}

  // What the threads will have allocated, whether they run or not.
  static std::uint64_t bytes_for(unsigned slices) noexcept;

  // Judges the first of the records, as many as fit, and returns how many: judge(slice, portions)
  // once for each slice, on some thread, then after(portions, records) on this one, where all
  // portions but the last were dealt as many records. With verdicts, those in the portions are
  // gathered in them. On this thread alone when there are few records, or when the threads are busy
  // for another caller or cannot be had. `judge` must not throw.
  template <class Judge, class After>
  std::size_t step(std::span<const Digest> digests, std::span<Verdict> verdicts, const Judge& judge,
                   const After& after) {
    const bool threads = digests.size() >= kFewest && enter();
    const std::size_t count = std::min(digests.size(), threads ? kTogether : kAlone);
    digests = digests.first(count);
    if (!verdicts.empty()) verdicts = verdicts.first(count);
    if (threads) {
      const std::lock_guard leave(busy_, std::adopt_lock);
      together(digests, verdicts, judge);
      after(std::span<const SliceSort>(portions_), portion_of(count));
    } else {
      alone(digests, verdicts, judge, after);
    }
    return count;
  }

 private:
  // Takes the threads, and starts them if they have not been. False: they cannot be had.
  bool enter() noexcept;
  void start() noexcept;
  std::size_t portion_of(std::size_t records) const noexcept {
    return (records + portions_.size() - 1) / portions_.size();
  }

  template <class Judge>
  void together(std::span<const Digest> digests, std::span<Verdict> verdicts, const Judge& judge) {
    const std::size_t portion = portion_of(digests.size());
    const auto portions = static_cast<unsigned>(portions_.size());
    auto work = [&](unsigned phase, unsigned index) {
      if (phase == 1) return judge(index, std::span<const SliceSort>(portions_));
      const std::size_t from = std::min(index * portion, digests.size());
      const std::size_t count = std::min(portion, digests.size() - from);
      if (phase == 0)
        portions_[index].sort(digests.subspan(from, count), slices_);
      else
        portions_[index].gather(verdicts.subspan(from, count));
    };
    pool_->run({portions, slices_, verdicts.empty() ? 0 : portions}, work);
  }

  template <class Judge, class After>
  void alone(std::span<const Digest> digests, std::span<Verdict> verdicts, const Judge& judge,
             const After& after) {
    constexpr std::size_t kLength = SliceSpace::length_of(kAlone, 2);
    Digest sorted[kLength];
    std::uint16_t places[kLength];
    Verdict judged[kLength];
    std::uint8_t slices[kAlone];
    SliceSort portion(SliceSpace{sorted, places, judged, slices, kAlone});
    portion.sort(digests, slices_);
    for (unsigned slice = 0; slice < slices_; ++slice)
      judge(slice, std::span<const SliceSort>(&portion, 1));
    if (!verdicts.empty()) portion.gather(verdicts);
    after(std::span<const SliceSort>(&portion, 1), digests.size());
  }

  unsigned slices_;
  std::mutex busy_;
  bool tried_ = false;
  Memory memory_;
  std::vector<SliceSort> portions_;  // one a thread
  std::optional<WorkerPool> pool_;
};

}  // namespace sluice
