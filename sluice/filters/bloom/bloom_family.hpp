// What the Bloom filters share: the name `bloom`, for both of its layouts; how large a table must
// be; and the header of their snapshots.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/base/codec.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/filters/forecast.hpp"

namespace sluice {

// --- `bloom`: the layout, bytes and probes for a request

std::span<const ParameterInfo> bloom_parameters();

// Classical or blocked, sized from keys and fpr, or from bytes. Throws BadParameters.
AnyFilter make_bloom(const Wish& wish, const Settings& settings, MemoryResource& memory);
Forecast forecast_bloom(const Wish& wish, const Settings& settings);

// --- Sizes of a classical Bloom filter from keys, error, memory and probes, as far as they are
// given: for `bloom`, `counting` and `dynamic`.

struct BloomWish {
  double fpr = 0;
  std::optional<std::uint64_t> keys = {};
  std::optional<std::uint64_t> places = {};  // bits or counters
  std::optional<std::uint64_t> probes = {};
  std::uint64_t standard_keys = 0;  // planned for when neither keys nor places are given
};

struct BloomSize {
  std::uint64_t places = 0;
  unsigned probes = 0;
  std::uint64_t capacity = 0;
};

inline constexpr std::uint64_t kMostBloomKeys = std::uint64_t{1} << 44;

// `places` is a multiple of `step`, and at most `most`. Throws BadParameters, naming `filter`, when
// more would be needed.
BloomSize bloom_size(std::string_view filter, const BloomWish& wish, std::uint64_t step,
                     std::uint64_t most);

// The error of a classical filter. Up to kFewPlaces with the differences between filters of one
// size, which matter there (model/small_bloom.hpp).
inline constexpr std::uint64_t kFewPlaces = 4096;
double classic_fpr(std::uint64_t places, unsigned probes, std::uint64_t keys);

// The same of a filter that has taken so many keys for new. More were offered (model/offered.hpp), up to
// `most`: how many more is a matter of chance, and within its plan a filter is not said to err more
// often than planned.
double classic_fpr_of_taken(std::uint64_t places, unsigned probes, std::uint64_t taken,
                            std::uint64_t most);

// At the optimum every probe halves the error.
unsigned best_bloom_probes(double fpr);

// --- Snapshots. The header of `bloom`, in both layouts, and of `counting`: the same five fields

struct BloomFields {
  std::uint64_t size = 0;  // bits, blocks or counters
  unsigned probes = 0;
  std::uint64_t capacity = 0;
  double target_fpr = 0;
  std::uint64_t keys = 0;

  void encode(Encoder& to) const {
    to.u64(size);
    to.u32(probes);
    to.u64(capacity);
    to.f64(target_fpr);
    to.u64(keys);
  }
  static BloomFields decode(Decoder& from) {
    BloomFields fields;
    fields.size = from.u64();
    fields.probes = from.u32();
    fields.capacity = from.u64();
    fields.target_fpr = from.f64();
    fields.keys = from.u64();
    return fields;
  }
};

}  // namespace sluice
