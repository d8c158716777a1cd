// How the slots of a cohort table lie in their buckets: the planes of each width.
#pragma once

#include <bit>
#include <type_traits>

#include "sluice/kernels/cohort.hpp"

namespace sluice::kernels {

// A slot's two planes. `Lower` is void if the whole slot is one element.
template <class Lower_, class Upper_, unsigned kSlots_, unsigned kUpperByte_>
struct CohortFormat {
  using Lower = Lower_;
  using Upper = Upper_;
  static constexpr bool kPlanes = !std::is_void_v<Lower>;
  static constexpr unsigned kSlots = kSlots_;
  static constexpr unsigned kUpperByte = kUpperByte_;
  static constexpr unsigned kUpperBits = 8 * sizeof(Upper);
  static constexpr unsigned kLowerBits = [] {
    if constexpr (kPlanes) return 8u * unsigned{sizeof(Lower)};
    return 0u;
  }();
  static constexpr std::uint32_t kAll =
      static_cast<std::uint32_t>((std::uint64_t{1} << kSlots) - 1);
};
using Format16 = CohortFormat<void, std::uint16_t, 32, 0>;
using Format24 = CohortFormat<std::uint16_t, std::uint8_t, 21, 42>;
using Format32 = CohortFormat<void, std::uint32_t, 16, 0>;
using Format40 = CohortFormat<std::uint32_t, std::uint8_t, 12, 48>;
using Format48 = CohortFormat<std::uint32_t, std::uint16_t, 10, 40>;

// The upper element of a slot: generation above, the top of the fingerprint below.
template <class F>
constexpr auto upper_of(const CohortTable& table, std::uint64_t fingerprint,
                        unsigned generation) noexcept {
  using Upper = typename F::Upper;
  return static_cast<Upper>(generation << (F::kUpperBits - table.generation_bits) |
                            static_cast<std::uint32_t>(fingerprint >> F::kLowerBits));
}

template <class F>
inline void put(const CohortTable& table, std::byte* line, std::size_t slot,
                std::uint64_t fingerprint, unsigned generation) noexcept {
  if constexpr (F::kPlanes) {
    const auto lower = static_cast<typename F::Lower>(fingerprint);
    std::memcpy(line + slot * sizeof(lower), &lower, sizeof(lower));
  }
  const auto upper = upper_of<F>(table, fingerprint, generation);
  std::memcpy(line + F::kUpperByte + slot * sizeof(upper), &upper, sizeof(upper));
}

template <class F>
inline CohortSlot get(const CohortTable& table, const std::byte* line, unsigned slot) noexcept {
  typename F::Upper upper;
  std::memcpy(&upper, line + F::kUpperByte + slot * sizeof(upper), sizeof(upper));
  const unsigned shift = F::kUpperBits - table.generation_bits;
  std::uint64_t fingerprint = upper & ((std::uint64_t{1} << shift) - 1);
  if constexpr (F::kPlanes) {
    typename F::Lower lower;
    std::memcpy(&lower, line + slot * sizeof(lower), sizeof(lower));
    fingerprint = fingerprint << F::kLowerBits | lower;
  }
  return {fingerprint, static_cast<unsigned>(upper >> shift)};
}

// Calls run(format) with the format of the table.
template <class Run>
inline auto with_format(const CohortTable& table, Run run) {
  switch (table.slot_bits) {
    case 16:
      return run(Format16());
    case 24:
      return run(Format24());
    case 32:
      return run(Format32());
    case 40:
      return run(Format40());
    default:
      return run(Format48());
  }
}

// What every probe of a batch shares. An upper element is generation · 2^shift + top of the
// fingerprint, so with all ones below, `now − element` is age · 2^shift + something smaller: no
// masking is needed to compare ages.
template <class F>
struct CohortAges {
  using Upper = typename F::Upper;
  explicit CohortAges(const CohortTable& table) {
    const unsigned shift = F::kUpperBits - table.generation_bits;
    const std::uint32_t below = (1u << shift) - 1;
    now = static_cast<Upper>(table.now << shift | below);
    limit = static_cast<Upper>(table.live << shift | below);
    end = static_cast<Upper>(limit + 1);
    generation = static_cast<Upper>(table.generation_mask() << shift);
    dead = static_cast<Upper>(((table.now - table.live - 1) & table.generation_mask()) << shift);
  }
  Upper now, limit, end, generation, dead;
};

// A fingerprint with its generation on top is a slot: the lower plane's part below, the upper's
// above.
template <class F>
inline void put_slot(std::byte* line, std::size_t at, std::uint64_t slot) noexcept {
  if constexpr (F::kPlanes) {
    const auto lower = static_cast<typename F::Lower>(slot);
    std::memcpy(line + at * sizeof(lower), &lower, sizeof(lower));
  }
  const auto upper = static_cast<typename F::Upper>(slot >> F::kLowerBits);
  std::memcpy(line + F::kUpperByte + at * sizeof(upper), &upper, sizeof(upper));
}

// What is searched for in two buckets.
struct CohortKey {
  std::byte* first;            // line
  std::byte* second;           // line
  std::uint64_t slot;          // with the present generation
  std::uint32_t lower, upper;  // of the fingerprint alone, repeated to fill 32 bits
};

inline std::uint64_t fingerprint_of(const CohortTable& table, const CohortKey& key) noexcept {
  return key.slot & ((std::uint64_t{1} << table.fingerprint_bits()) - 1);
}

// The result for two buckets. Slot i of the first is bit i + kFreeBit of `free`, of the second
// kApart bits above it.
struct CohortPair {
  bool match;
  std::uint64_t free;
};

inline bool is_stray(const CohortTable& table, const CohortBatch& batch, const std::byte* first,
                     std::uint64_t fingerprint) noexcept {
  for (std::size_t i = 0; i < batch.stray_count; ++i)
    if (line_of(table, batch.strays[i].bucket) == first &&
        batch.strays[i].fingerprint == fingerprint)
      return true;
  return false;
}

}  // namespace sluice::kernels
