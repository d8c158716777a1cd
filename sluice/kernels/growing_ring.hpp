// Helpers of the loops over a growing table: slot formats, where hashes go, and the keys ahead. For
// kernels/growing.cpp only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/kernels/growing.hpp"
#include "sluice/kernels/prefetch.hpp"

namespace sluice::kernels {

template <class Slot_, const GrowingShape& kShape_>
struct GrowingFormat {
  using Slot = Slot_;
  static constexpr const GrowingShape& kShape = kShape_;
  static constexpr unsigned kSlots = kShape.slots();
  static constexpr unsigned kTagBits = kShape.tag_bits;
  static constexpr Slot kTagMask = static_cast<Slot>((std::uint64_t{1} << kTagBits) - 1);
  static constexpr Slot kDelimiter = static_cast<Slot>(Slot{1} << (kShape.slot_bits - 1));
  static_assert(8 * sizeof(Slot) == kShape.slot_bits);
};

// Calls run(format) with the format of the table.
template <class Run>
inline auto with_format(const GrowingTable& table, Run run) {
  switch (table.shape.slot_bits) {
    case 16:
      return run(GrowingFormat<std::uint16_t, kGrowing16>());
    case 32:
      return run(GrowingFormat<std::uint32_t, kGrowing32>());
    default:
      return run(GrowingFormat<std::uint64_t, kGrowing64>());
  }
}

// Which slots of a bucket agree with a query, and which are free, as bits.
struct GrowingMatch {
  std::uint32_t match, free;
};

// A key's two hashes, the even one first.
struct GrowingHashes {
  GrowingHashes(const GrowingShape& shape, const Digest& digest) noexcept
      : tag(digest.hi >> (64 - shape.tag_bits)) {
    const std::uint64_t mix = growing_mix(tag);
    even = digest.lo ^ (mix & (std::uint64_t{0} - (digest.lo & 1)));
    odd = even ^ mix;
  }
  std::uint64_t tag, even, odd;
};

// Where hashes go in a half that is partly split. These are copies of the table's fields: nothing
// else can point to them, so they stay in registers while slots are written.
class PartialHalf {
 public:
  explicit PartialHalf(const GrowingHalf& half) noexcept
      : lines_(half.lines),
        split_(half.split * kGrowingBucketBytes),
        near_(half.low_mask * kGrowingBucketBytes),
        last_((half.low_mask + 1) * kGrowingBucketBytes),
        level_(half.level) {}
  // Calls found(line, level).
  template <class Found>
  [[gnu::always_inline]] void find(std::uint64_t hash, Found found) const noexcept {
    static_assert(kGrowingBucketBytes == 64);
    const std::uint64_t scaled = hash << 5;  // hash / 2 times the size of a bucket
    const std::uint64_t near = scaled & near_;
    const std::uint64_t split = near < split_;
    found(lines_ + (near | (scaled & last_ & (std::uint64_t{0} - split))),
          level_ + static_cast<unsigned>(split));
  }

 private:
  std::byte* lines_;
  std::uint64_t split_, near_, last_;
  unsigned level_;
};

// The same in a half of which no bucket has been split since it last doubled.
class WholeHalf {
 public:
  explicit WholeHalf(const GrowingHalf& half) noexcept
      : lines_(half.lines), near_(half.low_mask * kGrowingBucketBytes), level_(half.level) {}
  template <class Found>
  [[gnu::always_inline]] void find(std::uint64_t hash, Found found) const noexcept {
    found(lines_ + (hash << 5 & near_), level_);
  }

