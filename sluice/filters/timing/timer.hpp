// Timer filter: each cell holds the time of its last delivery; a test counts how many times are
// equal.
//
// Source   Koloniari et al. 2011, §3 (vertical and horizontal slices) and §4 (timers, equal timers,
//          insertion at the event's own age).
// Differs  Timers are generation numbers, compared and never decremented: the paper's counters
//          would touch every cell at every tick. Numbers wrap around; a sweep makes the result
//          equal to absolute times. Each probe of a vertical filter has its own part of the table.
// Cost     observe: one cache line per probe, no allocation. 8 or 16 bits per timer, 1.44·log₂(1/fpr)
//          timers per key: 80 bits per key at 1 %.
// Errors   `duplicate` may be wrong (model::timer_window_fpr). `distinct` never is within the
//          window and equal=0. With equal=x a duplicate needs x equal timers: fewer false positives
//          (model::timer_equal_fpr) for some false negatives (model::timer_equal_fnr), mostly of
//          keys about to leave.
// Use it   for vertical slices over several sites, and for late events: a timer takes any age.
// Avoid    for plain windows: `cohort` takes a third of the bits at a hundredth of the error.
// Format   snapshot kind 21, version 1.
#pragma once

#include "sluice/filters/forecast.hpp"
#include "sluice/filters/timing/stamped_window.hpp"

namespace sluice {

class Timer : public StampedWindow {
 public:
  static constexpr FilterKind kKind = FilterKind::timer;
  static constexpr std::uint16_t kVersion = 1;
  // For all parameters; promises() tells more for the given ones.
  static constexpr FilterPromises kPromises{.no_false_negatives = false};

  // Part of the format.
  enum class Layout : std::uint8_t {
    vertical = 0,    // a part of the table for each probe
    plain = 1,       // every probe anywhere
    horizontal = 2,  // a key's probes all within one slice
  };

  struct Params {
    std::uint64_t timers = 0;  // m, a multiple of probes (vertical) or slices (horizontal)
    unsigned probes = 0;       // k
    unsigned timer_bits = 8;   // 8 or 16
    unsigned generations = 0;
    Layout layout = Layout::vertical;
    unsigned slices = 1;         // S, of a horizontal layout
    unsigned equal = 0;          // x: equal timers that a duplicate needs; 0: no test
    std::uint64_t capacity = 0;  // w: keys a window holds
    double target_fpr = 0;       // the error it is planned for, without the test of equal timers

    Shape shape() const;
    static Params from(const Wish& wish, const Settings& settings);
    static std::span<const ParameterInfo> known();
    Settings settings() const;
    Forecast forecast() const;
    Forecast brief_forecast() const;  // without settings
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Throws BadParameters.
  static Timer make(const Params& params, MemoryResource& memory = default_memory());

  // equal=1 tests nothing: every timer equals itself.
  FilterPromises promises() const noexcept { return {.no_false_negatives = params_.equal <= 1}; }

  const Params& params() const noexcept { return params_; }
  FilterStats stats() const;

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const { encode_tables(to); }
  static Timer decode(Decoder& header, Decoder& payload, MemoryResource& memory = default_memory());

 private:
  Timer(const Params& params, MemoryResource& memory);
  static const char* what_is_wrong(const Params& params);
  static void check(const Params& params);  // throws BadParameters

  Params params_;
};

}  // namespace sluice
