// How a Bloom filter is cut into slices, one per site: which bits of which sites a key has. Pure
// arithmetic; the same on every producer.
//
// Source   Koloniari et al. 2011, §3: horizontal and vertical slices, h-v and v-h diced ones, and
//          the general slicing of Proposition 2.
// Differs  Positions come from one digest by multiply-shift, each probe from a word of its own.
//          Sizes are rounded up to whole bits per site.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sluice/hash/digest.hpp"
#include "sluice/model/sliced.hpp"

namespace sluice::cluster {

using model::Slicing;
std::string_view name_of(Slicing slicing) noexcept;

struct SliceParams {
  Slicing slicing = Slicing::vertical;
  std::uint64_t bits = 0;       // m, in all
  unsigned probes = 0;          // k
  unsigned slices = 1;          // S
  unsigned inner = 1;           // S′: of diced slicings
  unsigned slices_per_key = 1;  // k₁: of the general slicing; k₂ = probes / k₁
  friend bool operator==(const SliceParams&, const SliceParams&) = default;
};

// Which of `sites` has a key that is at one site only, as in horizontal slices and filter slices:
// chosen by a word of the digest that no filter uses. Changing it moves keys to other sites.
std::uint32_t site_of(const Digest& digest, std::uint32_t sites) noexcept;

struct Place {
  std::uint32_t site = 0;
  std::uint64_t position = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

class SliceMap {
 public:
  static constexpr unsigned kMostProbes = 64;
  static constexpr unsigned kMostSites = 1u << 16;

  // Throws BadParameters.
  explicit SliceMap(const SliceParams& params);

  const SliceParams& params() const noexcept { return params_; }
  unsigned probes() const noexcept { return params_.probes; }
  unsigned sites() const noexcept { return sites_; }
  std::uint64_t site_bits() const noexcept { return site_bits_; }

  // One per probe.
  void places(const Digest& digest, std::span<Place> out) const noexcept;
  // True if every key has all its bits at one site.
  bool one_site_per_key() const noexcept;
  // The site where a key is claimed: always the same one, and one that has bits of the key.
  std::uint32_t claim_site(const Digest& digest) const noexcept;

 private:
  Place place(const Digest& digest, unsigned probe) const noexcept;
  void general_places(const Digest& digest, std::span<Place> out) const noexcept;

  SliceParams params_;
  unsigned sites_;
  std::uint64_t site_bits_;
};

}  // namespace sluice::cluster