 private:
  std::byte* lines_;
  std::uint64_t near_;
  unsigned level_;
};

// The same two, of halves that lie in pages. `kWrite`: the line may be written.
template <bool kWrite>
class PagedPartialHalf {
 public:
  explicit PagedPartialHalf(const GrowingHalf& half) noexcept : half_(half) {}
  template <class Found>
  [[gnu::always_inline]] void find(std::uint64_t hash, Found found) const noexcept {
    const std::uint64_t near = hash >> 1 & half_.low_mask;
    const std::uint64_t split = near < half_.split;
    const std::uint64_t last = (half_.low_mask + 1) & (std::uint64_t{0} - split);
    const std::uint64_t bucket = near | (hash >> 1 & last);
    found(kWrite ? half_.pages.to_write(bucket) : half_.pages.to_read(bucket),
          half_.level + static_cast<unsigned>(split));
  }

 private:
  GrowingHalf half_;
};

template <bool kWrite>
class PagedWholeHalf {
 public:
  explicit PagedWholeHalf(const GrowingHalf& half) noexcept : half_(half) {}
  template <class Found>
  [[gnu::always_inline]] void find(std::uint64_t hash, Found found) const noexcept {
    const std::uint64_t bucket = hash >> 1 & half_.low_mask;
    found(kWrite ? half_.pages.to_write(bucket) : half_.pages.to_read(bucket), half_.level);
  }

 private:
  GrowingHalf half_;
};

// How both halves of a table lie in memory: what a loop over them is made of.
struct GrowingFlat {
  using Partial = PartialHalf;
  using Whole = WholeHalf;
  static std::byte* at(const GrowingHalf& half, std::uint64_t index) noexcept {
    return half.lines + index * kGrowingBucketBytes;
  }
};
template <bool kWrite>
struct GrowingPaged {
  using Partial = PagedPartialHalf<kWrite>;
  using Whole = PagedWholeHalf<kWrite>;
  static std::byte* at(const GrowingHalf& half, std::uint64_t index) noexcept {
    return half.pages.to_write(index);
  }
};

// The places of the keys to come, worked out once when their lines are asked for. Of key i they are
// at i modulo kKeys, the odd ones kKeys further on.
template <class F>
struct GrowingRing {
  static constexpr std::size_t kKeys = 32;
  static_assert(kKeys > kPrefetchDistance);

  template <class Even, class Odd>
  [[gnu::always_inline]] void put(std::size_t at, const Even& evens, const Odd& odds,
                                  const Digest& digest) noexcept {
    using Slot = typename F::Slot;
    const GrowingHashes key(F::kShape, digest);
    // The delimiter of a new slot changes no comparison: it lies above all that is compared.
    const auto ends = static_cast<Slot>(key.tag | F::kDelimiter);
    evens.find(key.even, [&](std::byte* line, unsigned level) {
      lines[at] = line;
      levels[at] = static_cast<std::uint8_t>(level);
      slots[at] = static_cast<Slot>(key.even >> level << F::kTagBits | ends);
    });
    odds.find(key.odd, [&](std::byte* line, unsigned level) {
      lines[at + kKeys] = line;
      levels[at + kKeys] = static_cast<std::uint8_t>(level);
      slots[at + kKeys] = static_cast<Slot>(key.odd >> level << F::kTagBits | ends);
    });
  }

  // The places that are not written before the first key is judged.
  void clear(std::size_t half) noexcept {
    for (std::size_t i = kPrefetchDistance; i < kKeys; ++i) lines[half * kKeys + i] = nullptr;
  }
  // Whether one of `count` keys goes to this line of a half: its place changes when it is split.
  bool has(std::size_t half, const std::byte* line, std::size_t count) const noexcept {
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < std::min(count, kKeys); ++i)
      found |= std::uint64_t{lines[half * kKeys + i] == line};
    return found != 0;
  }

  std::array<std::byte*, 2 * kKeys> lines;
  std::array<typename F::Slot, 2 * kKeys> slots;  // as a new key's, and what is asked for
  std::array<std::uint8_t, 2 * kKeys> levels;
};

inline bool is_stray(const GrowingTable& table, const GrowingTrace& key) noexcept {
  for (std::size_t i = 0; i < table.stray_count; ++i)
    if (covers(table.strays[i], key)) return true;
  return false;
}

}  // namespace sluice::kernels
