// Timing filter: a sliding window of timestamps of few bits, in blocks.
//
// Source   Zhang & Guan 2008 (timing Bloom filter) and its block form, as Dautrich & Ravishankar
//          2013 give both in §3; here a generation is a block of B insertions, and B = 1 is the
//          timing Bloom filter proper. Size, block and padding follow the rules of
//          model/timing.hpp.
// Differs  rotate() ends a block, so a block may also be a span of time. Cells that an early
//          rotation leaves unmarked are read by the numbers of their time. Positions are
//          independent mixes of the digest.
// Cost     observe: one cache line per probe, and at most one timer swept per probe; no allocation.
//          1.44·log₂(1/fpr) timers per key: 60 bits per key at 1 % with 24 generations.
// Errors   `duplicate` may be wrong (model::timing_window_fpr). `distinct` never is for a key
//          written in the present generation or the `generations` before it. A key stays up to one
//          generation too long.
// Use it   when you need ages: age_of tells how old a key's oldest timestamp is and how many of its
//          timers share it. Inference uses this.
// Avoid    for plain windows: `cohort` takes half of the bits at a hundredth of the error.
// Format   snapshot kind 20, version 1.
#pragma once

#include "sluice/filters/forecast.hpp"
#include "sluice/filters/timing/stamped_window.hpp"

namespace sluice {

class Timing : public StampedWindow {
 public:
  static constexpr FilterKind kKind = FilterKind::timing;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{};

  struct Params {
    std::uint64_t timers = 0;    // m
    unsigned probes = 0;         // k
    unsigned timer_bits = 0;     // bpt
    unsigned generations = 0;    // ⌈w/B⌉
    unsigned padding = 0;        // P
    std::uint64_t capacity = 0;  // w: keys a window holds
    double target_fpr = 0;       // the error it is planned for

    Shape shape() const;
    static Params from(const Wish& wish, const Settings& settings);
    static std::span<const ParameterInfo> known();
    Settings settings() const;
    Forecast forecast() const;
    Forecast brief_forecast() const;  // without settings
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Throws BadParameters.
  static Timing make(const Params& params, MemoryResource& memory = default_memory());

  const Params& params() const noexcept { return params_; }
  FilterStats stats() const;

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const { encode_tables(to); }
  static Timing decode(Decoder& header, Decoder& payload,
                       MemoryResource& memory = default_memory());

 private:
  Timing(const Params& params, MemoryResource& memory);
  static const char* what_is_wrong(const Params& params);
  static void check(const Params& params);  // throws BadParameters

  Params params_;
};

}  // namespace sluice
