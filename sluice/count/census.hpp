// What a stream holds: distinct keys and duplicates, the keys that come most often, the share of duplicates
// over time, and which window would hold back how many of them. In memory that is set in advance.
//
// While all keys fit in the memory, everything but the windows is exact; while there are at most
// kWindowKeys of them, those too. Then keys are sampled by their digests, and the numbers are estimates
// with their errors (key_sample.hpp). The keys that come most often are counted whether they are in the
// sample or not (top_keys.hpp).
//
// Cost     per record: a probe of the table of keys; if all fit in the windows' sample, one of that, too.
//          Once keys are sampled, each record costs a probe of the index of TopKeys.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/count/key_sample.hpp"
#include "sluice/count/repeat_windows.hpp"
#include "sluice/count/timeline.hpp"
#include "sluice/count/top_keys.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

// Of the duplicates, those that a window would hold back.
struct WindowShare {
  std::int64_t size = 0;  // nanoseconds or records
  Estimate share = {};
};

class Census {
 public:
  // Beside the table of keys: the windows' sample, the most repeated keys and the timeline.
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{6} << 20;
  static constexpr std::uint64_t kFixedBytes = kWindowBytes + (std::uint64_t{1} << 20);
  static constexpr std::uint64_t kLeastBytes = kFixedBytes + (std::uint64_t{1} << 20);
  // 3/4 of 32768 slots.
  static constexpr std::uint64_t kWindowKeys = 24576;

  // `most_bytes`: at least kLeastBytes.
  Census(Timeline::Axis axis, std::uint64_t most_bytes);

  // `keys`: the bytes of each key. `times`: one per record with Axis::time, otherwise none.
  void feed(std::span<const Digest> digests, std::span<const std::int64_t> times,
            std::span<const std::string_view> keys);

  std::uint64_t records() const noexcept { return records_; }
  Estimate distinct() const noexcept;
  Estimate duplicates() const noexcept;
  // All keys were counted: nothing but perhaps the windows is an estimate.
  bool exact() const noexcept { return keys_.is_complete(); }
  // One key in so many was counted, and for the windows.
  std::uint64_t one_in() const noexcept { return keys_.one_in(); }
  std::uint64_t windows_one_in() const noexcept { return windowed_.one_in(); }

  const TopKeys& top() const noexcept { return top_; }
  const Timeline& timeline() const noexcept { return timeline_; }
  // Those that are shorter than the stream, and the first that is not.
  std::vector<WindowShare> windows() const;

  std::uint64_t bytes() const noexcept { return keys_.bytes() + windowed_.bytes(); }

 private:
  struct Counted {
    Digest key;
    std::uint64_t records;
    bool free() const noexcept { return records == 0; }
  };
  struct Windowed {
    Digest key;
    RepeatWindows windows;
    bool free() const noexcept { return windows.records() == 0; }
  };
  struct Sums;

  Sums sums() const;

  const WindowSizes& sizes_;
  const WindowSizes reaches_;  // a repeat that comes less than this later is held back
  KeySample<Counted> keys_;
  KeySample<Windowed> windowed_;
  TopKeys top_;
  Timeline timeline_;
  std::uint64_t records_ = 0;
  std::vector<std::int64_t> positions_;  // of a batch: record numbers or times
  std::vector<std::uint64_t> counts_;    // of a batch: of a key in the sample its records, else 0
  std::vector<double> new_keys_;         // of a batch
};

}  // namespace sluice
