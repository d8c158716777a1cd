// Exact filter: remembers every key's 128-bit digest, and so is never wrong.
//
// Source   Open addressing with linear probing over digests that are uniform already.
// Cost     observe: one cache line in most cases. The table doubles when it is three quarters full:
//          21 to 43 bytes per key, and 1.5 × that while keys move to the larger table. Each
//          insertion moves a few slots (digest_table.hpp); the first of them allocates. forget
//          closes the gap that it leaves, so searches do not get longer; the table does not shrink.
// Errors   Only by a 128-bit collision: below 10⁻²⁰ for a billion keys. No false negative.
// Use it   as the truth in tests and audits, and when no event may be lost and memory suffices.
// Avoid    for endless streams: it grows with the number of keys.
// Format   snapshot kind 1, version 1: both tables while keys move.
#pragma once

#include "sluice/filters/contract.hpp"
#include "sluice/filters/exact/digest_table.hpp"
#include "sluice/filters/forecast.hpp"

namespace sluice {

class Exact {
 public:
  static constexpr FilterKind kKind = FilterKind::exact;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{.no_false_positives = true, .fixed_memory = false};

  struct Params {
    std::uint64_t expected_keys = 0;  // room from the start; more is taken as needed

    static Params from(const Wish& wish, const Settings& settings);
    static std::span<const ParameterInfo> known();
    Settings settings() const;
    Forecast forecast() const;
    friend bool operator==(const Params&, const Params&) = default;
  };

  static Exact make(const Params& params, MemoryResource& memory = default_memory());

  Verdict observe(const Digest& digest);
  bool may_contain(const Digest& digest) const noexcept;
  void insert(const Digest& digest) { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const noexcept;
  std::size_t insert(std::span<const Digest> digests);
  void clear() noexcept;
  bool forget(const Digest& digest) noexcept;
  // Any two can be merged: the table grows to the size that the keys need. Throws NoMemory.
  void merge(const Exact& other);

  const Params& params() const noexcept { return params_; }
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept { return table_.taken(); }
  MemoryResource& memory() const noexcept { return table_.memory(); }

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static Exact decode(Decoder& header, Decoder& payload, MemoryResource& memory = default_memory());

 private:
  struct Entry {
    Digest key;
    bool free() const noexcept { return key == Digest{}; }
  };

  Exact(const Params& params, DigestTable<Entry> table)
      : params_(params), table_(std::move(table)) {}
  void make_room();
  Verdict observe_slowly(Digest key);

  Params params_;
  DigestTable<Entry> table_;
  std::uint64_t forgotten_ = 0, forget_misses_ = 0;
};

}  // namespace sluice
