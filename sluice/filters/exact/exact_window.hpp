// Exact window: every key's 128-bit digest with the generation that wrote it; never wrong.
//
// Source   Open addressing with linear probing over digests that are uniform already, as in
//          exact.hpp, with absolute generation numbers that never wrap.
// Cost     observe: one cache line in most cases. 24 bytes per slot, at most half of the slots
//          live: 48 to 96 bytes per key while a window grows, and 1.5 × that while keys move to
//          another table; an insertion may allocate.
// Errors   Only by a 128-bit collision. A key stays up to one generation too long, like in every
//          window filter. It is full only when there is no memory.
// Use it   as the truth in tests, for small windows that must lose nothing, and for windows of
//          unknown rate.
// Avoid    for large windows: `cohort` takes less than a tenth of the memory.
// Format   snapshot kind 16, version 1: both tables while keys move.
//
// An expired entry still keeps the entries after it reachable. Each insertion looks at a few slots
// and removes expired entries, moving back those that would become unreachable. Keys move to a
// larger table when the live ones need it, and to a smaller one when a generation ends and few are
// left. Each insertion moves some (digest_table.hpp), and expired keys are dropped.
#pragma once

#include <optional>

#include "sluice/filters/cohort/generation_counts.hpp"
#include "sluice/filters/exact/digest_table.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/filters/window_contract.hpp"

namespace sluice {

class ExactWindow {
 public:
  static constexpr FilterKind kKind = FilterKind::exact_window;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{.no_false_positives = true, .fixed_memory = false};

  struct Params {
    unsigned generations = 24;        // a key stays for this many beyond its own
    std::uint64_t expected_keys = 0;  // room from the start; more is taken as needed

    static Params from(const Wish& wish, const Settings& settings);
    static std::span<const ParameterInfo> known();
    Settings settings() const;
    Forecast forecast() const;
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Throws BadParameters.
  static ExactWindow make(const Params& params, MemoryResource& memory = default_memory());

  // The operations of every filter: all in the present generation, nothing ages.
  Verdict observe(const Digest& digest);
  bool may_contain(const Digest& digest) const noexcept;
  void insert(const Digest& digest) { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   unsigned later) const noexcept;
  std::size_t insert(std::span<const Digest> digests);
  void clear() noexcept;

  unsigned generations() const noexcept { return params_.generations; }
  void rotate() noexcept;
  std::size_t admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                    std::uint64_t& budget, Anchor anchor) noexcept;
  std::optional<Verdict> admit_aged(const Digest& digest, unsigned age, Anchor anchor) noexcept;
  std::uint64_t live_keys() const noexcept { return counts_.live(); }

  // How many generations ago the key was written, if it is remembered.
  std::optional<unsigned> age_of(const Digest& digest) const noexcept;
  bool forget(const Digest& digest) noexcept;

  const Params& params() const noexcept { return params_; }
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept { return table_.taken() + counts_.taken(); }
  MemoryResource& memory() const noexcept { return table_.memory(); }
  std::uint64_t slots() const noexcept { return table_.slots(); }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static ExactWindow decode(Decoder& header, Decoder& payload,
                            MemoryResource& memory = default_memory(),
                            std::optional<unsigned> generations = {});

 private:
  struct Entry {
    Digest key;
    std::uint64_t generation;  // absolute; 0: the slot is free
    bool free() const noexcept { return generation == 0; }
  };

  ExactWindow(const Params& params, DigestTable<Entry> table);
  bool live(const Entry& entry) const noexcept {
    return !entry.free() && now_ - entry.generation <= params_.generations;
  }
  void sweep() noexcept;
  bool too_large() const noexcept;
  bool make_room() noexcept;
  bool begin_move() noexcept;
  void drop_all() noexcept;

  Params params_;
  DigestTable<Entry> table_;
  std::uint64_t swept_ = 0;  // the next slot to look at
  std::uint64_t now_ = 0;    // the present generation
  std::uint64_t forgotten_ = 0, forget_misses_ = 0;
  GenerationCounts counts_;
};

}  // namespace sluice
