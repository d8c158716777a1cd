// Age-partitioned Bloom filter: a sliding window in plain bits.
//
// Source   Shtul, Baquero & Almeida 2020, §5; several parts (the paper's slices) per segment as in §6.
// Differs  Every part has its own hash over the whole digest. The paper recommends double hashing,
//          whose error at (17,13) and 1,000 keys is 25 times as high as it should be. A part is
//          emptied line by line as it is written again, not all at once
//          (kernels/age_partition.hpp).
// Cost     observe of a new key: k lines written and about 2 to 10 asked
//          (model::query_accesses), no allocation. Memory: k(k+l)/(l·ln 2) bits per key, and 0.8 %
//          for what is still to be emptied. rotate: no more than a few lines.
// Errors   `duplicate` may be wrong (model::apbf_fpr with exact fills); `distinct` never is for a
//          key written in the present generation or the l before it. Keys fade out over the k
//          generations after that: each generation halves the share still reported.
// Use it   when a window must be kept in bits that can be split over sites, part by part.
// Avoid    otherwise: cohort is faster and smaller with less slack, apbbf faster.
// Format   snapshot kind 18, version 1.
#pragma once

#include "sluice/filters/apbf/age_partitioned.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/kernels/age_strips.hpp"
#include "sluice/kernels/bit_segments.hpp"

namespace sluice {

struct ApbfParams {
  static constexpr FilterKind kKind = FilterKind::apbf;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr std::string_view kName = "apbf";

  unsigned k = 0;               // segments a key is written in
  unsigned l = 0;               // generations for which a key stays beyond its own
  unsigned parts = 1;           // per segment
  std::uint64_t part_bits = 0;  // m: whole cache lines
  std::uint64_t capacity = 0;   // w: keys a window holds
  double target_fpr = 0;        // the error it is planned for

  static ApbfParams from(const Wish& wish, const Settings& settings);
  static std::span<const ParameterInfo> known();
  Settings settings() const;
  Forecast forecast() const;
  Forecast brief_forecast() const;  // without lines and settings, which take most of the time
  friend bool operator==(const ApbfParams&, const ApbfParams&) = default;

  std::uint64_t table_bytes() const noexcept { return part_bits / 8 * parts * (k + l); }
  std::uint64_t units() const noexcept { return part_bits / kernels::kPartUnitBits * parts; }
  kernels::AgeStripShape strips() const noexcept { return {units(), kernels::kStripLines, k + l}; }
  std::uint64_t generation_keys() const noexcept;  // g = ⌊m ln 2 / k⌋
  const char* what_is_wrong() const;
  double npws() const noexcept;
  std::vector<double> matches(std::span<const double> generations,
                              std::span<const double> again) const;
  double predicted_fpr(std::span<const double> generations, std::span<const double> again) const;
  void encode(Encoder& to) const;
  static ApbfParams decode(Decoder& from);

  struct Table {
    const LineTable& memory;
    std::uint64_t part_bits;
    unsigned parts;
    kernels::AgeRing ring;
    std::uint64_t* stale;
    kernels::AgeStrips strips;

    std::size_t admit(kernels::AgeBatch& batch) const noexcept;
    void ask(const Digest* digests, std::size_t count, Verdict* verdicts) const noexcept;
    bool holds(const Digest& digest, unsigned age) const noexcept;
    void write(const Digest& digest, unsigned age) const noexcept;
    void empty(std::uint64_t unit) const noexcept;
    void sweep(std::uint64_t strip) const noexcept;
  };
  Table table(const LineTable& memory, std::uint64_t* stale, unsigned youngest,
              const kernels::AgeStrips& strips) const noexcept {
    return {memory, part_bits, parts, {k, l, youngest}, stale, strips};
  }
};

using Apbf = AgePartitioned<ApbfParams>;
extern template class AgePartitioned<ApbfParams>;

}  // namespace sluice
