#include "sluice/filters/slice_crew.hpp"

#include <thread>

namespace sluice {
namespace {

// Portions are dealt equally, so each may be a record longer; each array starts on a line.
constexpr std::size_t kRecords = SliceCrew::kTogether + kMostSlices + 2 * SliceSpace::kApart;
constexpr std::size_t kPaddingBytes = kMostSlices * 4 * kCacheLineBytes;

// Hands out arrays from one piece of memory.
class Carver {
 public:
  explicit Carver(std::byte* next) noexcept : next_(next) {}
  template <class T>
  T* take(std::size_t count) noexcept {
    T* const taken = reinterpret_cast<T*>(next_);
    next_ += (count * sizeof(T) + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
    return taken;
  }

 private:
  std::byte* next_;
};

}  // namespace

std::uint64_t SliceCrew::bytes_for(unsigned slices) noexcept {
  constexpr std::size_t kSortedBytes = sizeof(Digest) + sizeof(std::uint16_t) + sizeof(Verdict);
  return SliceSpace::length_of(kRecords, slices) * kSortedBytes + kRecords + kPaddingBytes;
}

bool SliceCrew::enter() noexcept {
  if (!busy_.try_lock()) return false;
  if (!tried_) {
    tried_ = true;
    start();
  }
  if (pool_) return true;
  busy_.unlock();
  return false;
}

// As many threads as there are processors for them: more would only wait for each other.
void SliceCrew::start() noexcept {
  const unsigned threads = std::min(slices_, std::thread::hardware_concurrency());
  if (threads < 2) return;
  try {
    memory_ = Memory(bytes_for(slices_));
    Carver carver(memory_.data());
    const std::size_t records = (kTogether + threads - 1) / threads;
    const std::size_t length = SliceSpace::length_of(records, slices_);
    portions_.reserve(threads);
    for (unsigned thread = 0; thread < threads; ++thread) {
      SliceSpace space{};
      space.digests = carver.take<Digest>(length);
      space.places = carver.take<std::uint16_t>(length);
      space.verdicts = carver.take<Verdict>(length);
      space.slices = carver.take<std::uint8_t>(records);
      space.records = records;
      portions_.emplace_back(space);
    }
    pool_.emplace(threads);
  } catch (const std::exception&) {
    // Without them the caller does it all: slower, and the same verdicts.
    memory_ = Memory();
    portions_.clear();
  }
}

}  // namespace sluice
