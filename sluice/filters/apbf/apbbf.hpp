// Age-partitioned blocked Bloom filter: a sliding window in bits, few cache lines per key.
//
// Source   Shtul, Baquero & Almeida 2020, §6 (layout `segment`); `column` and `line` are ours.
// Differs  `column` puts a key's blocks of all segments side by side, `line` makes all segments
//          lanes of one cache line. One number then chooses all blocks, so crowded ones are crowded
//          in every segment: at (2,5,512,8) 1.6·10⁻⁴ instead of 1.2·10⁻⁴. Segments are emptied as
//          they are written again, not all at once (kernels/age_partition.hpp).
// Cost     observe of a new key: `segment` k blocks written and 2 to 3 read, each one cache line;
//          `column` all k + l asked, adjacent, up to 16; `line` one line. No allocation. rotate:
//          no more than a few lines.
// Errors   `duplicate` may be wrong (model::apbbf_fpr, model::column_fpr); `distinct` never is for
//          a key written in the present generation or the l before it. Keys fade out over the k
//          generations after.
// Use it   `line` for the fastest window, if an error of 1 % is acceptable.
// Avoid    for small errors or little slack: cohort holds both in fewer bits.
// Format   snapshot kind 19, version 1.
#pragma once

#include "sluice/filters/apbf/age_partitioned.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/kernels/apbbf.hpp"
#include "sluice/model/apbf.hpp"

namespace sluice {

struct ApbbfParams {
  static constexpr FilterKind kKind = FilterKind::apbbf;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr std::string_view kName = "apbbf";
  using Layout = kernels::ApbbfLayout;

  Layout layout = Layout::segment;
  unsigned k = 0;              // segments a key is written in
  unsigned l = 0;              // generations for which a key stays beyond its own
  unsigned block = 512;        // B: bits of a block; of a line's lane 512 / (k + l)
  unsigned bits = 8;           // b: bits per key in a block; in a line's lane 32 / (k + l)
  std::uint64_t blocks = 0;    // blocks per segment, or columns, or lines
  std::uint64_t capacity = 0;  // w: keys a window holds
  double target_fpr = 0;       // the error it is planned for

  static ApbbfParams from(const Wish& wish, const Settings& settings);
  static std::span<const ParameterInfo> known();
  Settings settings() const;
  Forecast forecast() const;
  Forecast brief_forecast() const;  // without lines and settings, which take longest
  friend bool operator==(const ApbbfParams&, const ApbbfParams&) = default;

  model::BlockShape shape() const noexcept { return {block, bits}; }
  std::uint64_t table_bytes() const noexcept { return blocks * (k + l) * block / 8; }
  std::uint64_t units() const noexcept { return kernels::apbbf_units(layout, block, blocks); }
  kernels::AgeStripShape strips() const noexcept {
    return kernels::apbbf_strips(layout, block, blocks, k + l);
  }
  std::uint64_t generation_keys() const noexcept;  // what fills half of the blocks, by k
  const char* what_is_wrong() const;
  double npws() const noexcept;
  std::vector<double> matches(std::span<const double> generations,
                              std::span<const double> again) const;
  double predicted_fpr(std::span<const double> generations, std::span<const double> again) const;
  void encode(Encoder& to) const;
  static ApbbfParams decode(Decoder& from);

  struct Table : kernels::ApbbfTable {
    std::size_t admit(kernels::AgeBatch& batch) const noexcept {
      return kernels::apbbf_admit(*this, batch);
    }
    void ask(const Digest* digests, std::size_t count, Verdict* verdicts) const noexcept {
      kernels::apbbf_ask(*this, digests, count, verdicts);
    }
    bool holds(const Digest& digest, unsigned age) const noexcept {
      return kernels::apbbf_holds(*this, digest, age);
    }
    void write(const Digest& digest, unsigned age) const noexcept {
      kernels::apbbf_write(*this, digest, age);
    }
    void empty(std::uint64_t unit) const noexcept { kernels::apbbf_empty(*this, unit); }
    void sweep(std::uint64_t strip) const noexcept { kernels::apbbf_sweep_behind(*this, strip); }
  };
  Table table(const LineTable& memory, std::uint64_t* stale, unsigned youngest,
              const kernels::AgeStrips& strips) const noexcept {
    return {{memory.data(),
             stale,
             {k, l, youngest},
             layout,
             block,
             this->bits,
             blocks,
             memory.pages(),
             strips}};
  }
};

using Apbbf = AgePartitioned<ApbbfParams>;
extern template class AgePartitioned<ApbbfParams>;

}  // namespace sluice
