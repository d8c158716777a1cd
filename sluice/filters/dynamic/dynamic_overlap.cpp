// Keys that several filters of a series hold: a merge brings them. They set the same bits in each, so
// the filters err on the same keys, and a filter joined of two holds fewer keys than both.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "sluice/filters/dynamic/dynamic.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/model/power.hpp"

namespace sluice {
namespace {

// What chance cannot explain, in standard deviations: there are many pairs.
constexpr double kDeviations = 6;

constexpr std::uint64_t kFlags = 0x1111111111111111ULL;

// Counters of four bits as one bit each.
std::uint64_t nonzero_flags(std::uint64_t word) {
  word |= word >> 2;
  word |= word >> 1;
  return word & kFlags;
}

// Whether a share differs from what is expected by more than chance.
bool is_more(double share, double expected, double positions) {
  return share - expected > kDeviations * std::sqrt(expected * (1 - expected) / positions);
}

}  // namespace

// Words of one filter, evenly spaced: the same ones for each.
void Dynamic::sample_words(std::size_t index, std::span<std::uint64_t> out) const noexcept {
  const std::uint64_t count = params_.bits / (params_.forget ? 16 : 64);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t at = count * i / out.size();
    if (in_matrix())
      matrix_.gather(index, at, out.subspan(i, 1));
    else
      out[i] = with_words(pieces_[index].table, [&](auto words) { return words.get(at); });
    if (params_.forget) out[i] = nonzero_flags(out[i]);
  }
}

// From that many words of each filter; false if nothing is found.
bool Dynamic::find_overlaps(std::uint64_t most_words) {
  const std::uint64_t each = params_.forget ? 16 : 64,
                      count = std::min(most_words, params_.bits / each);
  const auto positions = static_cast<double>(count * each),
             bits = static_cast<double>(params_.bits);
  std::vector<std::uint64_t> words(count * pieces_.size());
  std::vector<double> shares;
  bool found = false;
  for (std::size_t j = 0; j < pieces_.size(); ++j) {
    DynamicPiece& piece = pieces_[j];
    const std::span own = std::span(words).subspan(j * count, count);
    sample_words(j, own);
    std::uint64_t ones = 0;
    for (const std::uint64_t word : own) ones += static_cast<std::uint64_t>(std::popcount(word));
    const double share = static_cast<double>(ones) / positions;
    const double zero = std::exp(-(params_.probes * static_cast<double>(piece.keys) / bits));
    piece.doubles = 0;
    if (is_more(1 - share, zero, positions)) {
      const double seen = model::bloom_keys_of_ones(bits, params_.probes, share * bits);
      piece.doubles =
          piece.keys - std::min(piece.keys, static_cast<std::uint64_t>(std::ceil(seen)));
      found = true;
    }
    // Of this filter's errors, those that others before it make, too. They hold different keys, so
    // what three make is counted for one of them.
    double shared = 0;
    for (std::size_t i = 0; i < j; ++i) {
      const std::span other = std::span(words).subspan(i * count, count);
      std::uint64_t both = 0;
      for (std::size_t at = 0; at < count; ++at)
        both += static_cast<std::uint64_t>(std::popcount(own[at] & other[at]));
      const double together = static_cast<double>(both) / positions, apart = share * shares[i];
      if (!is_more(together, apart, positions)) continue;
      shared += model::power_of(together, params_.probes) - model::power_of(apart, params_.probes);
    }
    piece.shared_fpr = std::min(shared, model::power_of(share, params_.probes));
    found |= shared > 0;
    shares.push_back(share);
  }
  return found;
}

// A look at few words tells whether a closer one is needed: most series were never merged.
void Dynamic::find_overlaps() {
  constexpr std::uint64_t kFewWords = 64, kManyWords = 1024;
  if (params_.tighten != 0) return;  // never merged
  const std::uint64_t factor = params_.forget ? 4 : 1;
  if (find_overlaps(kFewWords * factor)) find_overlaps(kManyWords * factor);
}

}  // namespace sluice
