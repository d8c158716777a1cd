// Cohort filter: a sliding window of fingerprints, each stamped with the generation that wrote it.
//
// Source   Ours. Its nearest relatives are cuckoo tables with timestamps, SWAMP, and the
//          construction with which Naor & Yogev (2013) meet their lower bound for sliding filters:
//          dictionaries, not bits.
// Cost     observe: two cache lines, no allocation. Memory per key in the window, everything
//          counted: 29 bits with 24-bit slots, 37 with 32-bit slots (docs/filters/cohort.md).
// Errors   `duplicate` may be wrong (model::cohort_fpr). `distinct` never is for a key written in
//          the present generation or the `generations` before it. A key stays up to one generation
//          too long.
// Use it   for windows: it is the default.
// Avoid    when keys must be counted or several sites share one filter: a table of bits can be
//          split, a table of slots cannot.
// Format   snapshot kind 17, version 1.
//
// A slot whose generation has left the window is free; nothing is ever erased. Slots carry a number
// of few bits for the generation that wrote them. A generation takes the next number when its first
// key is written, so that generations without keys take none and cost nothing, however many pass.
// Numbers wrap around. So that no dead slot carries a number that is in use again, each key written
// also sweeps a part of the table: free slots there get the number that left last. How far the
// sweep has come depends only on the keys written in the generation, not on how calls were cut into
// batches. If many generations have few keys, the sweep falls behind; then each strip of buckets is
// read by the number at which it was last swept, and swept before it is written to
// (cohort_sweep.cpp). When both buckets of a key are full, a free slot is searched breadth-first
// among the other buckets of their occupants, and only then does anything move. If there is none,
// the key goes to a small stash. If the stash is full, the filter is full, and it says so. The
// stash also takes keys that come late from a generation that has no number. It never forgets a key
// inside the window.
#pragma once

#include <algorithm>
#include <array>

#include "sluice/base/line_table.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/filters/window_contract.hpp"
#include "sluice/kernels/cohort.hpp"

namespace sluice {

class Cohort {
 public:
  static constexpr FilterKind kKind = FilterKind::cohort;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{};
  static constexpr std::size_t kMostStrays = 64;

  struct Params {
    unsigned slot_bits = 24;       // 16, 24, 32, 40 or 48
    unsigned generation_bits = 5;  // 4 to 6
    unsigned generations = 24;     // a key stays for this many beyond its own
    std::uint64_t buckets = 0;     // of 64 bytes
    std::uint64_t capacity = 0;    // keys a window holds
    double target_fpr = 0;         // the error it is planned for

    // Slots that may be live at once: the window and the generation that is being written.
    std::uint64_t live_capacity() const;

    static Params from(const Wish& wish, const Settings& settings);
    static std::span<const ParameterInfo> known();
    Settings settings() const;
    Forecast forecast() const;
    Forecast brief_forecast() const;    // without settings
    const char* what_is_wrong() const;  // a sentence, or nothing
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Throws BadParameters.
  static Cohort make(const Params& params, MemoryResource& memory = default_memory());

  // The verbs of every filter: all in the present generation, nothing ages.
  Verdict observe(const Digest& digest);
  bool may_contain(const Digest& digest) const noexcept;
  void insert(const Digest& digest) { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  std::size_t insert(std::span<const Digest> digests);
  void clear() noexcept;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   unsigned later) const noexcept;

  unsigned generations() const noexcept { return params_.generations; }
  void rotate() noexcept;
  std::size_t admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                    std::uint64_t& budget, Anchor anchor) noexcept;
  std::optional<Verdict> admit_aged(const Digest& digest, unsigned age, Anchor anchor) noexcept;
  std::uint64_t live_keys() const noexcept { return live_keys_; }
  std::uint64_t room() const noexcept {
    return params_.live_capacity() - std::min(params_.live_capacity(), live_keys_);
  }

  // How many generations ago the key was written, if it is remembered. If several slots have its
  // fingerprint, the youngest counts.
  std::optional<unsigned> age_of(const Digest& digest) const noexcept;
  // The same for many: kernels::kNoAge for keys that are not remembered.
  void ages_of(std::span<const Digest> digests, std::span<std::uint8_t> ages) const noexcept;
  // Keys last written `age` generations ago, at most generations().
  std::uint64_t keys_aged(unsigned age) const noexcept;
  // Takes a key back. Forgetting one that was never written may erase another's trace, at the rate
  // of a false positive. Returns whether there was a trace.
  bool forget(const Digest& digest) noexcept;

