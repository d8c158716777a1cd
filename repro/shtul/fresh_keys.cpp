#include "repro/shtul/fresh_keys.hpp"

#include <bit>
#include <numbers>

#include "sluice/base/codec.hpp"

namespace sluice::repro::shtul {

ApbfParams apbf_of(unsigned k, unsigned l, std::uint64_t keys, unsigned slices) {
  ApbfParams params;
  params.k = k;
  params.l = l;
  params.parts = slices;
  const double a_slice = static_cast<double>(keys) / std::max(1u, l) * k / std::numbers::ln2;
  params.part_bits =
      kernels::kPartUnitBits *
      static_cast<std::uint64_t>(std::ceil(a_slice / static_cast<double>(kernels::kPartUnitBits)));
  params.capacity = std::max<std::uint64_t>(1, l * params.generation_keys());
  params.target_fpr = model::apbf_fpr(k, l, model::Fills::exact, slices);
  return params;
}

ApbbfParams apbbf_of(unsigned k, unsigned l, unsigned block, unsigned bits, std::uint64_t keys) {
  ApbbfParams params;
  params.k = k;
  params.l = l;
  params.block = block;
  params.bits = bits;
  const double blocks =
      static_cast<double>(keys) / std::max(1u, l) * k / model::block_capacity(params.shape());
  const std::uint64_t a_line = 512 / block;
  params.blocks =
      a_line * static_cast<std::uint64_t>(std::ceil(blocks / static_cast<double>(a_line)));
  params.capacity = std::max<std::uint64_t>(1, l * params.generation_keys());
  params.target_fpr = model::apbbf_fpr(k, l, params.shape());
  return params;
}

// Segments have fixed places, and with every shift the youngest is the one before.
std::vector<double> slice_fills(const Apbf& filter, unsigned shifts) {
  const ApbfParams& params = filter.params();
  BytesEncoder payload;
  filter.encode_payload(payload);
  const unsigned segments = params.k + params.l;
  const std::size_t slice_bytes = params.part_bits / 8;
  std::vector<double> fills;
  for (unsigned age = 0; age < segments; ++age) {
    const unsigned place = (age + segments - shifts % segments) % segments;
    for (unsigned slice = 0; slice < params.parts; ++slice) {
      unsigned long set = 0;
      for (const std::byte byte : payload.written().subspan(
               (std::size_t{place} * params.parts + slice) * slice_bytes, slice_bytes))
        set += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(byte)));
      fills.push_back(static_cast<double>(set) / static_cast<double>(params.part_bits));
    }
  }
  return fills;
}

}  // namespace sluice::repro::shtul
