// The header of a snapshot of `bloom`, in both layouts, and of `counting`: the same five fields.
#pragma once

#include <cstdint>

#include "sluice/base/codec.hpp"

namespace sluice {

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
