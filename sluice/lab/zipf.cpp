#include "sluice/lab/zipf.hpp"

#include <bit>
#include <cmath>

#include "sluice/base/bits.hpp"

namespace sluice {
namespace {

// base^exponent from products and square roots, one for each binary digit of the exponent. Both are
// correctly rounded everywhere, where std::pow is not; an exponent is cut after 32 binary digits.
double power(double base, double exponent) {
  double result = 1;
  for (; exponent >= 1; exponent -= 1) result *= base;
  double root = base;
  for (int digit = 0; digit < 32; ++digit) {
    root = std::sqrt(root);
    exponent *= 2;
    if (exponent >= 1) {
      result *= root;
      exponent -= 1;
    }
  }
  return result;
}

}  // namespace

ZipfSampler::ZipfSampler(std::uint64_t ranks, double skew)
    : ranks_(ranks), octaves_(static_cast<unsigned>(std::bit_width(ranks))) {
  for (std::size_t step = 0; step < keep_.size(); ++step) {
    const double ratio = 1 + static_cast<double>(step) / static_cast<double>(keep_.size());
    keep_[step] = static_cast<std::uint64_t>(0x1p32 / power(ratio, skew));
  }
  // An octave weighs its number of ranks times the weight of its first. The last octave is weighed
  // whole and draws beyond `ranks` are rejected.
  std::array<double, 41> weight{};
  double total = 0;
  double octave_weight = 1;
  const double next_octave = 2 / power(2, skew);
  for (unsigned j = 0; j < octaves_; ++j) {
    weight[j] = octave_weight;
    total += octave_weight;
    octave_weight *= next_octave;
  }
  double sum = 0;
  for (unsigned j = 0; j + 1 < octaves_; ++j) {
    sum += weight[j];
    // 2^63 in two steps: a rounded share of 1 still fits.
    until_[j] = static_cast<std::uint64_t>(sum / total * 0x1p63) * 2;
  }
  until_[octaves_ - 1] = ~std::uint64_t{0};
}

std::uint64_t ZipfSampler::draw(SplitMix64& random) const noexcept {
  for (;;) {
    const std::uint64_t word = random.next();
    unsigned octave = 0;
    while (word > until_[octave]) ++octave;
    const std::uint64_t first = std::uint64_t{1} << octave;
    // The high bits choose the rank within the octave (at most 40), the low 24 whether to keep it.
    const std::uint64_t place = random.next();
    const std::uint64_t offset = scale_to(place, first);
    const std::uint64_t step = (offset << kStepBits) >> octave;
    const std::uint64_t chance = (place & 0xFFFFFF) << 8;
    if (chance < keep_[step] && first + offset <= ranks_) return first + offset;
  }
}

}  // namespace sluice
