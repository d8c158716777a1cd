#include "sluice/filters/slice_crew.hpp"

#include <thread>

namespace sluice {

std::size_t SlicePicks::pick(std::span<const Digest> digests, std::uint8_t* marks) noexcept {
  count_ = 0;
  std::size_t done = 0;
  while (done < digests.size() && count_ + kAtATime <= kMost) {
    const std::size_t now = std::min(kAtATime, digests.size() - done);
    count_ += kernels::select_slices(digests.subspan(done, now), range_, this->digests() + count_,
                                     marks + done / 8);
    done += now;
  }
  return done;
}

void SlicePicks::sort() noexcept {
  const Digest* const from = digests();
  Digest* const to = sorted();
  std::uint8_t slice_of_pick[kMost];
  std::uint16_t counts[kMostSlices] = {};
  for (std::size_t i = 0; i < count_; ++i) {
    const unsigned slice = slice_of(from[i], slices_) - begin_;
    slice_of_pick[i] = static_cast<std::uint8_t>(slice);
    ++counts[slice];
  }
  std::uint16_t next = 0;
  for (unsigned slice = 0; slice < end_ - begin_; ++slice) {
    ends_[slice] = next;
    next = static_cast<std::uint16_t>(next + counts[slice]);
  }
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t at = ends_[slice_of_pick[i]]++;
    to[at] = from[i];
    places_[at] = static_cast<std::uint16_t>(i);
  }
}

SliceCrew::SliceCrew(unsigned slices) noexcept
    : SliceCrew(slices, std::clamp(std::thread::hardware_concurrency(), 1u, slices)) {}

bool SliceCrew::enter() noexcept {
  if (groups_ < 2 || !busy_.try_lock()) return false;
  if (!tried_) {
    tried_ = true;
    start();
  }
  if (pool_) return true;
  busy_.unlock();
  return false;
}

void SliceCrew::start() noexcept {
  try {
    memory_ = Memory(groups_ * kPlaneBytes);
    pool_.emplace(groups_);
  } catch (const std::exception&) {
    // Without them the caller does it all: slower, and the same verdicts.
    memory_ = Memory();
  }
}

}  // namespace sluice