  const Params& params() const noexcept { return params_; }
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept {
    return memory_.taken() + strips_.taken() + taken_by(strays_);
  }
  MemoryResource& memory() const noexcept { return memory_.resource(); }
  std::size_t stray_count() const noexcept { return strays_.size(); }
  std::uint64_t moves() const noexcept { return moves_; }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static Cohort decode(Decoder& header, Decoder& payload,
                       MemoryResource& memory = default_memory());

 private:
  static constexpr std::size_t kMostNumbers = 64;

  Cohort(const Params& params, MemoryResource& memory);
  void reset() noexcept;
  kernels::CohortTable table() const noexcept;
  kernels::CohortBatch ask(std::span<const Digest> digests,
                           std::span<Verdict> verdicts) const noexcept;
  // The number of which `back` others are younger.
  unsigned number(unsigned back) const noexcept {
    return (now_ - back) & ((1u << params_.generation_bits) - 1);
  }
  std::optional<unsigned> number_of(std::uint64_t tick) const noexcept;
  unsigned age(std::uint64_t tick) const noexcept { return static_cast<unsigned>(tick_ - tick); }
  void begin_generation(std::uint64_t tick) noexcept;
  bool place(const kernels::CohortPlace& place, unsigned number) noexcept;
  bool make_room(const kernels::CohortPlace& place, unsigned number) noexcept;
  bool stash(const kernels::CohortPlace& place, std::uint64_t tick) noexcept;
  void note_written(unsigned number, std::uint64_t keys) noexcept;
  void decode_state(Decoder& from);
  bool is_sound() const;
  bool slots_are_sound() const;

  // The sweep (cohort_sweep.cpp).
  static constexpr std::uint64_t kStripBuckets = 16;
  static std::uint64_t strips(const Params& params) noexcept {
    return (params.buckets + kStripBuckets - 1) / kStripBuckets;
  }
  static constexpr unsigned kMostClean = 15;
  unsigned clean_numbers() const noexcept;
  std::uint64_t& swept_at(unsigned back) noexcept {
    return swept_at_[number(back) % swept_at_.size()];
  }
  std::uint64_t swept_at(unsigned back) const noexcept {
    return swept_at_[number(back) % swept_at_.size()];
  }
  void take_number() noexcept;
  void count_sweeps_from_less() noexcept;
  void keep_pace() noexcept;
  std::uint32_t numbers_since_swept(std::uint64_t strip) const noexcept;
  void sweep_strip(std::uint64_t strip) noexcept;
  void note_swept(std::uint64_t strip) noexcept;
  void clean(std::uint64_t bucket) noexcept;
  kernels::CohortMatch probe(std::uint64_t bucket, std::uint64_t fingerprint,
                             unsigned numbers) const noexcept;

  // A live trace of a key: a slot of a bucket, or a stray.
  struct Trace {
    std::uint64_t bucket = 0;
    unsigned slot = 0;
    std::size_t stray = kMostStrays;
    unsigned number = 0;  // of the slot
    std::uint64_t tick = 0;
  };
  std::optional<Trace> find(const Digest& digest) const noexcept;
  void take_out(const Trace& trace) noexcept;

  Params params_;
  std::uint64_t tick_ = 0;       // the present generation; never wraps
  unsigned now_ = 0;             // the youngest number, modulo 2^generation_bits
  unsigned live_numbers_ = 0;    // how many numbers, up to now_, belong to live generations
  bool used_ = false;            // whether a slot may carry the youngest number
  std::uint64_t live_keys_ = 0;  // sum of written_, and strays
  bool behind_ = false;          // whether a strip was swept more than clean_numbers() ago
  std::uint64_t taken_ = 0;      // numbers taken so far
  std::uint64_t swept_ = 0;      // strips swept so far, one after the other, round and round
  std::uint64_t moves_ = 0;      // occupants moved so far
  std::uint64_t forgotten_ = 0, forget_misses_ = 0;
  std::array<std::uint64_t, kMostNumbers> born_{};     // by number: the generation that took it
  std::array<std::uint64_t, kMostNumbers> written_{};  // by number: slots of live generations
  // For the last few numbers: swept_ when the number was taken.
  std::array<std::uint64_t, kMostClean + 1> swept_at_{};
  Vector<kernels::CohortStray> strays_;
  LineTable memory_;
  LineTable strips_;  // of each strip: the low 32 bits of taken_ when it was last swept
};

}  // namespace sluice
