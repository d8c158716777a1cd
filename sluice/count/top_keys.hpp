// The keys that come most often, with bounds on how often each came.
//
// Source   Space-Saving (Metwally, Agrawal and El Abbadi 2005): a key that is not counted takes the place
//          of the one with the lowest count, and begins at that count plus one.
// Differs  While the caller knows every key's exact number, a key takes a place only if it has come more
//          often than the lowest, and has no error. Later the caller may know some keys' numbers, from a
//          sample: they are reported, but do not decide which key has a place, nor from when on. The lowest
//          is found by a search of all counters when those with the last minimum are used up. Each search
//          raises the minimum, which is at most records / kKeys, so searches cost O(1) per record.
// Cost     kKeys counters and the beginnings of their keys: 432 KiB. A record costs one probe of an index
//          of 8 KiB, and, if its key is not counted, a replacement.
// Errors   A key that is listed came between `least` and `most` times. One that is not came at most
//          floor() times, and floor() is at most records / kKeys.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/count/repeat_windows.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice {

struct TopKey {
  Digest digest;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::string key = {};  // the first TopKeys::kKeyBytes bytes of its form (stream/key_form.hpp)
  bool cut = false;      // there are more
};

class TopKeys {
 public:
  static constexpr std::size_t kKeys = 1024;
  static constexpr std::size_t kKeyBytes = 240;

  explicit TopKeys(const WindowSizes& windows);

  // A record of a key that has come `times` times, this one included; 0: not known.
  void observe(const Digest& digest, std::string_view key, std::int64_t position,
               std::uint64_t times = 0);
  // The same while all keys' numbers are known: keys that came once need not be offered.
  void observe_known(const Digest& digest, std::string_view key, std::int64_t position,
                     std::uint64_t times);
  // True if observe_known() of a key that came so often would change nothing.
  bool ignores(std::uint64_t times) const noexcept { return times <= bound_; }

  // The most times that a key that is not counted can have come.
  std::uint64_t floor() const noexcept;
  // Keys that came twice or more, the most frequent first.
  std::vector<TopKey> top(std::size_t most) const;
  // The most times that any other key can have come.
  std::uint64_t most_beside(std::span<const TopKey> listed) const;
  // Calls act(windows) for each key that came again since it took its place; `windows` has its records
  // since then.
  template <class Act>
  void each(Act act) const {
    for (std::size_t i = 0; i < counters_.size(); ++i)
      if (counters_[i].has_details) act(details_[i].windows);
  }
  // The same of one key, or null.
  const RepeatWindows* windows_of(const Digest& digest) const noexcept;

 private:
  struct Counter {
    Digest digest;
    std::uint64_t count = 0;  // decides which key is replaced
    std::uint64_t least = 0;  // it came between so many times
    std::uint64_t most = 0;   // and so many
    std::int64_t first = 0;   // where its first record was, until it has details
    bool has_details = false;
  };
  // Of a key that has come again since it took its place: most do not.
  struct Details {
    RepeatWindows windows = {};
    std::uint32_t key_bytes = 0;
    bool cut = false;
    std::array<char, kKeyBytes> key;
  };
  static constexpr std::uint16_t kNone = 0xFFFF;
  static constexpr unsigned kIndexBits = 12;
  static constexpr std::size_t kIndexSlots = std::size_t{1} << kIndexBits;

  static std::size_t home_of(const Digest& digest) noexcept {
    return digest.lo >> (64 - kIndexBits);
  }
  std::size_t place_of(const Digest& digest) const noexcept;
  void take_from_index(const Digest& digest) noexcept;
  void put_in_index(std::uint16_t counter) noexcept;
  // A counter for a new key: a new one, or the lowest.
  std::uint16_t replace(const Digest& digest);
  std::uint16_t lowest();
  void repeat(std::uint16_t number, std::string_view key, std::int64_t position) noexcept;
  void keep_key(std::uint16_t number, std::string_view key) noexcept;

  WindowSizes windows_;
  std::vector<Counter> counters_;
  std::vector<Details> details_;  // of counter i
  std::array<std::uint16_t, kIndexSlots> index_;
  std::vector<std::uint16_t> low_;  // counters that had the count bound_ when it was set
  // No counter is lower, and no key that is not counted came more often. While there are free counters,
  // it is the most times that a key comes without being offered: once.
  std::uint64_t bound_ = 1;
};

}  // namespace sluice
