#include "sluice/cluster/slice_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sluice/base/bits.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/hash/probe.hpp"

namespace sluice::cluster {
namespace {

// Words of a digest that choose slices: their numbers are no probe's.
constexpr unsigned kRowWord = 1u << 10;
constexpr unsigned kSliceWords = 1u << 11;

// The site of a probe is chosen by a word's highest bits, and for some keys these rise evenly from
// probe to probe, so that all their bits would be on few sites. Mixing once more prevents this.
std::uint64_t mixed_word(const Digest& digest, unsigned probe) {
  return SplitMix64(probe_word(digest, probe)).next();
}

bool diced(Slicing slicing) {
  return slicing == Slicing::horizontal_vertical || slicing == Slicing::vertical_horizontal;
}

void check(const SliceParams& params) {
  const auto refuse = [](const std::string& what) { throw BadParameters("slices: " + what); };
  if (params.probes == 0 || params.probes > SliceMap::kMostProbes)
    refuse(fmt::format("{} probes; give 1 to {}", params.probes, SliceMap::kMostProbes));
  if (params.slices == 0 || params.inner == 0) refuse("0 slices; give at least 1");
  if (!diced(params.slicing) && params.inner != 1)
    refuse(fmt::format("{} slices have no inner ones; leave them at 1", name_of(params.slicing)));
  const std::uint64_t sites = std::uint64_t{params.slices} * params.inner;
  if (sites > SliceMap::kMostSites)
    refuse(fmt::format("{} sites; give at most {}", sites, SliceMap::kMostSites));
  if (params.bits < sites)
    refuse(fmt::format("{} bits for {} sites; give at least a bit per site", params.bits, sites));
  if (params.slicing != Slicing::general) return;
  const unsigned k1 = params.slices_per_key;
  if (k1 == 0 || k1 > params.slices || params.probes % k1 != 0)
    refuse(fmt::format("{} slices per key; give a divisor of the {} probes, at most the {} slices",
                       k1, params.probes, params.slices));
}

}  // namespace

std::string_view name_of(Slicing slicing) noexcept {
  switch (slicing) {
    case Slicing::horizontal:
      return "horizontal";
    case Slicing::vertical:
      return "vertical";
    case Slicing::horizontal_vertical:
      return "h-v diced";
    case Slicing::vertical_horizontal:
      return "v-h diced";
    case Slicing::general:
      return "general";
  }
  return "";
}

std::uint32_t site_of(const Digest& digest, std::uint32_t sites) noexcept {
  return static_cast<std::uint32_t>(scale_to(mixed_word(digest, kRowWord), sites));
}

SliceMap::SliceMap(const SliceParams& params)
    : params_((check(params), params)),
      sites_(params.slices * params.inner),
      site_bits_((params.bits + sites_ - 1) / sites_) {}

bool SliceMap::one_site_per_key() const noexcept {
  return sites_ == 1 || params_.slicing == Slicing::horizontal ||
         (params_.slicing == Slicing::general && params_.slices_per_key == 1) ||
         (params_.slicing == Slicing::horizontal_vertical && params_.inner == 1);
}

Place SliceMap::place(const Digest& digest, unsigned probe) const noexcept {
  const std::uint64_t word = mixed_word(digest, probe);
  // Of one row or part, chosen by the key for all its probes.
  const auto chosen = [&](std::uint32_t of) { return std::uint64_t{site_of(digest, of)}; };
  std::uint64_t first = 0, within = 0, stride = 1;
  switch (params_.slicing) {
    case Slicing::horizontal:
      first = chosen(sites_), within = 1;
      break;
    case Slicing::horizontal_vertical:
      first = chosen(params_.slices) * params_.inner, within = params_.inner;
      break;
    case Slicing::vertical_horizontal:
      // A key goes to the same part of every vertical slice.
      first = chosen(params_.inner), within = params_.slices, stride = params_.inner;
      break;
    default:
      within = sites_;
  }
  const std::uint64_t at = scale_to(word, within * site_bits_);
  return {static_cast<std::uint32_t>(first + at / site_bits_ * stride), at % site_bits_};
}

void SliceMap::general_places(const Digest& digest, std::span<Place> out) const noexcept {
  const unsigned k1 = params_.slices_per_key;
  const unsigned k2 = params_.probes / k1;
  // All different: the i-th is drawn from those that are left.
  std::array<std::uint32_t, kMostProbes> chosen;
  for (unsigned i = 0; i < k1; ++i) {
    auto slice = static_cast<std::uint32_t>(
        scale_to(mixed_word(digest, kSliceWords + i), params_.slices - i));
    unsigned at = 0;
    for (; at < i && chosen[at] <= slice; ++at) ++slice;
    std::copy_backward(chosen.begin() + at, chosen.begin() + i, chosen.begin() + i + 1);
    chosen[at] = slice;
  }
  for (unsigned probe = 0; probe < params_.probes; ++probe)
    out[probe] = {chosen[probe / k2], scale_to(mixed_word(digest, probe), site_bits_)};
}

void SliceMap::places(const Digest& digest, std::span<Place> out) const noexcept {
  if (params_.slicing == Slicing::general) return general_places(digest, out);
  for (unsigned probe = 0; probe < params_.probes; ++probe) out[probe] = place(digest, probe);
}

std::uint32_t SliceMap::claim_site(const Digest& digest) const noexcept {
  std::array<Place, kMostProbes> all;
  places(digest, all);
  return all[0].site;
}

}  // namespace sluice::cluster
